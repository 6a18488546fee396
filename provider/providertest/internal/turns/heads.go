package turns

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/providertest/internal/kit"
)

// Heads tests the guarantees of a read of a history. An eventual read may be stale, no read is torn, and a strong read
// returns the latest state (R5, R8).
func Heads() kit.Group {
	return kit.Group{Name: "heads", Cases: []kit.Case{
		{Name: "ConsistentReadReturnsLatestTurn", Run: strongIsLatest},
		{Name: "HeadAdvancesWithEveryTurn", Run: headMoves},
		{Name: "ReadByInstanceAndByExecution", Run: readBoth},
		{Name: "UnknownInstancesAreNotFound", Run: readUnknown},
		{Name: "StaleReadIsNeverTorn", Run: staleReadIsNotTorn, Needs: []kit.Capability{kit.StaleReads}},
		{Name: "TurnOnStaleHeadIsAConflict", Run: staleHead, Needs: []kit.Capability{kit.StaleReads}},
		{Name: "InstanceIsReadConsistently", Run: instanceIsLatest, Needs: []kit.Capability{kit.StaleReads}},
		{Name: "ReadersDuringCommitsReturnCompleteTurns", Run: readersDuringCommits},
	}}
}

func strongIsLatest(f *kit.Fixture) {
	e := f.Start("a")
	for n := range 5 {
		e.Commit(kit.Bulky(10 << (4 * n / 2)))
		o := e.Read()
		if !o.Verified || o.Head.Segment != int64(n)+1 || o.InstanceID != "a" {
			f.T.Errorf("after turn %d: verified %v, head %+v of %q", n+1, o.Verified, o.Head, o.InstanceID)
		}
	}
}

func headMoves(f *kit.Fixture) {
	e := f.Start("a")
	f.WantEqual("head at the start", e.Read().Head, provider.Head{ExecutionID: e.Instance.ExecutionID})
	for range 3 {
		t := e.Commit(kit.TurnStarted())
		f.WantEqual("head", e.Read().Head, t.After())
	}
	// A turn that consumed no message does not change the watermark.
	t := e.Turn(kit.TurnStarted())
	t.Watermark = t.Head.Watermark
	_, err := f.Provider.AckOrchestrationItem(f.Ctx(), t)
	f.Must(err)
	f.WantEqual("watermark", e.Read().Head.Watermark, kit.At(3))
}

func readBoth(f *kit.Fixture) {
	e := f.Start("a")
	e.Commit(kit.TurnStarted())
	byInstance := &provider.OrchestrationItem{
		InstanceID: "a",
		Messages:   []provider.InboxMessage{{Message: provider.Message{Kind: provider.MessageWake, InstanceID: "a"}}},
	}
	for _, c := range []provider.Consistency{provider.Eventual, provider.Strong} {
		one, err := f.Provider.ReadOrchestration(f.Ctx(), e.Item(), c)
		f.Must(err)
		two, err := f.Provider.ReadOrchestration(f.Ctx(), byInstance, c)
		f.Must(err)
		f.WantEqual("read by instance", two, one)
	}
}

func readUnknown(f *kit.Fixture) {
	e := f.Start("a")
	for _, c := range []provider.Consistency{provider.Eventual, provider.Strong} {
		it := e.Item()
		it.Messages[0].ExecutionID = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
		o, err := f.Provider.ReadOrchestration(f.Ctx(), it, c)
		f.Must(err)
		if o.Head != e.Head { // a message for this instance does not affect the others of the batch
			f.T.Errorf("head for an unknown execution: %+v, want the current %+v", o.Head, e.Head)
		}
		_, err = f.Provider.ReadOrchestration(f.Ctx(), &provider.OrchestrationItem{InstanceID: "missing"}, c)
		f.WantErrorIs(err, provider.ErrNotFound)
	}
}

