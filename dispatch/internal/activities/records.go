package activities

import (
	"context"
	"time"

	"github.com/perdure/perdure/dispatch/internal/intake"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/provider"
)

// recorder writes activity records, which people and later deliveries read. It logs errors of most writes.
type recorder struct {
	provider provider.Provider
	options  *Options
}

// cancelEnd records how a cancelled activity ended. The outcome is sent afterwards, even if the write fails.
func (r *recorder) cancelEnd(ctx context.Context, t *task, seenAt time.Time, end provider.CancelOutcome) {
	now := r.options.Clock()
	if !t.mayWrite(now) {
		return
	}
	err := r.writeAlways(ctx, t, provider.ActivityRecord{
		ActivityID: t.item.ActivityID, SeenAt: seenAt, EndedAt: now, CancelOutcome: end,
	})
	if err != nil {
		t.Log().WarnContext(ctx, "activity record write failed", "event", logevent.ActivityRecordWriteFailed,
			"entry", "cancel_end", "end", string(end), "error", err)
	}
}

// observations records cancellations whose ends are awaited. If this worker crashes, another one reports the end with
// the recorded time. The supervisor's lock is held.
func (r *recorder) observations(s *supervisor, observed []observation) {
	for _, o := range observed {
		if t := o.task; o.awaited && t.mayWrite(r.options.Clock()) {
			record := provider.ActivityRecord{ActivityID: t.item.ActivityID, SeenAt: t.stop.at}
			s.inBackground(t.batch, func(ctx context.Context) {
				if err := r.write(ctx, t, record); err != nil && ctx.Err() == nil {
					logFailure(ctx, t, "cancel_seen", err)
				}
			})
		}
	}
}

// unregistered records that this build does not have the activity, which explains why the activity waits.
func (r *recorder) unregistered(ctx context.Context, t *task) {
	if now := r.options.Clock(); t.mayWrite(now) {
		r.record(ctx, t, "unregistered", provider.ActivityRecord{UnknownAt: now, UnknownBuild: r.options.BuildID})
	}
}

// registered records that this build starts an activity that an earlier one did not have.
func (r *recorder) registered(ctx context.Context, t *task, record *provider.ActivityRecord) {
	if now := r.options.Clock(); record.UnknownAt.After(record.BegunAt) && t.mayWrite(now) {
		r.record(ctx, t, "registered", provider.ActivityRecord{BegunAt: now})
	}
}

// record writes an entry to an activity's record, even if ctx has ended. It logs an error.
func (r *recorder) record(ctx context.Context, t *task, entry string, record provider.ActivityRecord) {
	record.ActivityID = t.item.ActivityID
	if err := r.writeAlways(ctx, t, record); err != nil {
		logFailure(ctx, t, entry, err)
	}
}

func logFailure(ctx context.Context, t *task, entry string, err error) {
	t.Log().WarnContext(ctx, "activity record write failed", "event", logevent.ActivityRecordWriteFailed,
		"entry", entry, "error", err)
}

// writeAlways writes to an activity's record, even if ctx has ended.
func (r *recorder) writeAlways(ctx context.Context, t *task, record provider.ActivityRecord) error {
	return r.write(context.WithoutCancel(ctx), t, record)
}

// write writes to an activity's record until ctx ends.
func (r *recorder) write(ctx context.Context, t *task, record provider.ActivityRecord) error {
	ctx, stop := context.WithTimeout(ctx, intake.WriteTimeout)
	defer stop()
	return r.provider.PutActivityRecords(ctx, t.item.ExecutionID, record)
}
