package dispatch

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/perdure/perdure/provider"
)

// Orchestrator runs turns. It is safe for concurrent use; a process has one, so that warm orchestrations are found again.
type Orchestrator struct {
	options  Options
	provider provider.Provider
	cache    *cache
	alone    *alone
}

// NewOrchestrator makes an orchestrator. It calls nothing.
func NewOrchestrator(opts Options) *Orchestrator {
	opts = opts.withDefaults()
	return &Orchestrator{options: opts, provider: opts.Provider, cache: newCache(opts.CacheBytes, opts.Clock), alone: newAlone()}
}

// Announce makes known to the hub what this build can run, so that clients may start it by name. Once a process is enough.
func (o *Orchestrator) Announce(ctx context.Context) error {
	names := o.options.Registry.Names()
	b := provider.Build{ID: o.options.BuildID, Orchestrations: names.Orchestrations, Activities: names.Activities}
	if err := o.provider.PutBuild(ctx, b); err != nil {
		return fmt.Errorf("dispatch: announce build %q: %w", b.ID, err)
	}
	return nil
}

// Close unwinds the orchestrations that are kept warm. Records must not be handled any more.
func (o *Orchestrator) Close() { o.cache.drain() }

// outlived: a mapping deletes a batch only when the invocation returns, and until then the groups of what is done stay
// locked. Above this the function deletes finished records itself (R19).
const outlived = 100 * time.Millisecond

// HandleRecords runs the turns that a batch of inbox records asks for, instances side by side, and returns the ids of the
// records that failed: of each instance's a suffix, since failing one message fails all later ones of its group (R2). The instances
// on whose message a mark stands come last, one after the other, and go back to the inbox where there is no time left (R13).
func (o *Orchestrator) HandleRecords(ctx context.Context, records []provider.Record) (failed []string) {
	enough := o.enough(ctx)
	items, unreadable := o.provider.AdoptOrchestrationItems(records)
	stuck := deadLetter(ctx, o.options, provider.QueueInbox, unreadable)
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
		go func() { results <- o.handle(ctx, it, false) }()
	}
	return o.collect(ctx, results, len(items))
}

