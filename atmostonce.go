package perdure

import "github.com/perdure/perdure/internal/replay"

type atMostOnce struct{}

func (atMostOnce) applyToActivityCall(c *replay.ActivityCall) { c.AtMostOnce = true }

// AtMostOnce has the code of an activity begin at most once in each attempt, for what must not happen twice and cannot tell that it has: a payment whose
// provider knows no idempotency key, a letter. Other activities run at least once: where a worker dies their work item is delivered again, and runs again.
//
// An attempt of which nobody can say how far it came fails instead, with an *[InterruptedError]: its worker died, or stopped it (its invocation ended, or
// its lock was lost), or the attempt was about to begin and that could not be told. What it did may be done, or not, or half done. A policy of [WithRetry]
// tries it again as it does after any failure, which is another attempt: without one, or with "interrupted" in [RetryPolicy.NonRetryable], the
// orchestration gets the error, and can look for what was done before it decides. A restart from an event ([client.FromEvent]) begins anew what was open
// there.
//
// The failure comes when the work item is delivered again: half a minute after the worker's death by default; where that was in the first three seconds of
// the activity, after the function's timeout. Progress by [Heartbeat] does not carry an attempt on into another invocation, so it must fit one.
//
// The option is recorded with the call, which keeps it when the code changes. It costs a worker a read and two writes for each activity that it runs, and
// one more every quarter of a minute. Such an activity never runs inline. It needs workers of this release or a later one: deploy them before the code that
// calls so. Workers in other languages keep no such record, and run it at least once.
func AtMostOnce() ActivityCallOption { return atMostOnce{} }
