// Package differential holds internal/simaws against an emulator of AWS: the same calls go to both, and what comes back
// must be the same. Where the emulator is known to differ from AWS the test says so, and simaws has to follow AWS.
//
// PERDURE_TEST_ENDPOINT is the URL of a running ministack. Without it the tests fail: they must not be thought to have
// passed.
package differential
