package perdure

import "github.com/perdure/perdure/internal/replay"

// AtMostOnce starts the code of an activity at most once in each attempt. Use it for work that must not happen twice
// and that has no idempotency key, such as a payment. Without AtMostOnce, an activity runs again if its worker dies.
//
// If the engine does not know how far an attempt came, the attempt fails with an *[InterruptedError]. This happens when
// the worker dies or stops, when it loses its lock on the message, or when a start could not be recorded reliably. The
// work may then be done, half done or not done. With [WithRetry], the failed attempt is followed by another one. To
// handle the error in the orchestration instead, use no retry policy, or add "interrupted" to
// [RetryPolicy.NonRetryableErrorTypes].
//
// The failure is reported when the message is redelivered: 30 seconds after the worker's death by default, or after the
// function's timeout if the worker died in the first 3 seconds of the activity.
//
// Limits:
//
//   - The activity must finish within one invocation. A heartbeat does not continue an attempt in another invocation.
//   - The activity never runs inline.
//   - A restart from an event ([client.FromEvent]) starts the activities that were running at that event again.
//   - After a restore of the hub's table, activities that started after the restored second start again.
//   - Workers in other languages ignore the option and run the activity at least once.
//
// The option is recorded with the call, so that a later change of the code does not affect calls that were already
// made. It costs the worker one read and two writes for each activity, and one more write every 15 seconds. All workers
// must run a release that supports AtMostOnce before orchestrations use it.
func AtMostOnce() ActivityCallOption {
	return activityCallOption(func(c *replay.ActivityCall) { c.AtMostOnce = true })
}
