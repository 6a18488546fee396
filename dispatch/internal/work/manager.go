package work

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch/internal/intake"
	"github.com/perdure/perdure/internal/faults"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/provider"
)

// manager looks after the activities that run in a worker: it has their leases kept, learns that they are cancelled, and gives up those
// that ignore it. It has one timer for all of them, which activities of less than a moment never see, and no goroutine but while it calls
// the provider. Its lock guards its parts, too.
type manager struct {
	options *Options
	leaked  atomic.Int64

	polls   *cancelPolls
	leases  *leases
	runs    *runs
	writer  *beatWriter
	records *recorder

	mu      sync.Mutex
	batches map[*batch]bool
	timer   *time.Timer
	armed   time.Time // when the timer looks next; zero: not
	news    news
}

// news is what is to be logged and recorded once the manager's lock is free.
type news struct {
	cancels []sighting
	expired []*task // stopped since their runs could not be renewed
}

// sighting is a cancel that an activity has seen: when it was decided, if that is known, and whether the activity's end is waited for.
type sighting struct {
	task      *task
	decidedAt time.Time
	waited    bool
}

func newManager(b *intake.Base, o *Options, r *reporter) *manager {
	p := b.Provider
	m := &manager{options: o, batches: map[*batch]bool{}}
	m.records = &recorder{provider: p, options: o}
	m.polls = &cancelPolls{manager: m, provider: p, reporter: r, executions: map[string]*polled{}}
	m.leases = &leases{manager: m, provider: p}
	m.runs = &runs{manager: m, provider: p}
	m.writer = &beatWriter{manager: m, base: b}
	return m
}

// enter takes charge of a batch, until exit.
func (m *manager) enter(b *batch) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.batches[b] = true
}

// exit ends the charge of a batch whose activities are all over.
func (m *manager) exit(b *batch) {
	m.mu.Lock()
	delete(m.batches, b)
	m.mu.Unlock()
	b.beside.end()
}

// begin takes charge of an activity that is about to run, unless its batch is ending, or it has lost its lock while it waited.
func (m *manager) begin(t *task) (ctx context.Context, ok bool) {
	ctx, cancel := context.WithCancelCause(t.batch.base)
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.options.Clock()
	if !m.mayBegin(t, now) {
		cancel(nil)
		return nil, false
	}

	t.phase, t.began, t.cancel = phaseRunning, now, cancel
	t.beats.begin(now)
	t.lease.begin(m.leases.first(t))
	m.arm(intake.Earlier(intake.Earlier(now.Add(m.options.LeaseAfter), m.polls.watch(t)), t.batch.stopAt))
	if t.hasRun() {
		m.arm(intake.Earlier(t.run.keepAt, m.runs.ends(t)))
	}
	return ctx, true
}

func (m *manager) mayBegin(t *task, now time.Time) bool {
	b := t.batch
	switch {
	case b.stopped != nil, b.ctx.Err() != nil, !b.stopAt.IsZero() && !now.Before(b.stopAt):
		return false
	case t.hasRun() && !now.Before(m.runs.ends(t)):
		return false
	default:
		return t.item.Record.Held(now)
	}
}

// end takes the end of an activity's code. It returns false when the activity was given up before: then its result is not sent.
func (m *manager) end(t *task) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if t.phase != phaseRunning {
		return false
	}
	m.leave(t)
	return true
}

// leave ends the charge of an activity whose code has returned or is given up.
func (m *manager) leave(t *task) {
	t.phase = phaseEnded
	m.polls.unwatch(t)
}

// release ends the charge of tasks whose records are done with. One that is leased and could not be deleted is renewed until its batch
// ends, when the records of the batch are deleted again.
func (m *manager) release(ends []finished) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range ends {
		if h := e.task.item.Record.Hold; e.back || h == nil || h.Ended() {
			e.task.phase = phaseGone
		}
	}
}

// stopAll stops all activities of a batch, and lets none begin.
func (m *manager) stopAll(b *batch, why *perdure.CancelledError) {
	m.mu.Lock()
	if b.stopped == nil {
		b.stopped = why
	}
	m.mu.Unlock()
	m.look()
}

// heed stops an activity that is cancelled.
func (m *manager) heed(t *task, c provider.CancelInfo, now time.Time) {
	if !c.Requested {
		return
	}
	first := t.stop.why == nil
	t.stop.isCancelled(&c)
	if first {
		m.news.cancels = append(m.news.cancels, sighting{t, c.RequestedAt, t.isWaitedFor()})
		if t.isWaitedFor() {
			t.lease.takeAt(t, now)
		}
	}
	t.beginStop(&perdure.CancelledError{Reason: perdure.CancelReason(c.Reason), Message: c.Message}, now)
}

// heedAll stops the activities of an execution that are cancelled.
func (m *manager) heedAll(executionID string, cancels provider.Cancels) {
	if len(cancels) == 0 {
		return
	}
	now := m.options.Clock()
	for b := range m.batches {
		for i := range b.tasks {
			if t := &b.tasks[i]; t.phase == phaseRunning && t.item.ExecutionID == executionID {
				m.heed(t, cancels.Of(t.item.ActivityID), now)
			}
		}
	}
}

