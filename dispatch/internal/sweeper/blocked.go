package sweeper

import (
	"context"
	"slices"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/provider"
)

// unblockConcurrency is the number of concurrent status writes.
const unblockConcurrency = 16

// wakeBlocked wakes instances that are blocked in another build than the one that reported last. The code of that build
// may be able to continue (R18).
func (s *Sweeper) wakeBlocked(ctx context.Context, r *result) {
	for instances, err := range s.Provider.BlockedInstances(ctx) {
		if err != nil {
			r.add(ctx, err)
			continue
		}
		for i := range instances[:min(len(instances), wakesLogged)] {
			s.Logger.InfoContext(ctx, "instance blocked in another build, waking it",
				"event", logevent.InstanceBlockedRetried, "instance", instances[i].InstanceID,
				"execution", instances[i].ExecutionID, "others", len(instances)-1)
		}
		woken := s.wakeAll(ctx, r, instances, func(in *provider.Instance) provider.Message {
			return provider.Message{Kind: provider.MessageWake, InstanceID: in.InstanceID}
		})
		woken = slices.DeleteFunc(woken, isBlockedInHistory)
		forEach(ctx, slices.Values(woken), unblockConcurrency, func(in provider.Instance) {
			if err := s.Provider.UnblockInstance(ctx, in.InstanceID, in.ExecutionID); err != nil {
				r.add(ctx, err)
			}
		})
	}
}

// isBlockedInHistory reports whether the history of an instance shows that it is blocked. A block because of an
// unreadable history is not in history. No turn would clear that status, so the sweeper clears it. A turn sets it again
// if it cannot read the history.
func isBlockedInHistory(in provider.Instance) bool {
	return in.Diagnosis == nil || in.Diagnosis.Type != history.TypeCorrupt
}
