// Package dynamo is the provider on AWS: a DynamoDB table, SQS queues and EventBridge Scheduler.
//
// To read how a turn becomes durable, follow AckOrchestrationItem: commit.go (the segment and its condition),
// segment.go (the content of an item), outbox.go (what is sent after the commit), queues.go (how it is sent). read.go
// reads it back. DeleteInstance is in deletion.go: how an instance ends (deathbed.go), and what remains of it
// (erase.go, tombstone.go). The clients are small interfaces in the SDK's own types (api.go), so that tests run this
// same code on internal/simaws.
package dynamo