// wantWhole fails if o is not a complete prefix of a history whose n-th turn has the events of segment n.
func wantWhole(f *kit.Fixture, o *provider.Orchestration) {
	f.T.Helper()
	if _, err := o.Events(); err != nil {
		f.T.Error(err)
	}
	for i, s := range o.Segments {
		if s.Sequence != int64(i) || len(s.Events) == 0 {
			f.T.Errorf("segment %d with %d events, want segment %d", s.Sequence, len(s.Events), i)
		}
	}
	if last := o.Segments[len(o.Segments)-1]; o.Head.Segment != last.Sequence || o.Head.Watermark != last.Watermark {
		f.T.Errorf("got head %+v, last segment %d of watermark %+v", o.Head, last.Sequence, last.Watermark)
	}
}

func staleReadIsNotTorn(f *kit.Fixture) {
	const turns = 3
	e := f.Start("a")
	f.Lag(100)
	for range turns {
		e.Commit(kit.Bulky(400 << 10)) // more than one item
	}
	behind := false
	for lag := 3 * turns; lag >= 0; lag-- {
		f.Lag(lag)
		o := readEventually(f, e)
		wantWhole(f, o)
		behind = behind || o.Head.Segment < turns
		if o.Head.Segment < turns && o.Verified {
			f.T.Errorf("lag %d: a read up to segment %d of %d reports that it is verified", lag, o.Head.Segment, turns)
		}
	}
	if !behind {
		f.T.Error("no read was stale, so nothing was tested")
	}
	f.Lag(100)
	if head := e.Read().Head.Segment; head != turns {
		f.T.Errorf("a strong read ends at segment %d", head)
	}
}

func instanceIsLatest(f *kit.Fixture) {
	f.Lag(100)
	e := f.Start("a")
	f.WantStatus("a", provider.StatusPending)
	e.Commit(kit.TurnStarted(), kit.Ended(`1`))
	f.WantStatus("a", provider.StatusCompleted)
	if _, err := f.Provider.ReadTerminalEvent(f.Ctx(), e.Instance.ExecutionID); err != nil {
		f.T.Errorf("final event of a completed instance: got error %v", err)
	}
}

func staleHead(f *kit.Fixture) {
	e := f.Start("a")
	e.Commit(kit.TurnStarted())
	f.Lag(2)
	two, three := e.Commit(kit.Activity(kit.Queue)), e.Commit(kit.Completed(3))
	o, err := f.Provider.ReadOrchestration(f.Ctx(), e.Item(), provider.Eventual)
	f.Must(err)
	if o.Verified || o.Head != two.Head {
		f.T.Fatalf("verified %v, head %+v, want %+v", o.Verified, o.Head, two.Head)
	}
	concurrentTurn := *two
	concurrentTurn.Events = append([]history.Event{}, two.Events...)
	_, err = f.Provider.AckOrchestrationItem(f.Ctx(), &concurrentTurn)
	f.WantErrorIs(err, provider.ErrConflict)
	if head := e.Read().Head; head != three.After() {
		f.T.Errorf("got head %+v, want %+v", head, three.After())
	}
}

func readersDuringCommits(f *kit.Fixture) {
	const turns, readers = 6, 3
	e := f.Start("a")
	var committed atomic.Int64
	var done atomic.Bool
	var wg sync.WaitGroup
	errs := make(chan error, readers)
	for r := range readers {
		wg.Go(func() {
			for !done.Load() {
				if err := readOnce(f, e, provider.Consistency(r%2), &committed); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	for range turns {
		e.Commit(kit.Bulky(400 << 10)) // more than one item
		committed.Add(1)
	}
	done.Store(true)
	wg.Wait()
	close(errs)
	for err := range errs {
		f.T.Error(err)
	}
	if head := e.Read().Head.Segment; head != turns {
		f.T.Errorf("got head %d, want %d", head, turns)
	}
}

// readOnce checks one read. A strong read must return every turn that was committed before it started.
func readOnce(f *kit.Fixture, e *kit.Execution, c provider.Consistency, committed *atomic.Int64) error {
	before := committed.Load()
	o, err := f.Provider.ReadOrchestration(f.Ctx(), e.Item(), c)
	if errors.Is(err, provider.ErrNotFound) && c == provider.Eventual {
		return nil
	}
	if err != nil {
		return err
	}
	if c == provider.Strong && o.Head.Segment < before {
		return fmt.Errorf("a strong read ends at segment %d after %d turns", o.Head.Segment, before)
	}
	_, err = o.Events()
	return err
}
