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
// activities that may run twice, such as a lookup or a validation. As an option of AddActivity or DefineActivity,
// Inline applies to all calls. As an option of a call, Inline applies only to that call. Inline activities that are
// awaited together run concurrently and are committed together, with one write. Panics, timeouts, interceptors and
// cancellation work as for other activities. A retry that is due within one second runs inline. Later retries run in
// the worker.
//
// The time limit is 2 seconds, or a third of the orchestrator function's timeout if that is less. Change it with
// InlineTimeout of the CDK construct (PERDURE_INLINE_TIMEOUT). Also deploy a worker, because the activity starts again
// on its work queue in these cases:
//
//   - The activity exceeds the limit, and its context ends with ReasonInvocationDeadline, or it cannot start in time.
//   - The activity is not registered in the orchestrator's build.
//   - The turn of the call processes messages that were delivered before.
//
// Limits:
//
//   - If the process dies, the activity may have run although the history does not record it. Do not use Inline for
//     work that needs compensation.
//   - A call with [WaitForCancellation], [WithHeartbeatTimeout], [Exclusive] or [AtMostOnce] runs in the worker. An
//     inline activity that returns [ErrPending] fails.
//   - The activity has the permissions of the orchestrator function. A long computation delays other instances.
//   - A release of this module without Inline blocks instances with inline activities. Do not roll back to such a
//     release.
//
// See docs/guides/inline-activities.md.
func Inline() InlineOption { return inline{} }
