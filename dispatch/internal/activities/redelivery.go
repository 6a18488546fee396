package activities

import (
	"context"
	"errors"

	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/provider"
)

// mayHaveEnded reports whether hasEnded must check a work item. The first delivery of a first attempt needs no check.
func mayHaveEnded(it *provider.LockedWorkItem) bool {
	return it.Record.ReceiveCount > 1 || it.Attempt > 1 || it.PossibleDuplicate || it.NotBefore != nil
}

// hasEnded reads history with strong consistency before the code of a redelivered work item runs. It reports whether
// the activity was settled or its attempt is outdated. This happens if a worker crashed after it sent the outcome, if a
// record could not be deleted, or if the work item is a copy. If the history is unreadable, the activity counts as
// open.
func (a *admission) hasEnded(ctx context.Context, t *task) (ended bool, err error) {
	it := t.item
	if !mayHaveEnded(it) {
		return false, nil
	}
	ended, deleted, err := t.settledRead.Ended(ctx, a.settlements, a.provider, &it.WorkItem)
	if errors.Is(err, provider.ErrCorrupt) {
		t.Log().WarnContext(ctx, "history unreadable, running the redelivered activity",
			"event", logevent.ActivityRedeliveryUnchecked, "error", err)
		err = nil
	}
	if deleted {
		t.stop.deleted = true
	}
	if ended || err != nil || it.Retry == nil {
		return ended, err
	}

	current, err := a.provider.ReadRetry(ctx, it.ExecutionID, it.ActivityID)
	t.earlier.ended(current.Ended)
	return err == nil && current.Attempt > 0 && current.Attempt != it.Attempt, err
}