// handleSuspects runs the turns of instances alone, one after the other, while an invocation has enough time left for one.
func (o *Orchestrator) handleSuspects(ctx context.Context, suspects []suspected, enough time.Duration) (failed []string) {
	slices.SortStableFunc(suspects, func(a, b suspected) int {
		return innocentFirst(a.died, b.died, a.item.Messages[0].Record.ReceiveCount, b.item.Messages[0].Record.ReceiveCount)
	})
	proven := false
	for _, s := range suspects {
		if proven && s.died >= diedAlone {
			failed = append(failed, abandonAfter(ctx, o.options, provider.QueueInbox, recordsOf(s.item.Messages), spread)...)
			continue
		}
		proven = proven || s.died >= diedAlone
		if !o.hasTime(ctx, enough) || !o.alone.take(ctx, s.item.InstanceID, time.After(reserve)) {
			failed = append(failed, o.giveBack(ctx, s.item.Messages)...)
			continue
		}
		h := o.handle(ctx, s.item, true)
		o.alone.release()
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
	return abandon(ctx, o.options, provider.QueueInbox, recordsOf(messages))
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
	return rest, abandon(ctx, o.options, provider.QueueInbox, back)
}

// handled is what became of the records of items.
type handled struct {
	done     []provider.Record
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
func (o *Orchestrator) deleteEarly(ctx context.Context, done []provider.Record) {
	if err := o.provider.DeleteRecords(ctx, provider.QueueInbox, done...); err != nil {
		o.options.Logger.WarnContext(ctx, "finished inbox records were not deleted early", "records", len(done), "error", err)
	}
}

// handle runs one instance's messages, alone or beside others. What fails is made visible again soon.
func (o *Orchestrator) handle(ctx context.Context, it *provider.OrchestrationItem, alone bool) handled {
	s := &session{o: o, item: it, rest: it.Messages, alone: alone}
	err := o.inTime(ctx, s.run)
	s.unwatch(ctx, err)
	err = o.giveUp(ctx, s, err)
	h := handled{}
	for _, m := range it.Messages[:s.acked] {
		h.done = append(h.done, m.Record)
	}
	if err == nil {
		return h
	}
	failed := it.Messages[s.acked:]
	if suspect, ok := errors.AsType[*suspectError](err); ok {
		h.suspects = []suspected{{&provider.OrchestrationItem{InstanceID: it.InstanceID, Messages: failed}, suspect.died}}
		return h
	}
	o.options.Logger.ErrorContext(ctx, "the turn failed, its messages will be delivered again",
		"instance", it.InstanceID, "messages", len(failed), "attemptCount", failed[0].Record.ReceiveCount, "error", err)
	h.failed = o.giveBack(ctx, failed)
	return h
}

// inTime calls run with a context that ends before the invocation does, which keeps a reserve of its time, as a worker's does: calls
// that hang must not take the process along, which would look like poison.
func (o *Orchestrator) inTime(ctx context.Context, run func(context.Context) error) error {
	if end, ok := ctx.Deadline(); ok {
		left := end.Sub(o.options.Clock())
		limited, stop := context.WithTimeout(ctx, left-min(reserve, left/4))
		defer stop()
		ctx = limited
	}
	return run(ctx)
}

// laterReleaseTries is how often a message of an unknown kind is left for another environment to take, which while a release is
// deployed may be newer than this: about a minute.
const laterReleaseTries = 5

// deadLetter sets aside records that cannot be read, so that none blocks its group, and returns those that could not be.
func deadLetter(ctx context.Context, o Options, queue string, unreadable []provider.Unreadable) (failed []provider.Record) {
	for _, u := range unreadable {
		if _, later := errors.AsType[*provider.UnknownKindError](u.Err); later && u.Record.ReceiveCount <= laterReleaseTries {
			o.Logger.WarnContext(ctx, "a record is of a kind that this build does not know: perhaps a newer one will take it", "queue", queue, "record", u.Record.ID, "error", u.Err)
			failed = append(failed, u.Record)
			continue
		}
		o.Logger.ErrorContext(ctx, "a record cannot be read, it goes to the dead letters", "queue", queue, "record", u.Record.ID, "error", u.Err)
		if err := o.Provider.DeadLetter(ctx, queue, u); err != nil {
			o.Logger.ErrorContext(ctx, "a record could not be put to the dead letters", "queue", queue, "record", u.Record.ID, "error", err)
			failed = append(failed, u.Record)
		}
	}
	return failed
}

// abandon makes failed records visible again, each after as long as its deliveries say, and returns their ids.
func abandon(ctx context.Context, o Options, queue string, records []provider.Record) (failed []string) {
	return abandonAfter(ctx, o, queue, records, func(r *provider.Record) time.Duration { return retryDelay(r.ReceiveCount) })
}

// abandonAfter makes records visible again, each after a delay of its own, and returns their ids.
func abandonAfter(ctx context.Context, o Options, queue string, records []provider.Record, delay func(*provider.Record) time.Duration) (failed []string) {
	if len(records) == 0 {
		return nil
	}
	for _, r := range records {
		failed = append(failed, r.ID)
	}
	for after, together := range byDelay(records, delay) {
		if err := o.Provider.AbandonRecords(ctx, queue, after, together...); err != nil {
			o.Logger.WarnContext(ctx, "failed records stay invisible until their visibility ends", "queue", queue, "error", err)
		}
	}
	return failed
}

// byDelay goes through records by how many seconds they stay invisible, the shortest first.
func byDelay(records []provider.Record, delay func(*provider.Record) time.Duration) iter.Seq2[time.Duration, []provider.Record] {
	by := map[time.Duration][]provider.Record{}
	for i := range records {
		d := delay(&records[i]).Truncate(time.Second)
		by[d] = append(by[d], records[i])
	}
	return func(yield func(time.Duration, []provider.Record) bool) {
		for _, d := range slices.Sorted(maps.Keys(by)) {
			if !yield(d, by[d]) {
				return
			}
		}
	}
}
