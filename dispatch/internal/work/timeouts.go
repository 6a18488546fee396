package work

import (
	"context"
	"encoding/json"
	"time"

	"github.com/perdure/perdure/dispatch/internal/body"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/provider"
)

// tooLate reports whether an attempt that begins at a time begins after its activity has failed.
func tooLate(it *provider.WorkItem, at time.Time) bool {
	return it.ScheduleToCloseDeadline != nil && !at.Before(*it.ScheduleToCloseDeadline)
}

// runWithin runs an activity within its limits. One that does not come back by then has failed, whatever its code does afterwards: it is
// not waited for.
func (t *task) runWithin(ctx context.Context, code body.Run, input json.RawMessage) (json.RawMessage, *history.Failure) {
	it := t.item
	attempt := body.Attempt{Name: it.Name, Code: code, StartToClose: time.Duration(it.StartToCloseMs) * time.Millisecond, CloseBy: it.ScheduleToCloseDeadline}
	if it.ScheduleToCloseDeadline != nil {
		attempt.Now = t.batch.worker.options.Clock
	}
	if it.HeartbeatMs > 0 {
		attempt.Watch = func(expire context.CancelCauseFunc) { t.batch.worker.manager.writer.expect(t, expire) }
	}
	value, failure, abandoned := attempt.Run(ctx, input)
	if abandoned != nil {
		t.abandoned = true
		t.log().WarnContext(ctx, "activity timed out, ignoring its result", "event", logevent.ActivityTimedOut,
			"timeout", abandoned.Message)
	}
	return value, failure
}
