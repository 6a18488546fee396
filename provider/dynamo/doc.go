// Package dynamo implements package provider on AWS, with a DynamoDB table, SQS queues and EventBridge Scheduler.
//
// Provider is a facade. Each store is a package below internal, and stores.go connects them. The commit of a turn
// starts in Ack in internal/outbox/dispatch.go. Ack creates the segment (internal/segments/commit.go) on a condition,
// and then sends its outputs (Dispatch in the same file). The functions in internal/segments/read.go read the segments.
// DeleteInstance in internal/deletion/delete.go ends the last execution of an instance, erases the history
// (internal/erasure) and leaves a tombstone (internal/instances/tombstone.go). The clients are small interfaces with
// types of the SDK (clients.go), so that tests run the same code on internal/simaws.
package dynamo
