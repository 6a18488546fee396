// Package turns processes inbox records: it runs the turns of their instances.
package turns

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/perdure/perdure/dispatch/internal/body"
	"github.com/perdure/perdure/dispatch/internal/intake"
	"github.com/perdure/perdure/internal/goroutine"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/internal/payloads"
	"github.com/perdure/perdure/internal/registry"
	"github.com/perdure/perdure/provider"
)

// Orchestrator implements dispatch.Orchestrator.
type Orchestrator struct {
	base     intake.Base
	registry *registry.Registry
	options  Options
	provider provider.Provider
	cache    *cache
	alone    *intake.Alone
	asked    *askLimits
	rooms    rooms
	sessions sessions
	encoding *payloads.Encoding // nil: payloads are as the code gives them
	// interceptors are nil where there are none.
	interceptors *turnChain
	listeners    *taskListeners
	around       *body.Chain   // of inline activities; nil where there are none
	leaks        atomic.Int64  // inline activities that were given up, and still run
	meter        *intake.Meter // by orchestration
	stepMeter    *intake.Meter // by activity
	report       buildReport
}

// Close implements dispatch.Orchestrator.Close.
func (o *Orchestrator) Close() { o.cache.drain() }

// outlived: a mapping deletes a batch only when the invocation returns, and until then the groups of what is done stay
// locked. Above this the function deletes finished records itself (R19).
const outlived = 100 * time.Millisecond

// HandleRecords implements dispatch.Orchestrator.HandleRecords.
func (o *Orchestrator) HandleRecords(ctx context.Context, records []provider.Record) (failed []string) {
	defer o.meter.Flush(ctx)
	enough := o.enough(ctx)
	items, unreadable := o.provider.DecodeOrchestrationItems(records)
	stuck := intake.DeadLetter(ctx, &o.base, provider.QueueInbox, unreadable)
	items, failed = o.without(ctx, items, stuck)
	h := o.handleTogether(ctx, items)
	failed = append(failed, h.failed...)
	if len(h.suspects) == 0 {
		return failed
	}
	if len(h.done) > 0 {
		o.deleteEarly(ctx, h.done) // if one of these takes the process down, they are not delivered again
	}
	return append(failed, o.handleSuspects(ctx, h.suspects, enough)...)
}

// handleTogether runs the turns of instances side by side. Of what is done with, it leaves out the records that are deleted already.
func (o *Orchestrator) handleTogether(ctx context.Context, items []*provider.OrchestrationItem) handled {
	if len(items) == 1 {
		return o.handle(ctx, items[0], false)
	}
	results := make(chan handled, len(items))
	for _, it := range items {
		go func() {
			goroutine.ReserveStack()
			results <- o.handle(ctx, it, false)
		}()
	}
	return o.collect(ctx, results, len(items))
}

