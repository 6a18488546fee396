// Package dispatch turns what queues hand over into turns and activity executions.
//
// An [Orchestrator] takes inbox records, runs the turns of their instances and commits them; a [Worker] takes work items and runs
// the activities; a [Timekeeper] takes timers, and watches for what got stuck. A function hands them the records of its event, and
// gets back those that failed; a process that Lambda has not started does the same with what it has fetched ([Poll]).
//
// This package is the door. Behind it are four rooms, which know nothing of each other, and what they share:
//
//	internal/turns   an Orchestrator: orchestrator.go (records to instances), session.go (the states of the protocol), turn.go (the commit),
//	                 inputs.go (messages to history events), blocked.go (code that cannot go on)
//	internal/work    a Worker: worker.go (records to outcomes), admission.go (is an activity to be run here and now), manager.go (what is
//	                 due while it runs: leases.go, runs.go, polls.go, heartbeats.go, stop.go), settlement.go (outcomes sent, records given back)
//	internal/timers  a Timekeeper: timekeeper.go, and the duties of the watch: stuck.go, deadletters.go, jobs.go, retention.go, missing.go
//	internal/poll    Poll
//	internal/intake  what a record that cannot be read becomes, when one that failed comes back, marks, who runs alone
package dispatch
