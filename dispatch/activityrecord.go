package dispatch

import (
	"context"
	"time"

	"github.com/perdure/perdure/provider"
)

// recordLimit is how long an activity's record may take: half of what an invocation keeps to tell how its activities ended.
const recordLimit = reserve / 2

// leave records how an activity ended that was cancelled, at best: what came of it is told all the same, and only after.
func (m *manager) leave(ctx context.Context, t *task, seenAt time.Time, end provider.ActivityEnd) {
	now := m.options.Clock()
	if !t.mayWrite(now) {
		return
	}
	err := m.put(ctx, t, provider.ActivityRecord{ActivityID: t.item.ActivityID, SeenAt: seenAt, EndedAt: now, End: end})
	if err != nil {
		m.options.Logger.WarnContext(ctx, "it could not be recorded how a cancelled activity ended", "activity", t.item.Name,
			"instance", t.item.InstanceID, "activityId", t.item.ActivityID, "end", string(end), "error", err)
	}
}

// disown records that this build does not have an activity, at best: it is for people who wonder what the activity waits for.
func (m *manager) disown(ctx context.Context, t *task) {
	now := m.options.Clock()
	if !t.mayWrite(now) {
		return
	}
	err := m.put(ctx, t, provider.ActivityRecord{ActivityID: t.item.ActivityID, UnknownAt: now, UnknownBuild: m.options.BuildID})
	if err != nil {
		m.options.Logger.WarnContext(ctx, "it could not be recorded that an activity is not registered in this build", "activity", t.item.Name,
			"instance", t.item.InstanceID, "activityId", t.item.ActivityID, "error", err)
	}
}

// own takes back, at best, that a build did not have an activity: this one begins it.
func (m *manager) own(ctx context.Context, t *task, left *provider.ActivityRecord) {
	now := m.options.Clock()
	if !left.UnknownAt.After(left.BegunAt) || !t.mayWrite(now) {
		return
	}
	if err := m.put(ctx, t, provider.ActivityRecord{ActivityID: t.item.ActivityID, BegunAt: now}); err != nil {
		m.options.Logger.WarnContext(ctx, "it could not be recorded that an activity has begun which another build did not have", "activity", t.item.Name,
			"instance", t.item.InstanceID, "activityId", t.item.ActivityID, "error", err)
	}
}

// put writes to an activity's record.
func (m *manager) put(ctx context.Context, t *task, r provider.ActivityRecord) error {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), recordLimit)
	defer stop()
	return m.options.Provider.PutActivityRecords(ctx, t.item.ExecutionID, r)
}

// returned is the end of a cancelled activity that has come to one by itself.
func (e ending) returned() provider.ActivityEnd {
	if e.outcome != nil && e.outcome.Error == nil {
		return provider.EndFinished
	}
	return provider.EndStopped
}
