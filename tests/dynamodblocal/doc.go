// Package dynamodblocal starts DynamoDB Local for tests, and runs the provider's conformance suite on it: a second
// opinion, beside ministack's, on conditions, transactions and indexes. The queues are those of internal/simaws, since
// it has none.
//
// It is the one that PERDURE_TEST_DYNAMODB_ENDPOINT names, or else one that is started for the run. Maven fetches it
// (`make test-dynamodb-local`); its licence lets everybody fetch it, and nobody pass it on.
//
// What it does as AWS does not, as far as tests meet it, is written down where tables are compared call by call
// (tests/differential). It has no TransactionConflict, no throttling and no stale reads.
package dynamodblocal
