// Package dispatch turns what queues hand over into turns and activity executions.
//
// An Orchestrator takes inbox records, runs the turns of their instances and commits them; a Worker takes work items and runs
// the activities; a Timekeeper takes timers, and watches for what got stuck. All three are pushed: a function hands them the
// records of its event, and gets back those that failed.
//
// A turn's path: orchestrator.go (records to instances), session.go (the states a turn goes through, and the rules that
// guard them), inputs.go (messages to history events), then the provider's commit.
package dispatch
