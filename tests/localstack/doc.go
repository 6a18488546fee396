// Package localstack runs the provider's conformance suite on LocalStack: its SQS, and its DynamoDB, which is DynamoDB
// Local.
//
// The emulator is the LocalStack that PERDURE_TEST_ENDPOINT names, or else one that is started for the run, without
// Docker. `make test-localstack` also deploys the hub there: see tests/e2e.
package localstack
