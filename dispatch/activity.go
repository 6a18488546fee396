package dispatch

import (
	"context"
	"errors"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/provider"
)

// shift is a batch of records in the hands of a worker: what its activities have in common.
type shift struct {
	ctx context.Context //nolint:containedctx // what calls for the batch are made with, also those that a timer leads to
	// base is what the contexts of the activities are made of: not the end of ctx ends them, but the manager, with a reason.
	base   context.Context //nolint:containedctx // the same
	out    *outcomes
	worker *Worker
	// tellAt is when the activities are told that the invocation is about to end, lastAt when they are waited for no longer.
	// Zero: it has no end that is known.
	tellAt, lastAt time.Time
	since          time.Time // when the invocation began
	line           line
	leased         chan struct{} // closed when the leases are taken of what was delivered before

	// Under the manager's lock.
	tasks []task
	// stopped is why nothing more is begun.
	stopped *perdure.CancelledError
}

// task is an activity in the hands of a worker.
type task struct {
	item  provider.LockedWorkItem
	shift *shift
	index int // in the shift
	// reads and looks are what it shares with others of its execution that came with it.
	reads *provider.CancelRead
	looks *look
	// heard is from where it has not read the cancel record.
	heard int64
	// pushed: its lock is the manager's to keep. That of a record that was fetched is its poller's.
	pushed bool
	// marked: its delivery has left a mark. poison: it is not run any more.
	marked, poison bool
	// forgot: it has taken the marks of earlier deliveries away, since it makes progress. Whoever holds the pulse's pen has it.
	forgot bool
	// died is how many other deliveries of its record have, turn is closed when it may run, being a suspect, and single is that it is
	// the one of the process that does. apart: it goes back, not to come together with such again.
	died          int
	turn          chan struct{}
	single, apart bool
	// runOuts is how often in a row its attempt has run into the end of an invocation before, without progress.
	runOuts int

	// Under the manager's lock, until the activity has ended.
	phase  phase
	began  time.Time
	cancel context.CancelCauseFunc
	// signal is what the context was ended with, at signalled; giveUpAt is when the activity is waited for no longer.
	signal              *perdure.CancelledError
	signalled, giveUpAt time.Time
	// lost: another worker may have it. deleted: its instance is, so that nothing is left of it. unheard: it is cancelled since its
	// execution has ended, so that nobody waits for its end.
	lost, deleted, unheard bool
	// abandoned: its time was over, and its code may still run. previous is how the attempt before ended, where its worker knew that.
	abandoned bool
	previous  string
	// looseSince is when the hold of a fetched record was found ended.
	looseSince time.Time
	// run is that of an activity which is waited for when it is cancelled, once it was taken, before who had it until then; keepAt is when it
	// is to be taken again.
	run      provider.Run
	before   *provider.Run
	left     provider.ActivityRecord // by then
	keepAt   time.Time
	keeping  bool
	renewAt  time.Time
	renewing bool
	pulse    pulse
}

// phase is how far a task has come.
type phase int

const (
	phaseWaiting phase = iota // its code has not begun
	phaseRunning
	phaseEnded // it has returned, or was given up: what became of it is being told
	phaseGone  // its record is deleted, given back or lost
)

// newShift makes the tasks of a batch.
func (w *Worker) newShift(ctx context.Context, items []provider.LockedWorkItem) *shift {
	s := &shift{ctx: ctx, worker: w, out: newOutcomes(len(items)), tasks: make([]task, len(items))}
	s.tellAt, s.lastAt = w.manager.lastMoments(ctx)
	s.base = activityContext{context.WithoutCancel(ctx), s.tellAt}
	for i := range items {
		t := &s.tasks[i]
		t.item, t.shift, t.index, t.pushed = items[i], s, i, items[i].Record.Hold == nil
		t.reads = items[i].Cancel
		if mayBeOver(&t.item) {
			t.looks = looksFor(ctx, s.tasks[:i], items[i].ExecutionID)
		}
	}
	s.line.busy = len(items)
	return s
}

// activityContext ends by the manager alone, and says when that will be.
type activityContext struct {
	context.Context //nolint:containedctx // it is one

	deadline time.Time
}

func (c activityContext) Deadline() (time.Time, bool) { return c.deadline, !c.deadline.IsZero() }

// reserve is what an invocation keeps of its time to tell how its activities ended.
const reserve = 2 * time.Second

// lastMoments are when the activities of an invocation are told that it is about to end, and when they are waited for no
// longer. An invocation of seconds keeps at least three eighths of them for work.
func (m *manager) lastMoments(ctx context.Context) (tellAt, lastAt time.Time) {
	end, ok := ctx.Deadline()
	if !ok {
		return tellAt, lastAt
	}
	left := end.Sub(m.options.Clock())
	kept := min(reserve, left/4)
	lastAt = end.Add(-kept)
	return lastAt.Add(-min(m.grace(), (left-kept)/2)), lastAt
}

// stopOf says why a shift's context has ended.
func stopOf(ctx context.Context) *perdure.CancelledError {
	cause := context.Cause(ctx)
	reason := perdure.ReasonShutdown
	if errors.Is(cause, context.DeadlineExceeded) {
		reason = perdure.ReasonDeadline
	}
	return &perdure.CancelledError{Reason: reason, Message: cause.Error()}
}

// endingOf is what is told of a task that ended so, by itself or given up.
func (t *task) endingOf(e ending) ending {
	switch {
	case t.lost, t.signal != nil && onlyOfWorkers(t.signal.Reason):
		return ending{back: true}
	default:
		return e
	}
}

// onlyOfWorkers: the worker cannot go on with the activity, but another can: whatever this one returns is no success.
func onlyOfWorkers(r perdure.CancelReason) bool {
	return r == perdure.ReasonLockLost || r == perdure.ReasonDeadline || r == perdure.ReasonShutdown
}
