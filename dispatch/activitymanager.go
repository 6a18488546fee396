package dispatch

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/provider"
)

// manager looks after the activities that a worker runs: it keeps their leases, finds out that they are cancelled, and gives
// up those that do not heed it. It has one timer for all of them, which activities of less than a moment never see, and no
// goroutine but while it calls the provider.
type manager struct {
	options  *Options
	reporter *reporter
	leaked   atomic.Int64

	mu         sync.Mutex
	shifts     map[*shift]bool
	executions map[string]*watched
	timer      *time.Timer
	armed      time.Time  // when the timer looks next; zero: not
	seen       []sighting // cancels that the log is still to tell of
}

func newManager(o *Options, r *reporter) *manager {
	return &manager{options: o, reporter: r, shifts: map[*shift]bool{}, executions: map[string]*watched{}}
}

func (m *manager) grace() time.Duration { return max(m.options.CancellationGracePeriod, 0) }

// enter takes charge of a shift, until it is left.
func (m *manager) enter(s *shift) (leave func()) {
	m.mu.Lock()
	m.shifts[s] = true
	m.mu.Unlock()
	release := context.AfterFunc(s.ctx, func() { m.stop(s, stopOf(s.ctx)) })
	return func() {
		release()
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.shifts, s)
	}
}

// begin takes charge of an activity that is about to run, unless its shift is ending, or it has lost its lock while it waited.
func (m *manager) begin(t *task) (ctx context.Context, ok bool) {
	ctx, cancel := context.WithCancelCause(t.shift.base)
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.options.Clock()
	if s := t.shift; s.stopped != nil || !s.tellAt.IsZero() && !now.Before(s.tellAt) || !t.item.Record.Held(now) {
		cancel(nil)
		return nil, false
	}
	t.phase, t.began, t.cancel = phaseRunning, now, cancel
	t.pulse.begin(now)
	t.renewAt = m.firstRenewal(t)
	m.watch(t)
	m.arm(earlier(t.began.Add(min(m.options.LockAfter, m.options.CancelPollInterval)), t.shift.tellAt))
	return ctx, true
}

// end takes the end of an activity. It returns false when the activity was given up before: then nobody hears of it.
func (m *manager) end(t *task) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if t.phase != phaseRunning {
		return false
	}
	m.ended(t)
	return true
}

func (m *manager) ended(t *task) {
	t.phase = phaseEnded
	m.unwatch(t)
}

// release ends the charge of tasks whose records are done with. One that is leased and could not be deleted is renewed until
// its shift ends, when the records of the batch are deleted again.
func (m *manager) release(ends []ended) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range ends {
		if h := e.task.item.Record.Hold; e.back || h == nil || h.Ended() {
			e.task.phase = phaseGone
		}
	}
}

// stop ends the contexts of all activities of a shift, and lets none begin.
func (m *manager) stop(s *shift, why *perdure.CancelledError) {
	m.mu.Lock()
	if s.stopped == nil {
		s.stopped = why
	}
	m.mu.Unlock()
	m.look()
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
		look := m.look // as a timer would call it: under no context of whoever sets it
		go look()
	case m.timer == nil:
		m.timer = time.AfterFunc(after, m.look)
	default:
		m.timer.Reset(after)
	}
}

// earlier is the earlier of two times, of which zero is never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// look does what is due, and sets the timer to what is due next.
func (m *manager) look() {
	m.mu.Lock()
	now := m.options.Clock()
	m.armed = time.Time{}
	var next time.Time
	var leaks []leak
	for s := range m.shifts {
		at, more := m.lookAfter(s, now)
		next, leaks = earlier(next, at), append(leaks, more...)
	}
	next = earlier(next, m.pollDue(now))
	m.arm(next)
	seen := m.seen
	m.seen = nil
	m.mu.Unlock()
	m.tellSeen(seen)
	for i := range leaks {
		m.tellLeak(&leaks[i])
	}
}

// lookAfter looks after the tasks of a shift, and says when that is to be done again.
func (m *manager) lookAfter(s *shift, now time.Time) (next time.Time, leaks []leak) {
	if s.stopped == nil && !s.tellAt.IsZero() && !now.Before(s.tellAt) {
		s.stopped = &perdure.CancelledError{Reason: perdure.ReasonDeadline, Message: "the invocation is about to end: what takes longer needs a longer function timeout"}
	}
	if s.stopped == nil {
		next = s.tellAt
	}
	for i := range s.tasks {
		t := &s.tasks[i]
		if t.phase != phaseRunning {
			continue
		}
		m.checkLock(t, now)
		if s.stopped != nil {
			m.signal(t, s.stopped, now)
		}
		next = earlier(next, m.heartDue(t, now))
		next = earlier(next, m.runDue(t, now))
		if t.signal == nil {
			continue
		}
		if now.Before(t.giveUpAt) {
			next = earlier(next, t.giveUpAt)
			continue
		}
		leaks = append(leaks, leak{task: t, ignored: now.Sub(t.signalled), ran: now.Sub(t.began)})
		m.ended(t)
	}
	return earlier(next, m.leaseDue(s, now)), leaks
}

// signal ends an activity's context. The first reason stays; a later one may shorten the grace.
func (m *manager) signal(t *task, why *perdure.CancelledError, now time.Time) {
	if t.signal == nil {
		t.signal, t.signalled, t.giveUpAt = why, now, now.Add(m.grace())
		if t.item.WaitCancel && t.item.CloseBy != nil { // its end is told before anybody says that it is over by that
			t.giveUpAt = earlier(t.giveUpAt, *t.item.CloseBy)
		}
		t.cancel(why)
	}
	if why.Reason == perdure.ReasonDeadline {
		t.giveUpAt = earlier(t.giveUpAt, t.shift.lastAt)
	}
}

// leak is an activity that did not heed the end of its context.
type leak struct {
	task         *task
	ignored, ran time.Duration
}

// tellLeak gives an activity up: whatever it does from now on, nobody hears of it.
func (m *manager) tellLeak(l *leak) {
	t := l.task
	m.leaked.Add(1)
	m.options.Logger.WarnContext(t.shift.ctx, "activity ignores the end of its context: it is not waited for any longer, and leaked",
		t.about("reason", string(t.signal.Reason), "ignoredFor", l.ignored, "ranFor", l.ran)...)
	e := t.endingOf(t.givenUp())
	go func() { // who looks after all of them waits for no call
		if e.back {
			m.flush(t.shift.ctx, t)
			if e = m.countRunOut(t.shift.ctx, t, false); !e.back {
				e = t.shift.worker.retried(t.shift.ctx, t, e)
			}
		} else {
			m.leave(t.shift.ctx, t, t.signalled, provider.EndLeaked)
		}
		t.shift.out.add(ended{task: t, ending: e})
	}()
}
