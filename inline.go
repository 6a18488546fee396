package perdure

import (
	"github.com/perdure/perdure/internal/registry"
	"github.com/perdure/perdure/internal/replay"
)

// InlineOption is what [Inline] returns: an option of an activity, and of a call of one.
type InlineOption interface {
	ActivityOption
	ActivityCallOption
}

type inline struct{}

func (inline) applyToActivity(a *registry.Activity) { a.Inline = true }

func (inline) applyToActivityCall(c *replay.ActivityCall) { c.Inline = true }

// Inline has an activity run in the orchestrator's function, in the turn that decides it, instead of a worker's: an option of AddActivity and
// DefineActivity, for every call, or of one call. No message goes through a queue, and a step costs one write. It is for what is short and may
// be repeated: a lookup, a validation, a price. Activities that are awaited together run side by side, and are committed together.
//
// All that holds of activities holds of it: it runs at least once, its panics are failures, its limits, retries and interceptors apply, and its
// ctx ends when it is cancelled. A retry that comes within a second is made at once, a later one by its worker.
//
// It has two seconds, unless the hub says otherwise (InlineTimeout of the construct, PERDURE_INLINE_TIMEOUT), or a third of the orchestrator function's
// timeout where that is less. What takes longer is stopped (ReasonDeadline) and goes on in its worker queue, from the start; so does what is not begun in time, is not registered in the orchestrator's build, or is decided where
// a message was delivered before: so it needs a worker all the same.
//
// When the process dies the activity may have run without a trace in history, and the code may decide otherwise the next time: what must be
// undone, or must not run unseen, is no inline activity. A call with [WaitForCancellation], [WithHeartbeatTimeout], [Exclusive] or [AtMostOnce] goes to its worker queue, and one
// that returns [ErrPending] fails. The activity runs with the rights of the orchestrator's function, and beside other instances' turns: what
// computes for seconds holds those up.
//
// Code that uses it cannot be taken back to a release of this module without it while such instances run: that would block them.
func Inline() InlineOption { return inline{} }
