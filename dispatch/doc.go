// Package dispatch turns what queues hand over into turns and activity executions.
//
// An Orchestrator takes inbox records, runs the turns of their instances and commits them; a Worker takes work items and runs
// the activities; a Timekeeper takes timers, and watches for what got stuck. A function hands them the records of its event, and
// gets back those that failed; a process that Lambda has not started does the same with what it has fetched ([Poll]).
//
// A turn's path: orchestrator.go (records to instances), session.go (the states a turn goes through, and the rules that
// guard them), inputs.go (messages to history events), then the provider's commit.
//
// An activity's: worker.go (records to outcomes), activitymanager.go (who runs, and what is due when: leases, polls of the cancel
// record, heartbeats, grace), retry.go. What takes its process down is found out in poison.go and poisonturn.go, and what the queues
// gave up is picked up in moved.go.
package dispatch
