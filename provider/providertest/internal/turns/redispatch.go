package turns

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/providertest/internal/kit"
)

// Redispatch tests that a redispatch reads the outputs of a committed turn from its segment and sends the outputs that
// are not settled (R4, R9).
func Redispatch() kit.Group {
	return kit.Group{Name: "redispatch", Cases: []kit.Case{
		{Name: "OnlyUnsettledOutputsAreSentAgain", Run: onlyUnsettled},
		{Name: "RedispatchStartsAtSegmentOfTheMessage", Run: fromCovering},
		{Name: "WatermarkOfAnotherInboxCoversNothing", Run: otherInbox},
		{Name: "EndedInstanceSendsNothing", Run: endedSendsNothing},
		{Name: "RepeatedWorkItemsAndTimersAreEqual", Run: sameAgain},
		{Name: "RejectedOutputIsRejectedAgain", Run: refusedAgain},
		{Name: "UnwrittenStatusIsWritten", Run: statusRepaired, Needs: []kit.Capability{kit.Faults}},
		{
			Name: "UnwrittenStatusIsRefreshed", Run: statusRefreshed,
			Needs: []kit.Capability{kit.Faults, kit.VirtualTime},
		},
		{Name: "FinalStatusIsNotRefreshed", Run: endNotRefreshed, Needs: []kit.Capability{kit.Faults}},
		{Name: "UnwrittenFinalStatusIsWritten", Run: endRepaired, Needs: []kit.Capability{kit.Faults}},
		{Name: "UnsentOutputsAreSentAndFinalStatusIsWritten", Run: unsentSent, Needs: []kit.Capability{kit.Faults}},
		{Name: "StaleViewDoesNotReviveEndedInstance", Run: endedStaysEnded},
		{Name: "InlineActivityIsNotSent", Run: inlineActivityIsNotSent},
		{Name: "StatusIsDeferredToLaterTurn", Run: statusesLeft},
		{Name: "AttemptsOfInlineActivityContinueInItsQueue", Run: attemptsGoOn},
	}}
}

func onlyUnsettled(f *kit.Fixture) {
	e := f.Start("a")
	// 3 4 5, timers 6 7
	e.Commit(kit.TurnStarted(), kit.Activity(kit.Queue), kit.Activity(kit.Queue), kit.Activity(kit.Queue),
		kit.Timer(f.StoredNow()), kit.Timer(f.StoredNow()))
	e.Commit(kit.Completed(3), history.Event{
		Kind: history.ActivityFailed, SourceEventID: 5, Attempt: 1, Error: &history.Failure{Type: "T", Message: "m"},
	},
		history.Event{Kind: history.TimerFired, SourceEventID: 6})
	f.Work(kit.Queue)
	f.Timers()
	f.Redispatch(e, kit.At(1))
	f.WantWork(kit.Queue, 4)
	if ts := f.Timers(); len(ts) != 1 || ts[0].TimerID != 7 {
		f.T.Errorf("got timers %s, want 7", kit.Text(ts))
	}
}

// fromCovering uses a separate instance for each test, because a redispatch can omit outputs that the previous one
// sent.
func fromCovering(f *kit.Fixture) {
	for from, want := range map[int][]int64{0: {2, 3, 4}, 1: {2, 3, 4}, 2: {3, 4}, 3: {4}, 4: nil} {
		e := f.Start(fmt.Sprint("from-", from))
		for range 3 {
			e.Commit(kit.Activity(kit.Queue)) // events 2, 3 and 4 of the messages at 1, 2 and 3
		}
		f.WantWork(kit.Queue, 2, 3, 4)
		f.Redispatch(e, kit.At(from))
		f.WantWork(kit.Queue, want...)
	}
}

func otherInbox(f *kit.Fixture) {
	e := f.Start("a")
	e.Commit(kit.Activity(kit.Queue))
	f.Work(kit.Queue)
	f.Redispatch(e, provider.Position{Inbox: "another", Sequence: "1"})
	f.WantNothingSent()
}

