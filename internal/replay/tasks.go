package replay

import (
	"encoding/json"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/replay/payloads"
)

// tasks are the open waits of an execution: what its code asked for, and whose outcome is not in history yet. Only they settle a task or change
// how it can settle, so that the coroutines that wait for it are woken.
type tasks struct {
	scheduler      *scheduler
	payloads       *payloads.Loader
	recordWaitEnds bool
	open           map[int64]*Task // by the id of the event that scheduled it last
	arrivals       arrivals        // outcomes that the code has not seen
	mail           *mailbox        // nil until there is need of it
	untaken        int             // bytes of results that wait for their Await

	shielded *ends             // of the scope that no cancel reaches
	awaited  map[*Task][]*ends // by tasks whose end is waited for now
}

// events returns the execution's mailbox; most never need one.
func (ts *tasks) events() *mailbox {
	if ts.mail == nil {
		ts.mail = newMailbox(ts)
	}
	return ts.mail
}

// add adds a task, which its event's outcome settles.
func (ts *tasks) add(t *Task) { ts.open[t.id] = t }

// forget removes a task: what comes about its event is dropped.
func (ts *tasks) forget(t *Task) { delete(ts.open, t.id) }

// become makes a task stand for another event.
func (ts *tasks) become(t *Task, ev *history.Event) {
	t.id = ev.ID
	t.kind = ev.Kind
	t.fireAt = ev.FireAt
	ts.add(t)
}

// settle ends a task, with a result or a failure, and wakes the coroutines that wait for it.
func (ts *tasks) settle(t *Task, result json.RawMessage, f *history.Failure) {
	ts.untaken += len(result) - len(t.result)
	t.done = true
	t.result = result
	t.failure = f

	for _, c := range t.waiters {
		c.tell(t)
		ts.scheduler.wake(c)
	}
	t.waiters = nil
	t.one[0] = nil

	if t.child != nil {
		t.child.input = nil
	}
	if t.waits != waitsForNone {
		ts.hasEnded(t)
	}
}

// takeResult hands out a task's result, and forgets it.
func (ts *tasks) takeResult(t *Task) json.RawMessage {
	r := t.result
	t.result = nil
	ts.untaken -= len(r)
	return r
}

// cancel settles a task as cancelled, or notes that, where its end is to be waited for.
func (ts *tasks) cancel(t *Task, f *history.Failure) {
	t.cancelled = true
	if t.waits == waitsForNone {
		ts.settle(t, nil, f)
		return
	}

	t.failure = f
	if t.ofScope() != nil {
		t.waits = waitsWithScope
	}
	if t.kind == history.TimerCreated { // a child between two attempts
		ts.settleEnded(t, history.OutcomeEnded)
	} else if t.scope.shielded() {
		ts.waitIn(shield, t)
	}
}

// settleEnded settles a task that was cancelled, and has ended.
func (ts *tasks) settleEnded(t *Task, ended string) {
	f := *t.failure
	f.CancelOutcome = ended
	ts.settle(t, nil, &f)
}

// scheduled returns the open tasks that are not cancelled, with or without those that the cancel of the instance does not reach.
func (ts *tasks) scheduled(shielded bool) []*Task {
	var all []*Task
	for _, t := range ts.open {
		if !t.done && !t.cancelled && (shielded || !t.scope.shielded()) {
			all = append(all, t)
		}
	}
	return all
}

// bytes is roughly what the open tasks take in memory, with the results that wait to be taken.
func (ts *tasks) bytes() int {
	return len(ts.open)*taskBytes + ts.mail.bytes() + ts.untaken
}
