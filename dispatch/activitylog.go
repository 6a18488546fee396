package dispatch

import (
	"context"
	"time"

	"github.com/perdure/perdure/history"
)

// What the log says of activities that are cancelled: that it was seen, and how it ended. An activity that was not cancelled has no line for it,
// and no poll has.

// about is what lines of the log say of a task, whatever else they do.
func (t *task) about(more ...any) []any {
	it := &t.item
	return append([]any{"activity", it.Name, "instance", it.InstanceID, "execution", it.ExecutionID, "activityId", it.ActivityID, "attempt", it.Attempt}, more...)
}

// sighting is a cancel that was seen: its activity, and when it was decided, if that is known.
type sighting struct {
	task      *task
	decidedAt time.Time
}

// tellSeen logs cancels that were seen.
func (m *manager) tellSeen(seen []sighting) {
	for _, s := range seen {
		t := s.task
		more := []any{"reason", string(t.signal.Reason), "message", t.signal.Message, "ranFor", t.signalled.Sub(t.began)}
		if !s.decidedAt.IsZero() {
			more = append(more, "decidedFor", max(0, t.signalled.Sub(s.decidedAt))) // by another's clock
		}
		m.options.Logger.InfoContext(t.shift.ctx, "activity is cancelled, and was told so", t.about(more...)...)
	}
}

// tellEnd logs how an activity came to its end by itself, after its context had ended. A panic then is as much of a mistake as any other, and its
// failure may be heard by nobody.
func (w *Worker) tellEnd(ctx context.Context, t *task, e ending) {
	more := []any{"reason", string(t.signal.Reason), "end", string(e.returned()), "endedAfter", w.options.Clock().Sub(t.signalled)}
	if e.outcome != nil && e.outcome.Error != nil && crashed(e.outcome.Error.Type) {
		text := e.outcome.Error.Message
		if w.options.OmitErrorTexts {
			text = "of type " + e.outcome.Error.Type
		}
		w.options.Logger.WarnContext(ctx, "activity panicked after its context had ended", t.about(append(more, "error", text)...)...)
		return
	}
	if !onlyOfWorkers(t.signal.Reason) { // else another line says that it is tried again
		w.options.Logger.InfoContext(ctx, "a cancelled activity has ended within its grace", t.about(more...)...)
	}
}

// crashed: it is a mistake of the code, and no error that it returned.
func crashed(failureType string) bool {
	return failureType == history.TypePanic || failureType == history.TypeGoexit
}
