package turns

import (
	"fmt"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/providertest/internal/kit"
)

func inlineActivity() history.Event {
	e := kit.Activity(kit.Queue)
	e.Inline = true
	return e
}

// inlineActivityIsNotSent checks that the commit does not send activities that ended or were cancelled in the turn, or
// that run in the process. A redispatch depends only on the history (R20).
func inlineActivityIsNotSent(f *kit.Fixture) {
	e := f.Start("a")
	outcome := kit.Completed(3)
	outcome.Inline = true
	cancelled := history.Event{
		Kind: history.ActivityCancelRequested, SourceEventID: 4, Reason: "requested", RequestedBy: "code",
	}
	// 3 4 5 6 7
	t := e.Turn(kit.TurnStarted(), inlineActivity(), inlineActivity(), inlineActivity(), inlineActivity(),
		kit.Activity(kit.Queue), cancelled, outcome)
	t.Cancels = provider.CancelsOf(t.Events)
	t.Running = map[int64]bool{5: true}
	refused, err := f.Provider.AckOrchestrationItem(f.Ctx(), t)
	if f.Must(err); len(refused) > 0 {
		f.T.Fatalf("rejected outputs: got %v", refused)
	}
	e.Follow(t)
	f.WantWork(kit.Queue, 6, 7)
	f.Redispatch(e, kit.At(1))
	f.WantWork(kit.Queue, 5, 6, 7)
}

// statusesLeft checks a turn that defers the status to a later turn. The later turn writes the status from the history
// although it did not change it. A terminal status is always written.
func statusesLeft(f *kit.Fixture) {
	for _, later := range []provider.StatusWrite{provider.StatusWriteIfChanged, provider.StatusWriteAlways} {
		e := f.Start(fmt.Sprint("a", later))
		left := e.Turn(kit.TurnStarted())
		left.StatusWrite = provider.StatusWriteDeferred
		kit.CommitTurn(e, left)
		f.WantStatus(e.Instance.InstanceID, provider.StatusPending)

		next := e.Turn(kit.TurnStarted())
		next.StatusWrite = later
		kit.CommitTurn(e, next)
		want := map[provider.StatusWrite]provider.RuntimeStatus{
			provider.StatusWriteIfChanged: provider.StatusPending, provider.StatusWriteAlways: provider.StatusRunning,
		}[later]
		f.WantStatus(e.Instance.InstanceID, want)

		end := e.Turn(kit.TurnStarted(), kit.Ended("1"))
		end.StatusWrite = provider.StatusWriteDeferred
		kit.CommitTurn(e, end)
		f.WantStatus(e.Instance.InstanceID, provider.StatusCompleted)
	}

	e := f.Start("b")
	left := e.Turn(kit.TurnStarted())
	left.StatusWrite = provider.StatusWriteDeferred
	kit.CommitTurn(e, left)
	f.Redispatch(e, kit.At(1))
	f.WantStatus("b", provider.StatusRunning)
}

// attemptsGoOn checks that an inline activity whose next attempt runs in a worker is sent with that attempt when it is
// due.
func attemptsGoOn(f *kit.Fixture) {
	e := f.Start("a")
	left := inlineActivity()
	due := f.StoredNow().Add(time.Second)
	left.Attempt, left.FireAt = 3, &due
	e.Commit(kit.TurnStarted(), left)
	f.Advance(2 * time.Second)
	items := f.Work(kit.Queue)
	if len(items) != 1 || items[0].Attempt != 3 || items[0].NotBefore == nil || !items[0].NotBefore.Equal(due) {
		f.T.Errorf("got work items %s, want attempt 3 at %v", kit.Text(items), due)
	}
}
