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
}

// NewOrchestrator makes an orchestrator. It calls nothing.
func NewOrchestrator(opts Options) *Orchestrator {
	opts = opts.withDefaults()
	return &Orchestrator{options: opts, provider: opts.Provider, cache: newCache(opts.CacheBytes, opts.Clock)}
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
// records that failed: of each instance's a suffix, since failing one message fails all later ones of its group (R2). Of the instances
// with a message that was received more than twice one comes last, alone, and the others are left to other invocations (R13).
func (o *Orchestrator) HandleRecords(ctx context.Context, records []provider.Record) (failed []string) {
	items, unreadable := o.provider.AdoptOrchestrationItems(records)
	stuck := deadLetter(ctx, o.options, provider.QueueInbox, unreadable)
	items, failed = o.without(ctx, items, stuck)
	together, alone := itemsInCompany(items)
	done, more := o.handleTogether(ctx, together)
	failed = append(failed, more...)
	if len(alone) == 0 {
		return failed
	}
	if len(done) > 0 {
		o.deleteEarly(ctx, done) // if the last one takes the process down, they are not delivered again
	}
	var rest []provider.Record
	for _, it := range alone[1:] {
		for i := range it.Messages {
			rest = append(rest, it.Messages[i].Record)
		}
	}
	failed = append(failed, leaveToOthers(ctx, o.options, provider.QueueInbox, rest)...)
	return append(failed, o.handle(ctx, alone[0]).failed...)
}

// handleTogether runs the turns of instances side by side. Those of the records that are done with, and not deleted yet, come back.
func (o *Orchestrator) handleTogether(ctx context.Context, items []*provider.OrchestrationItem) (done []provider.Record, failed []string) {
	if len(items) == 1 {
		h := o.handle(ctx, items[0])
		return h.done, h.failed
	}
	results := make(chan handled, len(items))
	for _, it := range items {
		go func() { results <- o.handle(ctx, it) }()
	}
	return o.collect(ctx, results, len(items))
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

// handled is what became of an item's records.
type handled struct {
	done   []provider.Record
	failed []string
}

func (o *Orchestrator) collect(ctx context.Context, results <-chan handled, n int) (done []provider.Record, failed []string) {
	var late <-chan time.Time
	for ; n > 0; n-- {
		for waiting := true; waiting; {
			select {
			case r := <-results:
				done, failed, waiting = append(done, r.done...), append(failed, r.failed...), false
			case <-late:
				o.deleteEarly(ctx, done)
				done, late = nil, nil
			}
		}
		if late == nil && len(done) > 0 && n > 1 {
			late = time.After(outlived)
		}
	}
	return done, failed
}

// deleteEarly: the mapping deletes them again when the batch is over, which does no harm, so an error is not one.
func (o *Orchestrator) deleteEarly(ctx context.Context, done []provider.Record) {
	if err := o.provider.DeleteRecords(ctx, provider.QueueInbox, done...); err != nil {
		o.options.Logger.WarnContext(ctx, "finished inbox records were not deleted early", "records", len(done), "error", err)
	}
}

// handle runs one instance's messages. What fails is made visible again soon.
func (o *Orchestrator) handle(ctx context.Context, it *provider.OrchestrationItem) handled {
	s := &session{o: o, item: it, rest: it.Messages}
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
	o.options.Logger.ErrorContext(ctx, "the turn failed, its messages will be delivered again",
		"instance", it.InstanceID, "messages", len(failed), "attemptCount", failed[0].Record.ReceiveCount, "error", err)
	abandoned := make([]provider.Record, len(failed))
	for i, m := range failed {
		abandoned[i] = m.Record
	}
	h.failed = abandon(ctx, o.options, provider.QueueInbox, abandoned)
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
	for _, r := range records {
		failed = append(failed, r.ID)
	}
	for delay, together := range byDelay(records, retryDelay) {
		if err := o.Provider.AbandonRecords(ctx, queue, delay, together...); err != nil {
			o.Logger.WarnContext(ctx, "failed records stay invisible until their visibility ends", "queue", queue, "error", err)
		}
	}
	return failed
}

// byDelay goes through records by how long their deliveries say that they stay invisible, the shortest first.
func byDelay(records []provider.Record, delay func(deliveries int) time.Duration) iter.Seq2[time.Duration, []provider.Record] {
	by := map[time.Duration][]provider.Record{}
	for _, r := range records {
		d := delay(r.ReceiveCount)
		by[d] = append(by[d], r)
	}
	return func(yield func(time.Duration, []provider.Record) bool) {
		for _, d := range slices.Sorted(maps.Keys(by)) {
			if !yield(d, by[d]) {
				return
			}
		}
	}
}
