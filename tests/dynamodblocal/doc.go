// Package dynamodblocal starts DynamoDB Local for tests, and runs the conformance suite of the provider on it. The
// suite thereby checks conditions, transactions and indexes with a second emulator besides ministack. DynamoDB Local
// has no queues, so the suite uses the queues of internal/simaws.
//
// The tests use the DynamoDB Local at the address in PERDURE_TEST_DYNAMODB_ENDPOINT. Without the variable, the run
// starts one. Maven downloads DynamoDB Local (`make test-dynamodb-local`), because its license does not allow
// redistribution.
//
// The package tests/differential lists the known differences from AWS. DynamoDB Local has no TransactionConflict, no
// throttling and no stale reads.
package dynamodblocal
