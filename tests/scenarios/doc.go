// Package scenarios is one table of what orchestrations do, each with what must come of it. It is run in virtual time,
// with a crash at every AWS call (tests/engine), and on deployed functions (tests/e2e).
//
// What takes more than an orchestration and a client is elsewhere: starts in a transaction of the caller's own in
// tests/engine, tests/ministack and tests/e2e, and schedules in package schedule and tests/e2e.
package scenarios
