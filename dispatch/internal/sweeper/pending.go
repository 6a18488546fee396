package sweeper

import (
	"context"
	"time"

	"github.com/perdure/perdure/dispatch/internal/intake"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/provider"
)

// pendingTimeout is the time for which a started instance may wait for its first turn before the sweeper wakes it
// (R11).
const pendingTimeout = 2 * time.Minute

func (s *Sweeper) wakePending(sweep context.Context, r *result) {
	ctx, stop := extend(sweep)
	defer stop()
	for instances, err := range s.Provider.PendingInstances(ctx, s.Clock().Add(-pendingTimeout)) {
		if sweep.Err() != nil && len(instances) == 0 {
			return
		}
		if err != nil {
			r.add(ctx, err)
			continue
		}
		for i := range instances[:min(len(instances), wakesLogged)] {
			s.Logger.WarnContext(ctx, "instance did not start in time, waking it",
				"event", logevent.InstanceStartOverdue, "instance", instances[i].InstanceID,
				"execution", instances[i].ExecutionID, "createdAt", instances[i].CreatedAt, "others", len(instances)-1)
		}
		s.wakeAll(ctx, r, instances, func(in *provider.Instance) provider.Message {
			return provider.Message{
				Kind: provider.MessageWake, InstanceID: in.InstanceID, ExecutionID: in.ExecutionID,
			}
		})
		if sweep.Err() != nil {
			return
		}
	}
}

// extend returns ctx with a deadline that is a part of the reserve later, so that a page of instances that was read is
// also woken. Otherwise, the provider would return these instances only at their next due time, which can be an hour
// later.
func extend(ctx context.Context) (extended context.Context, stop context.CancelFunc) {
	end, bounded := ctx.Deadline()
	if !bounded {
		return ctx, func() {}
	}
	return context.WithDeadline(context.WithoutCancel(ctx), end.Add(intake.Reserve/2))
}