// handleSuspects runs the turns of instances alone, one after the other, while an invocation has enough time left for one.
func (o *Orchestrator) handleSuspects(ctx context.Context, suspects []suspected, enough time.Duration) (failed []string) {
	slices.SortStableFunc(suspects, func(a, b suspected) int {
		return cmp.Or(intake.InnocentFirst(a.died, b.died, a.item.Messages[0].Record.ReceiveCount, b.item.Messages[0].Record.ReceiveCount),
			cmp.Compare(a.item.Messages[0].Record.ReceiptHandle, b.item.Messages[0].Record.ReceiptHandle)) // and not by their arrival
	})
	proven := false
	for _, s := range suspects {
		if proven && s.died >= intake.DiedAlone {
			failed = append(failed, intake.AbandonAfter(ctx, &o.base, provider.QueueInbox, recordsOf(s.item.Messages), intake.Spread)...)
			continue
		}
		proven = proven || s.died >= intake.DiedAlone
		if !o.hasTime(ctx, enough) || !o.alone.Take(ctx, &s.item.Messages[0].Record, time.After(intake.Reserve)) {
			failed = append(failed, o.giveBack(ctx, s.item.Messages)...)
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

// hasTime reports whether the invocation has enough time left for one more turn.
func (o *Orchestrator) hasTime(ctx context.Context, enough time.Duration) bool {
	end, ok := ctx.Deadline()
	return ctx.Err() == nil && (!ok || end.Sub(o.options.Clock()) >= enough)
}

// timeOfATurn is what a turn that is run alone is to have, with the reserve.
const timeOfATurn = 5 * time.Second

// enough is the time that a turn which is run alone is to have, in an invocation that begins: half of it, where that is less.
func (o *Orchestrator) enough(ctx context.Context) time.Duration {
	end, ok := ctx.Deadline()
	if !ok {
		return timeOfATurn
	}
	return min(timeOfATurn, end.Sub(o.options.Clock())/2)
}

// giveBack makes the records of messages visible again.
func (o *Orchestrator) giveBack(ctx context.Context, messages []provider.InboxMessage) (failed []string) {
	return intake.Abandon(ctx, &o.base, provider.QueueInbox, recordsOf(messages))
}

func recordsOf(messages []provider.InboxMessage) []provider.Record {
	records := make([]provider.Record, len(messages))
	for i := range messages {
		records[i] = messages[i].Record
	}
	return records
}

// without takes out the instances of whose groups a record could be neither read nor set aside: what comes behind it must not
// overtake it (R2), or it would be taken for consumed once it can be read.
func (o *Orchestrator) without(ctx context.Context, items []*provider.OrchestrationItem, stuck []provider.Record) (rest []*provider.OrchestrationItem, failed []string) {
	if len(stuck) == 0 {
		return items, nil
	}
	groups, back := map[string]bool{}, stuck
	for _, r := range stuck {
		groups[r.Group] = true
	}
	for _, it := range items {
		if !groups[it.Messages[0].Record.Group] {
			rest = append(rest, it)
			continue
		}
		for _, m := range it.Messages {
			back = append(back, m.Record)
		}
	}
	return rest, intake.Abandon(ctx, &o.base, provider.QueueInbox, back)
}

// handled is what became of the records of items.
type handled struct {
	done     [][]provider.InboxMessage // whose records are not deleted yet
	failed   []string
	suspects []suspected // what is still to be run, alone
}

func (o *Orchestrator) collect(ctx context.Context, results <-chan handled, n int) (all handled) {
	var late <-chan time.Time
	for ; n > 0; n-- {
		for waiting := true; waiting; {
			select {
			case r := <-results:
				all.done, all.failed, waiting = append(all.done, r.done...), append(all.failed, r.failed...), false
				all.suspects = append(all.suspects, r.suspects...)
			case <-late:
				o.deleteEarly(ctx, all.done)
				all.done, late = nil, nil
			}
		}
		if late == nil && len(all.done) > 0 && n > 1 {
			late = time.After(outlived)
		}
	}
	return all
}

// deleteEarly: the mapping deletes them again when the batch is over, which does no harm, so an error is not one.
func (o *Orchestrator) deleteEarly(ctx context.Context, done [][]provider.InboxMessage) {
	var records []provider.Record
	for _, messages := range done {
		records = append(records, recordsOf(messages)...)
	}
	if err := o.provider.DeleteRecords(ctx, provider.QueueInbox, records...); err != nil {
		o.options.Logger.WarnContext(ctx, "early deletion of finished inbox records failed",
			"event", logevent.RecordEarlyDeleteFailed, "records", len(records), "error", err)
	}
}

// handle runs one instance's messages, alone or beside others. What fails is made visible again soon.
func (o *Orchestrator) handle(ctx context.Context, it *provider.OrchestrationItem, alone bool) handled {
	if it.InstanceID == provider.ReportBuildInstanceID {
		announceAgain(ctx, o)
	}
	s := o.newSession(it, alone)
	err := o.inTime(ctx, s.run)
	s.poison.unmark(ctx, err)
	err = o.giveUp(ctx, s, err)

	failed := s.backlog.unacknowledged()
	h := handled{}
	if done := len(it.Messages) - len(failed); done > 0 {
		h.done = [][]provider.InboxMessage{it.Messages[:done]}
	}
	if err == nil {
		o.sessions.giveBack(s)
		return h
	}
	if suspect, ok := errors.AsType[*suspectError](err); ok {
		h.suspects = []suspected{{&provider.OrchestrationItem{InstanceID: it.InstanceID, Messages: failed}, suspect.died}}
		return h
	}
	o.options.Logger.ErrorContext(ctx, "turn failed, its messages will be redelivered", "event", logevent.TurnFailed,
		"instance", it.InstanceID, "execution", lastExecution(s), "messages", len(failed),
		"attemptCount", failed[0].Record.ReceiveCount, "error", err)
	h.failed = o.giveBack(ctx, failed)
	return h
}

// inTime calls run with a context that ends before the invocation does, which keeps a reserve of its time, as a worker's does: calls
// that hang must not take the process along, which would look like poison.
func (o *Orchestrator) inTime(ctx context.Context, run func(context.Context) error) error {
	if end, ok := ctx.Deadline(); ok {
		left := end.Sub(o.options.Clock())
		limited, stop := context.WithTimeout(ctx, left-min(intake.Reserve, left/4))
		defer stop()
		ctx = limited
	}
	return run(ctx)
}

// refresh has the instance's status written as history has it. Whether that succeeds is no concern of the messages: it is tried again.
func (o *Orchestrator) refresh(ctx context.Context, wake *provider.Message) {
	if err := o.provider.RefreshStatus(ctx, wake); err != nil {
		o.options.Logger.WarnContext(ctx, "status refresh failed, retrying", "event", logevent.StatusRefreshFailed,
			"instance", wake.InstanceID, "execution", wake.ExecutionID, "tries", wake.Refresh, "error", err)
	}
}
