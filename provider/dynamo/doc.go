// Package dynamo implements package provider on AWS, with a DynamoDB table, SQS queues and EventBridge Scheduler.
//
// To read how a turn is committed, start with AckOrchestrationItem in commit.go. It creates the segment (segment.go) on
// a condition, and then sends its outputs (outbox.go, queues.go). The functions in read.go read the segments back.
// DeleteInstance in deletion.go ends the last execution of an instance, erases the history (erase.go) and leaves a
// tombstone (tombstone.go). The clients are small interfaces with types of the SDK (api.go), so that tests run the same
// code on internal/simaws.
package dynamo
