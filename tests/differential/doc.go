// Package differential holds internal/simaws against emulators of AWS: the same calls go to both, and what comes back
// must be the same. Where an emulator is known to differ from AWS the test says so, and simaws has to follow AWS.
//
// By default the emulator is the ministack that PERDURE_TEST_ENDPOINT names, or else one that is started for the run.
// With -against=dynamodb-local it is DynamoDB Local (package tests/dynamodblocal), which has tables alone: -run
// '^TestTable'.
package differential
