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
