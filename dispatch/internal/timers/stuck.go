package timers

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/perdure/perdure/dispatch/internal/intake"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/provider"
)

// pendingFor is how long a started instance may wait for its first turn before the watch wakes it (R11).
const pendingFor = 2 * time.Minute

const (
	wakesInABatch   = 10 // what a queue takes at once
	batchesAtOnce   = 16
	writesAtOnce    = 16
	wakesLogged     = 10 // of each step of a look; the rest are counted
	deletionsAtOnce = 8
)

// finishing is ctx, and a part of the reserve longer. A step that was begun before ctx ends is done to its end: what is noticed and not woken
// would be woken when it is due again, which may be an hour later.
func finishing(ctx context.Context) (longer context.Context, stop context.CancelFunc) {
	end, bounded := ctx.Deadline()
	if !bounded {
		return ctx, func() {}
	}
	return context.WithDeadline(context.WithoutCancel(ctx), end.Add(intake.Reserve/2))
}

// wakePending wakes instances that were started and never picked up.
func (k *Timekeeper) wakePending(look context.Context, t *tally) {
	ctx, stop := finishing(look)
	defer stop()
	for some, err := range k.provider.PendingInstances(ctx, k.options.Clock().Add(-pendingFor)) {
		if look.Err() != nil && len(some) == 0 {
			return
		}
		if err != nil {
			t.note(ctx, err)
			continue
		}
		for i := range some[:min(len(some), wakesLogged)] {
			k.options.Logger.WarnContext(ctx, "instance did not start in time, waking it",
				"event", logevent.InstanceStartOverdue, "instance", some[i].InstanceID,
				"execution", some[i].ExecutionID, "createdAt", some[i].CreatedAt, "others", len(some)-1)
		}
		k.wakeAll(ctx, t, some, func(in *provider.Instance) provider.Message {
			return provider.Message{Kind: provider.MessageWake, InstanceID: in.InstanceID, ExecutionID: in.ExecutionID}
		})
		if look.Err() != nil {
			return
		}
	}
}

// wakeBlocked wakes instances that are blocked in another build than the one that is deployed now: its code may go on (R18).
func (k *Timekeeper) wakeBlocked(ctx context.Context, t *tally) {
	for some, err := range k.provider.BlockedInstances(ctx) {
		if err != nil {
			t.note(ctx, err)
			continue
		}
		for i := range some[:min(len(some), wakesLogged)] {
			k.options.Logger.InfoContext(ctx, "instance blocked in an earlier build, waking it",
				"event", logevent.InstanceBlockedRetried, "instance", some[i].InstanceID,
				"execution", some[i].ExecutionID, "others", len(some)-1)
		}
		woken := k.wakeAll(ctx, t, some, func(in *provider.Instance) provider.Message {
			return provider.Message{Kind: provider.MessageWake, InstanceID: in.InstanceID}
		})
		sideBySide(ctx, slices.DeleteFunc(woken, readable), writesAtOnce, func(in provider.Instance) {
			if err := k.provider.BlockInstance(ctx, in.InstanceID, in.ExecutionID, "", nil); err != nil {
				t.note(ctx, err)
			}
		})
	}
}

// readable reports whether an instance is blocked by its history, or its history could not be read. The latter is shown as running until it
// cannot be read again: it is blocked in no history, so no turn would end that.
func readable(in provider.Instance) bool {
	return in.Diagnosis == nil || in.Diagnosis.Type != history.TypeCorrupt
}

// wakeAll sends a message to each of some instances, several batches at once, and returns those that were sent to.
func (k *Timekeeper) wakeAll(ctx context.Context, t *tally, some []provider.Instance, message func(*provider.Instance) provider.Message) []provider.Instance {
	batches := slices.Collect(slices.Chunk(some, wakesInABatch))
	sent := make(chan []provider.Instance, len(batches))
	sideBySide(ctx, batches, batchesAtOnce, func(batch []provider.Instance) {
		ms := make([]provider.Message, len(batch))
		for i := range batch {
			ms[i] = message(&batch[i])
		}
		if err := k.provider.EnqueueForOrchestrator(ctx, ms...); err != nil {
			t.note(ctx, err)
			return
		}
		t.woke(len(batch))
		sent <- batch
	})
	close(sent)
	var woken []provider.Instance
	for batch := range sent {
		woken = append(woken, batch...)
	}
	return woken
}

// finishDeletions goes on with what stays Deleting (R17). None takes more than its share of the time: the instance keeps how far it has come.
func (k *Timekeeper) finishDeletions(ctx context.Context, t *tally) {
	share := k.timeToWatch(ctx) / 3
	for some, err := range k.provider.DeletingInstances(ctx) {
		if err != nil {
			t.note(ctx, err)
			continue
		}
		sideBySide(ctx, some, deletionsAtOnce, func(in provider.Instance) {
			limited, stop := context.WithTimeout(ctx, share)
			defer stop()
			k.options.Logger.WarnContext(ctx, "instance deletion unfinished, continuing it",
				"event", logevent.InstanceDeletionResumed, "instance", in.InstanceID, "execution", in.ExecutionID,
				"updatedAt", in.UpdatedAt)
			err := k.provider.DeleteInstance(limited, in.InstanceID, false) // no force: should the id have another life by now, that is let be
			if errors.Is(err, provider.ErrNotFound) || errors.Is(err, provider.ErrNotEnded) || limited.Err() != nil && ctx.Err() == nil {
				err = nil // it is done, or has had its share: a large one goes on at the next look
			}
			t.note(ctx, err)
		})
	}
}
