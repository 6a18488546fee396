package perdure

import (
	"github.com/perdure/perdure/internal/registry"
	"github.com/perdure/perdure/internal/replay"
)

// InlineOption is the type of [Inline]. It is an option of activities and of activity calls.
type InlineOption interface {
	ActivityOption
	ActivityCallOption
}

type inline struct{}

func (inline) applyToActivity(a *registry.Activity) { a.Inline = true }

func (inline) applyToActivityCall(c *replay.ActivityCall) { c.Inline = true }

// Inline runs an activity in the orchestrator, inside the turn that calls it, instead of in a worker. Use it for short
// activities that may run twice, such as a lookup or a validation. As an option of AddActivity or DefineActivity it
// applies to all calls, as an option of a call to that call. An inline activity needs no queue and costs one write.
// Inline activities that are awaited together run concurrently and are committed together.
//
// Inline activities run at least once. Panics, timeouts, retries, interceptors and cancellation work as for other
// activities. A retry that is due within one second runs inline; a later one runs in the worker.
//
// The time limit of an inline activity is 2 seconds, or a third of the orchestrator function's timeout if that is less.
// Change it with InlineTimeout of the CDK construct (PERDURE_INLINE_TIMEOUT). Deploy a worker for every inline
// activity, because the activity moves to its work queue and starts again there if
//
//   - it exceeds the limit (its context ends with ReasonInvocationDeadline),
//   - it cannot start in time,
//   - it is not registered in the orchestrator's build, or
//   - it is called in a turn whose messages were delivered before.
//
// Limits:
//
//   - If the process dies, the activity can have run without a trace in the history, and the code can decide
//     differently the next time. Do not use Inline for work that needs compensation.
//   - A call with [WaitForCancellation], [WithHeartbeatTimeout], [Exclusive] or [AtMostOnce] runs in the worker.
//   - An inline activity that returns [ErrPending] fails.
//   - The activity has the permissions of the orchestrator function. A long computation delays the turns of other
//     instances.
//   - While instances with inline activities run, do not roll back to a release of this module without Inline. It would
//     block them.
//
// See docs/guides/inline-activities.md.
func Inline() InlineOption { return inline{} }
