// Package perduretest runs orchestrations in unit tests. It uses the real engine and provider in virtual time, on an
// in-memory DynamoDB and SQS.
//
//	func TestOrder(t *testing.T) {
//		env := perduretest.New(t, orders.Registry())
//		id, _ := env.Client().Start(t.Context(), "fulfil-order", order)
//		env.RunUntilIdle()          // runs everything that is due now
//		env.Advance(24 * time.Hour) // runs everything that becomes due within a day, without waiting
//		status, _ := env.Client().Status(t.Context(), id)
//	}
//
// Virtual time passes only in Env.Advance and in waits of Env.Client. Activities also use virtual time. time.Sleep and
// timers end when the clock reaches their time. The execution order is the same in every run. Retries have no jitter.
//
// Every turn replays its history, so that nondeterministic code fails the test (see WithCache). Code that hangs fails
// its test with its source lines, and other tests continue.
//
//   - Env.Stub replaces an activity, and Env.Calls lists the calls.
//   - Env.AfterFunc runs a function at a time.
//   - Env.CompareGolden compares a history with a file.
//   - Env.CrashAt, Env.Outage and Env.Deploy simulate crashes, outages and deployments.
//   - Env.Expect accepts a fault that the test causes on purpose.
//   - WithNetwork runs activities that use the network, and TableClient returns a client for your own DynamoDB tables.
//   - NewDeployed runs the same test body in a deployed hub.
//
// See docs/guides/testing.md.
package perduretest