func endedSendsNothing(f *kit.Fixture) {
	e := f.Start("a")
	e.Commit(kit.TurnStarted(), kit.Activity(kit.Queue), kit.Timer(f.StoredNow()))
	e.Commit(kit.Ended(`1`))
	f.Work(kit.Queue)
	f.Timers()
	f.Redispatch(e, kit.At(1))
	f.WantNothingSent()
	f.WantStatus("a", provider.StatusCompleted)
}

func sameAgain(f *kit.Fixture) {
	e := f.Start("a")
	due := f.StoredNow().Add(400 * time.Millisecond)
	e.Commit(kit.TurnStarted(), kit.Activity(kit.Queue), kit.Activity(kit.OtherQueue), kit.Timer(due))
	bodies := func() (all []string) {
		for _, queue := range []string{kit.Queue, kit.OtherQueue, provider.QueueTimers} {
			for _, r := range f.Drain(queue) {
				all = append(all, r.Body)
			}
		}
		return all
	}
	first := bodies()
	again := make([]string, len(first))
	for i, body := range first {
		if again[i] = body; i < 2 { // a resent work item differs only in this field
			again[i] = strings.Replace(body, `,"token":`, `,"again":true,"token":`, 1)
		}
	}
	f.Redispatch(e, kit.At(1))
	f.WantEqual("sent again", bodies(), again)
	if len(first) != 3 {
		f.T.Errorf("got %d messages, want 3", len(first))
	}
	f.WantStatus("a", provider.StatusRunning)
}

func refusedAgain(f *kit.Fixture) {
	e := f.Start("a")
	t := e.Turn(kit.TurnStarted(), kit.Activity("nowhere"), kit.Activity(kit.Queue))
	refused, err := f.Provider.AckOrchestrationItem(f.Ctx(), t)
	f.Must(err)
	f.Work(kit.Queue)
	f.WantEqual("rejected again", f.Redispatch(e, kit.At(1)), refused)
	f.WantWork(kit.Queue, 4)
}

func statusRepaired(f *kit.Fixture) {
	e := f.Start("a")
	unwritten(f, e, kit.TurnStarted(), kit.Activity(kit.Queue))
	f.WantStatus("a", provider.StatusPending)
	f.Redispatch(e, kit.At(1))
	f.WantStatus("a", provider.StatusRunning)
	if in := f.Instance("a"); in.Version != kit.V1 {
		f.T.Errorf("got version %q, want that of the first turn", in.Version)
	}
}

// unwritten commits a turn whose status cannot be written. The commit still succeeds.
func unwritten(f *kit.Fixture, e *kit.Execution, events ...history.Event) {
	f.T.Helper()
	f.Fail(kit.Fault{Operation: kit.Update, Failure: kit.Rejected, Times: 1})
	_, err := f.Provider.AckOrchestrationItem(f.Ctx(), e.Turn(events...))
	f.Must(err)
}

func statusRefreshed(f *kit.Fixture) {
	e := f.Start("a")
	unwritten(f, e, kit.TurnStarted(), history.Event{
		Kind: history.CustomStatusSet, CustomStatus: history.Payload(`"on it"`),
	}, kit.Activity(kit.Queue))
	f.Advance(30 * time.Second)
	ts := f.Timers()
	if len(ts) != 1 || ts[0].Refresh != 1 || ts[0].Segment != 1 || ts[0].InstanceID != "a" ||
		ts[0].ExecutionID != e.Head.ExecutionID {
		f.T.Fatalf("got timers %s, want a refresh", kit.Text(ts))
	}
	wake := provider.Message{
		Kind: provider.MessageWake, InstanceID: "a", ExecutionID: e.Head.ExecutionID, Segment: 1,
		TimerID: ts[0].TimerID, Refresh: 1,
	}
	f.Fail(kit.Fault{Operation: kit.Update, Failure: kit.Rejected, Times: 1})
	if f.Provider.RefreshStatus(f.Ctx(), &wake) == nil {
		f.T.Error("no error although the status refresh failed")
	}
	f.Advance(time.Minute)
	if ts = f.Timers(); len(ts) != 1 || ts[0].Refresh != 2 {
		f.T.Errorf("got timers %s, want another refresh", kit.Text(ts))
	}
	f.Must(f.Provider.RefreshStatus(f.Ctx(), &wake))
	if in := f.Instance("a"); in.Status != provider.StatusRunning || in.Version != kit.V1 ||
		string(in.CustomStatus) != `"on it"` {
		f.T.Errorf("custom status after the refresh: got %s", kit.Text(in))
	}
	f.WantWork(kit.Queue, 4)
	f.Must(f.Provider.RefreshStatus(f.Ctx(), &wake))
	f.WantNothingSent()
}

