// Package ministack runs the provider's conformance suite on an emulator of AWS: real clients of the SDK, real time.
//
// The emulator is the ministack that PERDURE_TEST_ENDPOINT names, or else one that is started for the run.
package ministack