// arm sets the timer to a time, unless it is set to an earlier one.
func (m *manager) arm(at time.Time) {
	if at.IsZero() || !m.armed.IsZero() && !at.Before(m.armed) {
		return
	}
	m.armed = at

	after := at.Sub(m.options.Clock())
	switch {
	case after <= 0: // no timer: several that are due at once would run side by side where time is virtual, which the race detector does not bear
		look := m.look // as a timer would call it: not under the context of whatever sets it
		go look()
	case m.timer == nil:
		m.timer = time.AfterFunc(after, m.look)
	default:
		m.timer.Reset(after)
	}
}

// look does what is due, and sets the timer to what is due next.
func (m *manager) look() {
	m.mu.Lock()
	now := m.options.Clock()
	m.armed = time.Time{}
	var next time.Time
	var leaks []leak
	for b := range m.batches {
		at, more := m.lookAfter(b, now)
		next = intake.Earlier(next, at)
		leaks = append(leaks, more...)
	}
	next = intake.Earlier(next, m.polls.due(now))
	m.arm(next)
	told := m.news
	m.news = news{}
	m.records.sightings(m, told.cancels)
	m.mu.Unlock()

	m.logCancels(told.cancels)
	m.logExpired(told.expired)
	for i := range leaks {
		m.giveUp(&leaks[i])
	}
}

// lookAfter looks after the tasks of a batch, and returns when that is to be done again.
func (m *manager) lookAfter(b *batch, now time.Time) (next time.Time, leaks []leak) {
	if b.stopped == nil && !b.stopAt.IsZero() && !now.Before(b.stopAt) {
		b.stopped = &perdure.CancelledError{
			Reason:  perdure.ReasonInvocationDeadline,
			Message: "the invocation is about to end; increase the function timeout for longer activities",
		}
	}
	if b.stopped == nil {
		next = b.stopAt
	}
	for i := range b.tasks {
		t := &b.tasks[i]
		if t.phase != phaseRunning {
			continue
		}
		m.leases.check(t, now)
		m.runs.check(t, now)
		if b.stopped != nil {
			t.beginStop(b.stopped, now)
		}
		next = intake.Earlier(next, m.writer.due(t, now))
		next = intake.Earlier(next, m.runs.due(t, now))

		switch {
		case t.stop.why == nil:
		case now.Before(t.stop.giveUpAt):
			next = intake.Earlier(next, t.stop.giveUpAt)
		default:
			leaks = append(leaks, leak{task: t, ignored: now.Sub(t.stop.at), ran: now.Sub(t.began)})
			m.leave(t)
		}
	}
	return intake.Earlier(next, m.leases.due(b, now)), leaks
}

// leak is an activity that has ignored the end of its context for its grace.
type leak struct {
	task         *task
	ignored, ran time.Duration
}

// giveUp gives an activity up: whatever its code does from now on is not sent.
func (m *manager) giveUp(l *leak) {
	t := l.task
	m.leaked.Add(1)
	t.batch.worker.meter.Count(intake.MetricActivitiesLeaked, t.item.Name, 1)
	faults.Report(t.batch.ctx, faults.Event{
		Kind: faults.GoroutineLeak, InstanceID: t.item.InstanceID, Activity: t.item.Name, ActivityID: t.item.ActivityID,
	})
	t.log().WarnContext(t.batch.ctx, "activity abandoned: it did not return after its context ended",
		"event", logevent.ActivityAbandoned, "reason", string(t.stop.why.Reason), "ignoredFor", l.ignored,
		"ranFor", l.ran)
	t.leaked = true
	r := t.resultOf(t.givenUp())
	go func() { // the manager waits for no call
		switch {
		case !r.back:
			m.records.end(t.batch.ctx, t, t.stop.at, provider.OutcomeAbandoned)
		default:
			m.writer.flush(t.batch.ctx, t)
			if r = m.writer.countRunOut(t.batch.ctx, t, false); !r.back {
				r = t.batch.worker.retried(t.batch.ctx, t, r)
			}
		}
		t.batch.ended.add(finished{t, r})
	}()
}

// logCancels logs cancels that activities have seen.
func (m *manager) logCancels(seen []sighting) {
	for _, s := range seen {
		t := s.task
		about := []any{
			"event", logevent.ActivityCancelled, "reason", string(t.stop.why.Reason), "message", t.stop.why.Message,
			"ranFor", t.stop.at.Sub(t.began),
		}
		if !s.decidedAt.IsZero() {
			about = append(about, "decidedFor", max(0, t.stop.at.Sub(s.decidedAt))) // by another's clock
		}
		t.log().InfoContext(t.batch.ctx, "activity cancelled", about...)
	}
}

// logExpired logs that activities are stopped since their runs could not be renewed.
func (m *manager) logExpired(expired []*task) {
	for _, t := range expired {
		t.log().WarnContext(t.batch.ctx, "activity claim not renewed in time, stopping the activity",
			"event", logevent.ActivityClaimExpired, "ranFor", t.stop.at.Sub(t.began))
	}
}
