// Package ministack runs the conformance suite of the provider on the emulator ministack, with clients of the SDK and
// in real time.
//
// The tests use the ministack at the address in PERDURE_TEST_ENDPOINT. Without the variable, the run starts one.
package ministack
