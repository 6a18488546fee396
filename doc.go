// Package perdure lets you write long-running processes as plain Go functions. Such a function, an orchestration, may
// wait for days; it survives crashes and deployments, because each thing it decides and each thing it learns is kept in a
// history, and the function is brought back by running it again over that history.
//
// There are two kinds of functions:
//
//	func Charge(ctx context.Context, o Order) (Receipt, error)                    // an activity does the work
//	func Fulfil(ctx *perdure.OrchestrationContext, o Order) (Receipt, error)      // an orchestration decides what is done
//
// An activity is ordinary code: it calls services, reads databases, takes its time. It may run more than once, so what it
// does should bear repetition. When it is no longer wanted its ctx ends, and [context.Cause] says why.
//
// An orchestration calls activities and waits for what comes back:
//
//	func Fulfil(ctx *perdure.OrchestrationContext, o Order) (Receipt, error) {
//		charged := perdure.CallActivity(ctx, Charge, o)      // starts it
//		late := perdure.CreateTimer(ctx, time.Hour)
//		winner, err := perdure.Select(ctx, charged, late)    // waits; the loser is cancelled
//		if err != nil {
//			return Receipt{}, err
//		}
//		if winner == 1 {
//			return Receipt{}, ErrTooLate
//		}
//		return charged.Await(ctx)
//	}
//
// Both are registered by name, in the program that runs them:
//
//	r := perdure.NewRegistry()
//	perdure.AddOrchestration(r, "fulfil", Fulfil)
//	perdure.AddActivity(r, "charge", Charge)
//
// What is no longer wanted is cancelled: by [Select], with [WithTimeout], [WithCancel] or [Future.Cancel], from outside, or because
// its orchestration is over. Whoever waits gets a [CancelledError]; [WithoutCancel] is for what is to be done all the same, and
// [Compensate] undoes what was done before a failure or a cancel. A call that is cancelled settles at once, unless it asks to be
// waited for until it has really ended ([WaitForCancellation]). An activity runs at least once, unless it is called with [AtMostOnce]. One that takes long calls [Heartbeat], and its next attempt goes on from [HeartbeatDetails].
//
// Only the activity itself can end it. So it looks at its ctx in loops, selects on ctx.Done where it waits, and passes ctx on to all that it calls
// and to its goroutines; what tidies up takes [context.WithoutCancel]. When its ctx has ended it has a grace of ten seconds, unless the worker is configured otherwise, and what it
// returns in that is recorded. After it the activity is given up and leaks: its goroutine runs on, and its result is ignored. docs/guides/activities.md says more.
//
// Other things to wait for: other orchestrations ([CallSubOrchestration]), external events ([WaitForExternalEvent]) and coroutines of
// one's own ([Async]). [WithRetry] has what fails tried again. [StartOrchestration] starts one that is not waited for.
//
// A history grows with what is decided, so code that goes on for ever, or loops for long, begins anew from time to time:
//
//	return perdure.ContinueAsNew[Receipt](ctx, next) // the same instance, with another input and an empty history
//
// Since an orchestration is run again and again over its history, it must decide the same each time:
//
//   - Take the time from [OrchestrationContext.Now], randomness from Rand and NewUUID, and log to Logger. What else differs each
//     time comes in through [SideEffect].
//   - Wait only for futures, with Await, Select, WhenAny, WhenAll and Sleep: no channels, locks, goroutines ([Go] instead) or network.
//   - Do not range over a map where the order decides anything. Leave everything else to activities.
//   - Change the code of running instances by registering another version ([WithVersion]), or inside a function by [Version].
//
// Code that decides otherwise than its history is stopped with a [NondeterminismError] that shows both sides.
// Inputs and outputs travel as JSON (encoding/json), up to [MaxPayloadBytes] each.
package perdure
