// Package perdure provides durable orchestrations for Go on AWS. You write a long-running process as an ordinary Go
// function. The engine records each step in a history and replays the function over that history, so that the process
// survives crashes, deployments and months of waiting.
//
// A program has two kinds of functions:
//
//   - An activity does the work. It is ordinary code that calls services and databases. It runs at least once, so make
//     it idempotent.
//   - An orchestration calls activities and waits for their results. It must be deterministic.
//
// This orchestration charges a customer, but waits no longer than an hour:
//
//	func Charge(ctx context.Context, o Order) (Receipt, error) { … }
//
//	func Fulfil(ctx *perdure.OrchestrationContext, o Order) (Receipt, error) {
//		charged := perdure.CallActivity(ctx, Charge, o)        // starts the activity
//		deadline := perdure.CreateTimer(ctx, time.Hour)
//		winner, err := perdure.Select(ctx, charged, deadline)  // waits, and cancels the loser
//		if err != nil {
//			return Receipt{}, err
//		}
//		if winner == 1 {
//			return Receipt{}, ErrTooLate
//		}
//		return charged.Await(ctx)
//	}
//
//	func Registry() *perdure.Registry {
//		r := perdure.NewRegistry()
//		perdure.AddOrchestration(r, "fulfil", Fulfil)
//		perdure.AddActivity(r, "charge", Charge)
//		return r
//	}
//
// Inputs and outputs are JSON (encoding/json) of at most [MaxPayloadBytes] each.
//
// # Determinism
//
// A replay must make the same decisions again. Code that deviates from its history is stopped with a
// [NondeterminismError]. In an orchestration:
//
//   - Take the time, random numbers and UUIDs from the context ([OrchestrationContext.Now], Rand, NewUUID). Use
//     [SideEffect] for other values that vary, and log with the context's Logger.
//   - Wait only for futures, with [Future.Await], [Select], [WhenAny], [WhenAll] or [Sleep]. Do not use channels, locks
//     or the network.
//   - Start coroutines with [Go] or [Async], not goroutines.
//   - Do not range over a map if the order affects a decision.
//   - Change the code of running instances with [WithVersion] or [Version].
//   - End an execution with [ContinueAsNew] before its history grows long.
//
// # Cancellation
//
// [Select], [WithTimeout], [WithCancel], [Future.Cancel], a client or the end of the orchestration cancel work. A wait
// then returns a [CancelledError]. [Compensate] undoes completed work, [WithoutCancel] runs work despite a cancel, and
// [WaitForCancellation] waits until cancelled work has ended.
//
// In an activity, ctx ends and [context.Cause] returns the reason. The activity then has a grace period, 10 seconds by
// default, to return. After the grace period the worker abandons the activity: the goroutine continues, and its result
// is ignored.
//
// # Further reading
//
//   - docs/start/first-application.md is a tutorial.
//   - docs/guides covers retries, waiting, fan-out, updates, entities, versioning and testing.
//   - docs/reference/glossary.md defines the terms.
//   - Package lambdahandler runs a registry on AWS Lambda, package client starts and manages instances, and package
//     perduretest tests orchestrations in virtual time.
package perdure
