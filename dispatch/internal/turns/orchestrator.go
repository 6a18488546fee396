// Package turns processes inbox records: it runs the turns of their instances.
package turns

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/perdure/perdure/dispatch/internal/attempts"
	"github.com/perdure/perdure/dispatch/internal/blocked"
	"github.com/perdure/perdure/dispatch/internal/builds"
	"github.com/perdure/perdure/dispatch/internal/execution"
	"github.com/perdure/perdure/dispatch/internal/inline"
	"github.com/perdure/perdure/dispatch/internal/intake"
	"github.com/perdure/perdure/dispatch/internal/mailbox"
	"github.com/perdure/perdure/dispatch/internal/observe"
	"github.com/perdure/perdure/dispatch/internal/poison"
	"github.com/perdure/perdure/dispatch/internal/queries"
	"github.com/perdure/perdure/dispatch/internal/turnpayload"
	"github.com/perdure/perdure/internal/goroutine"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/provider"
)

// Orchestrator implements dispatch.Orchestrator.
type Orchestrator struct {
	*intake.Base

	meter    *intake.Meter // by orchestration
	alone    *intake.Alone
	buffers  buffers
	sessions sessionPool
	cache    *execution.Cache
	loader   *execution.Loader
	payloads *turnpayload.Encoder
	observer *observe.Observer
	poison   *poison.Options
	attempts *attempts.Processor
	inline   *inline.Host
	mailbox  *mailbox.Mailbox
	blocked  *blocked.Policy
	queries  *queries.Handler
	builds   *builds.Reporter
}

// ReportBuild implements dispatch.Orchestrator.ReportBuild.
func (o *Orchestrator) ReportBuild(ctx context.Context) error { return o.builds.Report(ctx) }

// QueryInstance implements dispatch.Orchestrator.QueryInstance.
func (o *Orchestrator) QueryInstance(
	ctx context.Context, q *provider.QueryRequest,
) (result json.RawMessage, err error) {
	err = o.withReserve(ctx, func(ctx context.Context) error {
		result, err = o.queries.Handle(ctx, q)
		return err
	})
	return result, err
}

// Close implements dispatch.Orchestrator.Close.
func (o *Orchestrator) Close() { o.cache.Close() }

// HandleRecords implements dispatch.Orchestrator.HandleRecords.
func (o *Orchestrator) HandleRecords(ctx context.Context, records []provider.Record) (failed []string) {
	defer o.meter.Flush(ctx)
	needed := o.timeForSuspect(ctx)
	items, unreadable := o.Provider.DecodeOrchestrationItems(records)
	stuck := intake.DeadLetter(ctx, o.Base, provider.QueueInbox, unreadable)
	items, failed = o.withoutGroups(ctx, items, stuck)
	h := o.handleAll(ctx, items)
	failed = append(failed, h.failed...)
	if len(h.suspects) == 0 {
		return failed
	}
	if len(h.done) > 0 {
		o.deleteEarly(ctx, h.done) // so that a crash of a suspect does not redeliver them
	}
	return append(failed, o.handleSuspects(ctx, h.suspects, needed)...)
}

// withoutGroups removes the items of groups with a record that was neither read nor moved to the dead-letter queue.
// Later messages must not overtake the record (R2), because the record would count as consumed.
func (o *Orchestrator) withoutGroups(
	ctx context.Context, items []*provider.OrchestrationItem, stuck []provider.Record,
) (rest []*provider.OrchestrationItem, failed []string) {
	if len(stuck) == 0 {
		return items, nil
	}
	groups, released := map[string]bool{}, stuck
	for _, r := range stuck {
		groups[r.Group] = true
	}
	for _, it := range items {
		if !groups[it.Messages[0].Record.Group] {
			rest = append(rest, it)
			continue
		}
		released = append(released, recordsOf(it.Messages)...)
	}
	return rest, intake.Abandon(ctx, o.Base, provider.QueueInbox, released)
}

// handled is the result of handling items.
type handled struct {
	done     [][]provider.InboxMessage // whose records are not deleted yet
	failed   []string
	suspects []suspect // to be handled alone
}

