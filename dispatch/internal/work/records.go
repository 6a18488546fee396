package work

import (
	"context"
	"time"

	"github.com/perdure/perdure/dispatch/internal/intake"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/provider"
)

// recordLimit is how long writing an activity's record may take: half of what an invocation keeps for sending its outcomes.
const recordLimit = intake.Reserve / 2

// recorder writes down, at best, what people and later deliveries want to know of an activity.
type recorder struct {
	provider provider.Provider
	options  *Options
}

// end records how a cancelled activity ended. Its outcome is sent all the same, and only after.
func (r *recorder) end(ctx context.Context, t *task, seenAt time.Time, end provider.CancelOutcome) {
	now := r.options.Clock()
	if !t.mayWrite(now) {
		return
	}
	err := r.put(ctx, t, provider.ActivityRecord{ActivityID: t.item.ActivityID, SeenAt: seenAt, EndedAt: now, CancelOutcome: end})
	if err != nil {
		t.log().WarnContext(ctx, "activity record write failed", "event", logevent.ActivityRecordWriteFailed,
			"entry", "cancel_end", "end", string(end), "error", err)
	}
}

// sightings records that cancels were seen whose ends are waited for: should this worker die before it has sent the end, another that
// sends it knows when that was. The manager's lock is held.
func (r *recorder) sightings(m *manager, seen []sighting) {
	for _, s := range seen {
		if s.waited && s.task.mayWrite(r.options.Clock()) {
			saw := provider.ActivityRecord{ActivityID: s.task.item.ActivityID, SeenAt: s.task.stop.at}
			m.beside(s.task.batch, func(ctx context.Context) { r.sighting(ctx, s.task, saw) })
		}
	}
}

func (r *recorder) sighting(ctx context.Context, t *task, saw provider.ActivityRecord) {
	if err := r.within(ctx, t, saw); err != nil && ctx.Err() == nil {
		t.log().WarnContext(ctx, "activity record write failed", "event", logevent.ActivityRecordWriteFailed,
			"entry", "cancel_seen", "error", err)
	}
}

// unknown records that this build does not have an activity: it is for people who wonder what the activity waits for.
func (r *recorder) unknown(ctx context.Context, t *task) {
	now := r.options.Clock()
	if !t.mayWrite(now) {
		return
	}
	err := r.put(ctx, t, provider.ActivityRecord{ActivityID: t.item.ActivityID, UnknownAt: now, UnknownBuild: r.options.BuildID})
	if err != nil {
		t.log().WarnContext(ctx, "activity record write failed", "event", logevent.ActivityRecordWriteFailed,
			"entry", "unregistered", "error", err)
	}
}

// known takes back that a build did not have an activity: this one begins it.
func (r *recorder) known(ctx context.Context, t *task, left *provider.ActivityRecord) {
	now := r.options.Clock()
	if !left.UnknownAt.After(left.BegunAt) || !t.mayWrite(now) {
		return
	}
	if err := r.put(ctx, t, provider.ActivityRecord{ActivityID: t.item.ActivityID, BegunAt: now}); err != nil {
		t.log().WarnContext(ctx, "activity record write failed", "event", logevent.ActivityRecordWriteFailed,
			"entry", "registered", "error", err)
	}
}

// put writes to an activity's record, also when ctx has ended.
func (r *recorder) put(ctx context.Context, t *task, record provider.ActivityRecord) error {
	return r.within(context.WithoutCancel(ctx), t, record)
}

// within writes to an activity's record, while ctx has not ended.
func (r *recorder) within(ctx context.Context, t *task, record provider.ActivityRecord) error {
	ctx, stop := context.WithTimeout(ctx, recordLimit)
	defer stop()
	return r.provider.PutActivityRecords(ctx, t.item.ExecutionID, record)
}
