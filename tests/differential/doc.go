// Package differential compares internal/simaws with emulators of AWS. Both receive the same calls and must return the
// same responses. If an emulator is known to differ from AWS, the test has the response of AWS, and simaws must match
// it.
//
// The default emulator is the ministack at the address in PERDURE_TEST_ENDPOINT. Without the variable, the run starts a
// ministack. With -against=dynamodb-local, the emulator is DynamoDB Local (package tests/dynamodblocal). DynamoDB Local
// has only tables, so the run needs -run '^TestTable'.
package differential
