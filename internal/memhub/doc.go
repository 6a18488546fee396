// Package memhub implements a minimal provider. Hub is a hub in memory that passes the mandatory part of the
// conformance suite. It is a starting point for authors of other providers. Hub embeds a store for each part of the
// contract:
//
//   - queue, queues.go, inbox.go, timers.go, workqueues.go: records and their content
//   - histories.go, instances.go, lists.go: reads
//   - starts.go, deletions.go, rejections.go: starts, deletions, and messages that no instance accepts
//   - turns.go, outbox.go, redispatch.go: commits and their outputs
//   - activities.go, attempts.go: records, runs and retries of activities
//   - builds.go, sweeps.go, crashmarkers.go: builds, the sweeper, crashes
//   - annotations.go, jobs.go, schedules.go, monitoring.go: optional interfaces
//
// Every call holds the lock of base, so that each write is atomic. The package omits what a real store requires:
// conditions in writes, retries of failed calls, pages and memory limits. Tests change its state with edit.go.
package memhub
