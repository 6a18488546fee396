// Package dispatch processes the records of a hub's queues.
//
//   - An [Orchestrator] processes inbox records: it runs the turns of their instances and commits them.
//   - A [Worker] processes work items: it runs activities and sends their outcomes.
//   - A [Renewer] processes timers, and runs the sweeper.
//
// A Lambda function passes the records of its event to HandleRecords and reports the failed ones. A process outside
// Lambda receives records with [Poll].
package dispatch
