package turns

import (
	"errors"
	"sync"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/providertest/internal/kit"
)

// Atomicity tests that a turn commits completely or not at all, and only one of the turns on a head commits (I1,
// R7).
func Atomicity() kit.Group {
	return kit.Group{Name: "atomicity", Cases: []kit.Case{
		{Name: "TurnCommitsAtomically", Run: aTurnCommitsWhole},
		{Name: "EndAndItsOutputsCommitAtomically", Run: endAndOutputs},
		{
			Name: "OnlyOneOfTwoTurnsOnAHeadCommits",
			Run:  func(f *kit.Fixture) { oneOfTwo(f, kit.Activity(kit.Queue), kit.Ended(`1`)) },
		},
		{
			Name: "LargeTurnLosesAtomically",
			Run:  func(f *kit.Fixture) { oneOfTwo(f, kit.Activity(kit.Queue), kit.Bulky(900<<10)) },
		},
		{
			Name: "LargeTurnWinsAtomically",
			Run:  func(f *kit.Fixture) { oneOfTwo(f, kit.Bulky(900<<10), kit.Activity(kit.Queue)) },
		},
		{
			Name: "OnlyOneOfTwoLargeTurnsCommits",
			Run:  func(f *kit.Fixture) { oneOfTwo(f, kit.Bulky(900<<10), kit.Bulky(800<<10)) },
		},
		{Name: "OnlyOneOfManyConcurrentTurnsCommits", Run: oneOfMany},
		{Name: "OldHeadIsAConflict", Run: oldHead},
		{
			Name: "LostResponseIsSuccess", Run: func(f *kit.Fixture) { lostResponse(f, kit.Activity(kit.Queue)) },
			Needs: []kit.Capability{kit.Faults},
		},
		{
			Name: "LostResponseOfLargeTurnIsSuccess",
			Run:  func(f *kit.Fixture) { lostResponse(f, kit.Bulky(900<<10)) }, Needs: []kit.Capability{kit.Faults},
		},
		{Name: "RejectedCommitWritesNothing", Run: refusedCommit, Needs: []kit.Capability{kit.Faults}},
		{Name: "UnsentOutputsAreFoundInTheSegment", Run: unsentOutputs, Needs: []kit.Capability{kit.Faults}},
	}}
}

func aTurnCommitsWhole(f *kit.Fixture) {
	e := f.Start("a")
	t := e.Commit(kit.TurnStarted(), kit.Activity(kit.Queue), kit.Activity(kit.OtherQueue), kit.Activity(kit.Queue),
		kit.Timer(f.StoredNow()))
	e.WantSegments(t)
	if n, other := f.Work(kit.Queue), f.Work(kit.OtherQueue); len(n) != 2 || len(other) != 1 {
		f.T.Errorf("got %d and %d work items, want 2 and 1", len(n), len(other))
	}
	if n := f.Timers(); len(n) != 1 {
		f.T.Errorf("got %d timers, want 1", len(n))
	}
	f.WantStatus("a", provider.StatusRunning)
}

func endAndOutputs(f *kit.Fixture) {
	e := f.Start("a")
	t := e.Commit(kit.TurnStarted(), kit.Detached("b"), kit.Activity(kit.Queue), kit.Timer(f.StoredNow()), kit.Child(),
		kit.Ended(`"out"`))
	e.WantSegments(t)
	f.WantStatus("a", provider.StatusCompleted)
	if ms := f.Messages(); len(ms) != 2 || ms[1].InstanceID != "b" || ms[1].Kind != provider.MessageStart ||
		!ms[1].Detached {
		f.T.Errorf("inbox messages besides the wake: %s, want the start of the detached orchestration", kit.Text(ms))
	}
	f.WantNothingSent() // only work that the execution still waits for
}

func oneOfTwo(f *kit.Fixture, first, second history.Event) {
	e := f.Start("a")
	winner, loser := e.Turn(kit.TurnStarted(), first),
		e.Turn(kit.TurnStarted(), kit.Activity(kit.OtherQueue), kit.Timer(f.StoredNow()), second)
	_, err := f.Provider.AckOrchestrationItem(f.Ctx(), winner)
	f.Must(err)
	f.Work(kit.Queue)
	_, err = f.Provider.AckOrchestrationItem(f.Ctx(), loser)
	f.WantErrorIs(err, provider.ErrConflict)
	e.WantSegments(winner)
	f.WantNothingSent()
	f.WantStatus("a", provider.StatusRunning)
}

