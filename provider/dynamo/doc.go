// Package dynamo is the provider on AWS: a DynamoDB table, SQS queues and EventBridge Scheduler.
//
// To read how a turn becomes durable, follow AckOrchestrationItem: commit.go (the segment and its condition), segment.go
// (what an item holds), outbox.go (what is sent once it stands), queues.go (how). read.go is the way back.
// DeleteInstance is in deletion.go: how an instance ends (deathbed.go), and what is left of it (erase.go, tombstone.go).
// The clients are small interfaces in the SDK's own types (api.go), so that tests run this very code on internal/simaws.
package dynamo
