// Package differential holds internal/simaws against an emulator of AWS: the same calls go to both, and what comes back
// must be the same. Where the emulator is known to differ from AWS the test says so, and simaws has to follow AWS.
//
// The emulator is the ministack that PERDURE_TEST_ENDPOINT names, or else one that is started for the run.
package differential