func oneOfMany(f *kit.Fixture) {
	e := f.Start("a")
	const concurrent = 12
	turns, errs := make([]*provider.Turn, concurrent), make([]error, concurrent)
	var wg sync.WaitGroup
	for i := range concurrent {
		turns[i] = e.Turn(append([]history.Event{kit.TurnStarted()}, kit.Repeat(i+1, kit.Activity(kit.Queue))...)...)
		wg.Go(func() { _, errs[i] = f.Provider.AckOrchestrationItem(f.Ctx(), turns[i]) })
	}
	wg.Wait()
	winner := -1
	for i, err := range errs {
		switch {
		case err == nil && winner >= 0:
			f.T.Errorf("turns %d and %d were both committed", winner, i)
		case err == nil:
			winner = i
		default:
			f.WantErrorIs(err, provider.ErrConflict)
		}
	}
	if winner < 0 {
		f.T.Fatal("no turn was committed")
	}
	e.WantSegments(turns[winner])
	if n := len(f.Work(kit.Queue)); n != winner+1 {
		f.T.Errorf("got %d work items, want the %d of the committed turn", n, winner+1)
	}
}

func oldHead(f *kit.Fixture) {
	e := f.Start("a")
	old := *e
	one, two := e.Commit(kit.TurnStarted()), e.Commit(kit.Activity(kit.Queue))
	f.Work(kit.Queue)
	for range 2 {
		_, err := f.Provider.AckOrchestrationItem(f.Ctx(), old.Turn(kit.TurnStarted(), kit.Ended(`1`)))
		f.WantErrorIs(err, provider.ErrConflict)
		old.Head.Segment++
	}
	e.WantSegments(one, two)
	f.WantStatus("a", provider.StatusRunning)
	f.WantNothingSent()
}

func lostResponse(f *kit.Fixture, event history.Event) {
	e := f.Start("a")
	hits := f.Fail(kit.Fault{Operation: kit.Write, Failure: kit.ResponseLost, Times: 1})
	t := e.Commit(kit.TurnStarted(), event)
	e.WantSegments(t)
	if hits() != 1 {
		f.T.Errorf("got %d lost responses, want 1", hits())
	}
	f.WantStatus("a", provider.StatusRunning)
}

func refusedCommit(f *kit.Fixture) {
	e := f.Start("a")
	f.Fail(kit.Fault{Operation: kit.Write, Failure: kit.Rejected, Times: 1})
	t := e.Turn(kit.TurnStarted(), kit.Activity(kit.Queue), kit.Timer(f.StoredNow()), kit.Ended(`1`))
	_, err := f.Provider.AckOrchestrationItem(f.Ctx(), t)
	f.WantPermanent(err)
	if errors.Is(err, provider.ErrConflict) {
		f.T.Error("a rejected call is reported as a conflict")
	}
	e.WantSegments()
	f.WantNothingSent()
	f.WantStatus("a", provider.StatusPending)
}

// unsentOutputs checks that an error after the commit loses no output, because the segment is the outbox (R9).
func unsentOutputs(f *kit.Fixture) {
	e := f.Start("a")
	hits := f.Fail(kit.Fault{Operation: kit.Send, Failure: kit.Rejected, Times: 1})
	t := e.Turn(kit.TurnStarted(), kit.Detached("b"), kit.Ended(`1`))
	if _, err := f.Provider.AckOrchestrationItem(f.Ctx(), t); err == nil || errors.Is(err, provider.ErrConflict) {
		f.T.Errorf("error of a turn whose message was rejected: got error %v", err)
	}
	e.WantSegments(t)
	if hits() != 1 {
		f.T.Errorf("got %d rejected sends, want 1", hits())
	}
	// The status is written last, because the ID must not be used again before all outputs were accepted.
	f.WantStatus("a", provider.StatusPending)
}
