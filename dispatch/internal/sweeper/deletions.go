package sweeper

import (
	"context"
	"errors"
	"slices"

	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/provider"
)

// deletionConcurrency is the number of deletions that continue concurrently.
const deletionConcurrency = 8

// continueDeletions continues deletions that stopped before their end (R17). Each deletion may take a third of the
// sweep. The instance stores the progress of its deletion.
func (s *Sweeper) continueDeletions(ctx context.Context, r *result) {
	share := s.timeLimit(ctx) / 3
	for instances, err := range s.Provider.DeletingInstances(ctx) {
		if err != nil {
			r.add(ctx, err)
			continue
		}
		forEach(ctx, slices.Values(instances), deletionConcurrency, func(in provider.Instance) {
			limited, stop := context.WithTimeout(ctx, share)
			defer stop()
			s.Logger.WarnContext(ctx, "instance deletion unfinished, continuing it",
				"event", logevent.InstanceDeletionResumed, "instance", in.InstanceID, "execution", in.ExecutionID,
				"updatedAt", in.UpdatedAt)
			// without force, because the ID may have a later incarnation by now
			err := s.Provider.DeleteInstance(limited, in.InstanceID, false)
			timeUsed := limited.Err() != nil && ctx.Err() == nil
			if errors.Is(err, provider.ErrNotFound) || errors.Is(err, provider.ErrNotEnded) || timeUsed {
				err = nil // the deletion has ended, or the next sweep continues it
			}
			r.add(ctx, err)
		})
	}
}