// handleAll handles items concurrently. The result does not contain the records that are deleted already.
func (o *Orchestrator) handleAll(ctx context.Context, items []*provider.OrchestrationItem) handled {
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

// earlyDeletion is the time after which the function deletes the records of finished items itself. The event source
// mapping deletes a batch when the invocation returns, and until then the message groups stay locked (R19).
const earlyDeletion = 100 * time.Millisecond

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
			late = time.After(earlyDeletion)
		}
	}
	return all
}

// deleteEarly deletes records. The mapping deletes them again when the batch ends, which has no effect, so an error is
// only logged.
func (o *Orchestrator) deleteEarly(ctx context.Context, finished [][]provider.InboxMessage) {
	var records []provider.Record
	for _, all := range finished {
		records = append(records, recordsOf(all)...)
	}
	if err := o.Provider.DeleteRecords(ctx, provider.QueueInbox, records...); err != nil {
		o.Logger.WarnContext(ctx, "early deletion of finished inbox records failed",
			"event", logevent.RecordEarlyDeleteFailed, "records", len(records), "error", err)
	}
}

// handle handles the messages of an instance, alone or concurrently with others. Failed records are released to the
// inbox.
func (o *Orchestrator) handle(ctx context.Context, it *provider.OrchestrationItem, alone bool) handled {
	if it.InstanceID == provider.ReportBuildInstanceID {
		_ = o.withReserve(ctx, func(ctx context.Context) error { o.builds.ReportAgain(ctx); return nil })
	}
	s := o.newSession(it, alone)
	err := o.withReserve(ctx, s.run)
	s.poison.End(ctx, err)
	if err != nil && o.blocked.DeadLetterCorrupt(ctx, it.InstanceID, &s.queue, err) {
		s.queue.AcknowledgeAll()
		err = nil
	}

	failed := s.queue.Unacknowledged()
	h := handled{}
	if done := len(it.Messages) - len(failed); done > 0 {
		h.done = [][]provider.InboxMessage{it.Messages[:done]}
	}
	if err == nil {
		o.sessions.put(s)
		return h
	}
	if e, ok := errors.AsType[*poison.SuspectError](err); ok {
		rest := &provider.OrchestrationItem{InstanceID: it.InstanceID, Messages: failed}
		h.suspects = []suspect{{rest, e.CrashCount}}
		return h
	}
	o.Logger.ErrorContext(ctx, "turn failed, its messages will be redelivered", "event", logevent.TurnFailed,
		"instance", it.InstanceID, "execution", s.executionID(), "messages", len(failed),
		"attemptCount", failed[0].Record.ReceiveCount, "error", err)
	h.failed = o.release(ctx, failed)
	return h
}

func (o *Orchestrator) release(ctx context.Context, all []provider.InboxMessage) (failed []string) {
	return intake.Abandon(ctx, o.Base, provider.QueueInbox, recordsOf(all))
}

func recordsOf(all []provider.InboxMessage) []provider.Record {
	records := make([]provider.Record, len(all))
	for i := range all {
		records[i] = all[i].Record
	}
	return records
}

// withReserve calls run with a context that ends before the invocation. Otherwise, calls that hang would end the
// process, and the record would count as poison.
func (o *Orchestrator) withReserve(ctx context.Context, run func(context.Context) error) error {
	if end, ok := ctx.Deadline(); ok {
		left := end.Sub(o.Clock())
		limited, stop := context.WithTimeout(ctx, left-min(intake.Reserve, left/4))
		defer stop()
		ctx = limited
	}
	return run(ctx)
}

// refreshStatus writes the status of an instance from its history. An error does not fail the messages, because the
// provider retries.
func (o *Orchestrator) refreshStatus(ctx context.Context, wake *provider.Message) {
	if err := o.Provider.RefreshStatus(ctx, wake); err != nil {
		o.Logger.WarnContext(ctx, "status refresh failed, retrying", "event", logevent.StatusRefreshFailed,
			"instance", wake.InstanceID, "execution", wake.ExecutionID, "tries", wake.Refresh, "error", err)
	}
}

// refreshWoken writes the status of an instance if messages without effect contain a wake. The sweeper wakes instances
// with the status Pending even if their first turn was long ago.
func (o *Orchestrator) refreshWoken(ctx context.Context, all []provider.InboxMessage) {
	if wake := wakeOf(all); wake != nil {
		o.refreshStatus(ctx, &wake.Message)
	}
}
