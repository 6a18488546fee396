// Package schedule starts orchestrations by the clock: at a rate, or by a cron expression in a time zone.
//
// A schedule is itself an instance, of the orchestration that [Orchestration] names: it waits with a durable timer, starts a run as its
// sub-orchestration, and continues as new. So it survives what every instance survives, its history says when it started what, and it is
// listed, paused, cancelled and repaired as every other. The orchestrators that package lambdahandler makes know the orchestration, and so do the
// hubs of package perduretest; a program that makes its own dispatcher adds it by [AddTo].
//
// Package client makes, changes and reads schedules.
package schedule
