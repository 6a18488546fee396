package providertest

import (
	"fmt"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// interruptionsNoted: external requests to end or pause an instance are recorded for the holder of its messages (R20).
func interruptionsNoted(f *fixture) {
	none := []provider.Message{
		{Kind: provider.MessageWake},
		{Kind: provider.MessageEventRaised, Name: "e", EventID: "e1"},
		{Kind: provider.MessageCancel, StartID: "s", Parent: &history.Parent{InstanceID: "p", ExecutionID: "px", EventID: 3}},
		{Kind: provider.MessageExecutionResumed, EventID: history.PauseIDPrefix + "1"},
	}
	noted := []provider.Message{
		{Kind: provider.MessageCancel, Reason: "requested"},
		{Kind: provider.MessageTerminate},
		{Kind: provider.MessageCancelActivity, ExecutionID: "x", ActivityID: 3},
		{Kind: provider.MessageExecutionSuspended, EventID: history.PauseIDPrefix + "2"},
	}
	for i, m := range append(none, noted...) {
		m.InstanceID = fmt.Sprint("a", i)
		before := f.now().Add(-time.Millisecond)
		f.enqueue(m)
		at, err := f.p.ReadInterruption(f.ctx(), m.InstanceID)
		if f.must(err); at.IsZero() != (i < len(none)) || !at.IsZero() && (at.Before(before) || at.After(f.now())) {
			f.t.Errorf("%s: interruption stored at %v, want between %v and %v", m.Kind, at, before, f.now())
		}
	}
}

func inlineActivity() history.Event {
	e := activity(Queue)
	e.Inline = true
	return e
}

// whatRanInlineIsNotSent: the commit does not send activities that ended in the turn, were cancelled in it, or run in
// the process. A repeated dispatch depends only on the history (R20).
func whatRanInlineIsNotSent(f *fixture) {
	e := f.start("a")
	outcome := completed(3)
	outcome.Inline = true
	cancelled := history.Event{Kind: history.ActivityCancelRequested, SourceEventID: 4, Reason: "requested", RequestedBy: "code"}
	t := e.turn(turnStarted(), inlineActivity(), inlineActivity(), inlineActivity(), inlineActivity(), activity(Queue), cancelled, outcome) // 3 4 5 6 7
	t.Cancels = provider.CancelsOf(t.Events)
	t.Running = map[int64]bool{5: true}
	refused, err := f.p.AckOrchestrationItem(f.ctx(), t)
	if f.must(err); len(refused) > 0 {
		f.t.Fatalf("rejected outputs: %v", refused)
	}
	e.follow(t)
	f.wantWork(Queue, 6, 7)
	f.redispatch(e, at(1))
	f.wantWork(Queue, 5, 6, 7)
}

// statusesLeft: a turn defers the status to a later one, which writes the status from the history although it did not
// change it. A terminal status is always written.
func statusesLeft(f *fixture) {
	for _, later := range []provider.StatusWrite{provider.StatusWriteIfChanged, provider.StatusWriteAlways} {
		e := f.start(fmt.Sprint("a", later))
		left := e.turn(turnStarted())
		left.StatusWrite = provider.StatusWriteDeferred
		take(e, left)
		f.wantStatus(e.instance.InstanceID, provider.StatusPending)

		next := e.turn(turnStarted())
		next.StatusWrite = later
		take(e, next)
		want := map[provider.StatusWrite]provider.RuntimeStatus{provider.StatusWriteIfChanged: provider.StatusPending, provider.StatusWriteAlways: provider.StatusRunning}[later]
		f.wantStatus(e.instance.InstanceID, want)

		end := e.turn(turnStarted(), ended("1"))
		end.StatusWrite = provider.StatusWriteDeferred
		take(e, end)
		f.wantStatus(e.instance.InstanceID, provider.StatusCompleted)
	}

	e := f.start("b")
	left := e.turn(turnStarted())
	left.StatusWrite = provider.StatusWriteDeferred
	take(e, left)
	f.redispatch(e, at(1))
	f.wantStatus("b", provider.StatusRunning)
}

// attemptsGoOn: an inline activity whose next attempt belongs to its queue is sent with that attempt when it is due.
func attemptsGoOn(f *fixture) {
	e := f.start("a")
	left := inlineActivity()
	due := f.now().Add(time.Second)
	left.Attempt, left.FireAt = 3, &due
	e.commit(turnStarted(), left)
	f.Advance(2 * time.Second)
	items := f.work(Queue)
	if len(items) != 1 || items[0].Attempt != 3 || items[0].NotBefore == nil || !items[0].NotBefore.Equal(due) {
		f.t.Errorf("work items %s, want attempt 3 at %v", text(items), due)
	}
}
