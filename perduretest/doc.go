// Package perduretest runs orchestrations in a unit test: the real engine and the real provider, on DynamoDB and SQS in memory,
// in virtual time.
//
//	func TestOrder(t *testing.T) {
//		env := perduretest.New(t, orders.Registry())
//		id, _ := env.Client().Start(t.Context(), "fulfil-order", order)
//		env.RunUntilIdle()        // everything that is due now
//		env.Advance(24 * time.Hour) // and what a day brings; it takes no time
//		status, _ := env.Client().Status(t.Context(), id)
//	}
//
// Every turn replays the history, so that code which is not deterministic fails its test (WithCache turns that off); stubs stand in for
// activities (Env.Stub), Env.Calls lists what was called, and Env.At does something at a moment. Code that hangs, or goes round for ever, fails its own test, with the lines
// that it is in, and other tests go on. Env.Golden compares a history with a file; Env.CrashAt, Env.Outage and Env.Deploy have a process die, a service
// fail and other code come; WithNetwork is for activities that use the network, Tables for code that saves data of its own with a start; and Deployed runs the same body in a deployed hub. docs/guides/testing.md is the guide.
//
// Time stands still but in Advance, and in Client().Wait, which advances as far as it must. Activities see virtual time too:
// time.Sleep and timers in them end when the clock gets there. What runs, runs in an order that is the same in every run, also what ends at
// one moment of that time; but code of several activities that runs on at one moment shares nothing safely, as elsewhere.
// Retries come exactly at the times of their policies, without jitter.
package perduretest
