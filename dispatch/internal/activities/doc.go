// Package activities runs the activities of work items. It receives records of a work queue, checks whether their
// activities may run, runs their code, and sends the outcomes to the inbox.
//
// The files, in the order of a record's path:
//
//   - worker.go: the path of a batch of records, and of each activity in it
//   - admission.go: the checks before the code runs. It calls cancelcheck.go (cancelled, run lease), redelivery.go (has
//     the activity ended?), crashes.go (crash markers) and exclusive.go (order of an exclusive key)
//   - execute.go: the code and its timeouts
//   - supervisor.go: while the code runs, leases (leases.go, runlease.go), heartbeats (heartbeats.go), cancellation
//     (package cancelpoll reads the cancel record) and the grace period (stopping.go)
//   - retry.go: whether a failed attempt is retried, and after which delay
//   - outcomes.go, pending.go, stalled.go: other outcomes, which package outcome builds
//   - settlement.go, release.go: outcomes are sent, records are deleted, or released to the queue
//
// If the process crashes, its leases expire, and the queue delivers the records again. admission.go then decides
// whether the activity runs again. docs/internals/activity.md lists the cases.
package activities
