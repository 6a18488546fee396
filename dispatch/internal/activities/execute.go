package activities

import (
	"context"
	"encoding/json"
	"time"

	"github.com/perdure/perdure/dispatch/internal/body"
	"github.com/perdure/perdure/dispatch/internal/outcome"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/internal/registry"
)

func (w *Worker) execute(ctx context.Context, t *task, code activityCode) result {
	it := t.item
	value, f := t.runCode(ctx, code.run, code.input)
	if f != nil && f.Type == registry.TypePending {
		if it.ExclusiveKey == "" {
			return result{outcome: outcome.Pending(it)}
		}
		f = outcome.ExclusivePending(it)
	}
	o := outcome.Of(it, f)
	if !w.payloads.EncodeOutcome(ctx, t, o, value) {
		return released
	}
	if it.WaitForCancellation && t.timedOut {
		o.Ended = history.OutcomeAbandoned
	}
	return result{outcome: o}
}

// runCode runs code within the timeouts of the attempt. After a timeout, the attempt has failed, and runCode does not
// wait for the code.
func (t *task) runCode(ctx context.Context, code body.Run, input json.RawMessage) (json.RawMessage, *failure) {
	it := t.item
	attempt := body.Attempt{
		Name: it.Name, Code: code,
		StartToClose: time.Duration(it.StartToCloseMs) * time.Millisecond, CloseBy: it.ScheduleToCloseDeadline,
	}
	if it.ScheduleToCloseDeadline != nil {
		attempt.Now = t.batch.worker.options.Clock
	}
	if it.HeartbeatMs > 0 {
		attempt.Watch = func(expire context.CancelCauseFunc) {
			t.batch.worker.supervisor.heartbeats.expect(t, expire)
		}
	}
	value, f, timeout := attempt.Run(ctx, input)
	if timeout != nil {
		t.timedOut = true
		t.Log().WarnContext(ctx, "activity timed out, ignoring its result", "event", logevent.ActivityTimedOut,
			"timeout", timeout.Message)
	}
	return value, f
}
