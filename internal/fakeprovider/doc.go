// Package fakeprovider is a minimal provider: a hub in memory that passes the mandatory part of the conformance suite.
// Authors of other providers can read it first:
//
//   - fakeprovider.go: what is stored
//   - starts.go: instances and their first segment
//   - turns.go: commits, reads and redispatches
//   - messages.go: the inbox, rejections, and results of updates
//   - work.go, activities.go: work items, and what is stored about activities apart from history
//   - instances.go: reads, lists and deletions
//   - sweeps.go: timers and the sweeper
//   - queue.go: queues in memory, and crash markers
//
// Every call holds one lock, so that each write is atomic. The package omits what a real store requires: conditions in
// writes, retries of failed calls, pages and memory limits.
//
// The other files are for tests of clients, which do not need turns: they add events to an instance with Append, and
// set other state with the methods of hooks.go.
package fakeprovider
