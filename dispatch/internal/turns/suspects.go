package turns

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/perdure/perdure/dispatch/internal/intake"
	"github.com/perdure/perdure/provider"
)

// suspect is an item whose trigger has crash markers, with their number.
type suspect struct {
	item       *provider.OrchestrationItem
	crashCount int
}

// maxTimeForSuspect is the time that a suspect needs, including the reserve.
const maxTimeForSuspect = 5 * time.Second

// timeForSuspect returns the time that a suspect needs in a new invocation. It is at most half of the invocation's
// time.
func (o *Orchestrator) timeForSuspect(ctx context.Context) time.Duration {
	end, ok := ctx.Deadline()
	if !ok {
		return maxTimeForSuspect
	}
	return min(maxTimeForSuspect, end.Sub(o.Clock())/2)
}

// handleSuspects handles suspects alone, one after another, while the invocation has enough time for the next one. It
// releases the others to the inbox.
func (o *Orchestrator) handleSuspects(ctx context.Context, suspects []suspect, needed time.Duration) (failed []string) {
	slices.SortStableFunc(suspects, func(a, b suspect) int {
		first, second := &a.item.Messages[0].Record, &b.item.Messages[0].Record
		return cmp.Or(intake.CompareSuspects(a.crashCount, b.crashCount, first.ReceiveCount, second.ReceiveCount),
			cmp.Compare(first.ReceiptHandle, second.ReceiptHandle)) // not by their arrival, which is random
	})
	proven := false
	for _, s := range suspects {
		if proven && s.crashCount >= intake.CrashedAlone {
			records := recordsOf(s.item.Messages)
			apart := intake.AbandonAfter(ctx, o.Base, provider.QueueInbox, records, intake.SpreadDelay)
			failed = append(failed, apart...)
			continue
		}
		proven = proven || s.crashCount >= intake.CrashedAlone
		if !o.hasTime(ctx, needed) || !o.alone.Take(ctx, &s.item.Messages[0].Record, time.After(intake.Reserve)) {
			failed = append(failed, o.release(ctx, s.item.Messages)...)
			continue
		}
		h := o.handle(ctx, s.item, true)
		o.alone.Release()
		failed = append(failed, h.failed...)
		if len(h.done) > 0 {
			o.deleteEarly(ctx, h.done)
		}
	}
	return failed
}

func (o *Orchestrator) hasTime(ctx context.Context, needed time.Duration) bool {
	end, ok := ctx.Deadline()
	return ctx.Err() == nil && (!ok || end.Sub(o.Clock()) >= needed)
}