// endNotRefreshed checks that the last turn writes the terminal status after all outputs were sent (R9).
func endNotRefreshed(f *kit.Fixture) {
	e := f.Start("a")
	e.Commit(kit.TurnStarted(), kit.Activity(kit.Queue))
	f.Work(kit.Queue)
	f.Fail(kit.Fault{Operation: kit.Update, Failure: kit.Rejected, Times: 1})
	if _, err := f.Provider.AckOrchestrationItem(f.Ctx(), e.Turn(kit.Completed(3), kit.Ended(`1`))); err == nil {
		f.T.Error("no error although the final status was not written")
	}
	f.Must(f.Provider.RefreshStatus(f.Ctx(), &provider.Message{
		Kind: provider.MessageWake, InstanceID: "a", ExecutionID: e.Head.ExecutionID, Segment: 1, TimerID: 2,
		Refresh: 1,
	}))
	f.WantStatus("a", provider.StatusRunning)
	f.WantNothingSent()
}

func endRepaired(f *kit.Fixture) {
	e := f.Start("a")
	e.Commit(kit.TurnStarted(), kit.Activity(kit.Queue))
	f.Work(kit.Queue)
	f.Fail(kit.Fault{Operation: kit.Update, Failure: kit.Rejected, Times: 1})
	if _, err := f.Provider.AckOrchestrationItem(f.Ctx(), e.Turn(kit.Completed(3), kit.Ended(`1`))); !errors.Is(err,
		provider.ErrDispatchIncomplete) {
		f.T.Errorf("redispatch of a final status that was not written: got error %v", err)
	}
	f.WantStatus("a", provider.StatusRunning)
	f.Redispatch(e, kit.At(2))
	f.WantStatus("a", provider.StatusCompleted)
	f.WantNothingSent()
}

func unsentSent(f *kit.Fixture) {
	e := f.Start("a")
	f.Fail(kit.Fault{Operation: kit.Send, Failure: kit.Rejected, Times: 1})
	if _, err := f.Provider.AckOrchestrationItem(f.Ctx(),
		e.Turn(kit.TurnStarted(), kit.Activity(kit.Queue))); !errors.Is(err, provider.ErrDispatchIncomplete) {
		f.T.Errorf("redispatch of an output that was not sent: got error %v", err)
	}
	f.WantNothingSent()
	f.Redispatch(e, kit.At(1))
	f.WantWork(kit.Queue, 3)
	f.WantStatus("a", provider.StatusRunning)
}

// endedStaysEnded checks a frozen function that continues and redispatches a history that it read long ago.
func endedStaysEnded(f *kit.Fixture) {
	e := f.Start("a")
	e.Commit(kit.TurnStarted(), kit.Activity(kit.Queue))
	stale := e.Read()
	e.Commit(kit.Completed(3), kit.Ended(`1`))
	_, err := f.Provider.RedispatchOrchestration(f.Ctx(), stale, kit.Since(kit.At(1)))
	f.Must(err)
	f.WantStatus("a", provider.StatusCompleted)
}
