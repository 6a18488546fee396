// Package localstack runs the conformance suite of the provider on SQS and DynamoDB of LocalStack. DynamoDB of
// LocalStack is DynamoDB Local.
//
// The tests use the LocalStack at the address in PERDURE_TEST_ENDPOINT. Without the variable, the run starts one
// without Docker. `make test-localstack` also deploys a hub on LocalStack (tests/e2e).
package localstack
