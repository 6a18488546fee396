package providertest

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// The guarantees of a read of a history: an eventual read may be stale, no read is torn, and a strong read returns the
// latest state (R5, R8).
func heads() group {
	return group{"heads", []testCase{
		{name: "AStrongReadSeesTheLatestTurn", run: strongIsLatest},
		{name: "TheHeadMovesWithEveryTurn", run: headMoves},
		{name: "ReadByInstanceAndByExecution", run: readBoth},
		{name: "UnknownInstancesAreNotFound", run: readUnknown},
		{name: "AnEventualReadMayBeBehindAndIsNeverTorn", run: behindNotTorn, needs: []Capability{StaleReads}},
		{name: "ATurnOnAStaleHeadIsAConflict", run: staleHead, needs: []Capability{StaleReads}},
		{name: "AnInstanceIsReadStronglyConsistent", run: instanceIsLatest, needs: []Capability{StaleReads}},
		{name: "ReadersDuringCommitsSeeWholeTurns", run: readersDuringCommits},
	}}
}

func strongIsLatest(f *fixture) {
	e := f.start("a")
	for n := range 5 {
		e.commit(bulky(10 << (4 * n / 2)))
		o := e.read()
		if !o.Verified || o.Head.Segment != int64(n)+1 || o.InstanceID != "a" {
			f.t.Errorf("after turn %d: verified %v, head %+v of %q", n+1, o.Verified, o.Head, o.InstanceID)
		}
	}
}

func headMoves(f *fixture) {
	e := f.start("a")
	f.wantEqual("head at the start", e.read().Head, provider.Head{ExecutionID: e.instance.ExecutionID})
	for range 3 {
		t := e.commit(turnStarted())
		f.wantEqual("head", e.read().Head, t.After())
	}
	// A turn that consumed no message keeps the watermark.
	t := e.turn(turnStarted())
	t.Watermark = t.Head.Watermark
	_, err := f.p.AckOrchestrationItem(f.ctx(), t)
	f.must(err)
	f.wantEqual("watermark", e.read().Head.Watermark, at(3))
}

func readBoth(f *fixture) {
	e := f.start("a")
	e.commit(turnStarted())
	byInstance := &provider.OrchestrationItem{InstanceID: "a", Messages: []provider.InboxMessage{{Message: provider.Message{Kind: provider.MessageWake, InstanceID: "a"}}}}
	for _, c := range []provider.Consistency{provider.Eventual, provider.Strong} {
		one, err := f.p.ReadOrchestration(f.ctx(), e.item(), c)
		f.must(err)
		two, err := f.p.ReadOrchestration(f.ctx(), byInstance, c)
		f.must(err)
		f.wantEqual("read by instance", two, one)
	}
}

func readUnknown(f *fixture) {
	e := f.start("a")
	for _, c := range []provider.Consistency{provider.Eventual, provider.Strong} {
		it := e.item()
		it.Messages[0].ExecutionID = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
		o, err := f.p.ReadOrchestration(f.ctx(), it, c)
		f.must(err)
		if o.Head != e.head { // a message for it does not affect the others of the batch
			f.t.Errorf("head for an unknown execution: %+v, want the current %+v", o.Head, e.head)
		}
		_, err = f.p.ReadOrchestration(f.ctx(), &provider.OrchestrationItem{InstanceID: "nobody"}, c)
		f.wantIs(err, provider.ErrNotFound)
	}
}

// wantWhole fails unless o is a complete prefix of a history whose n-th turn has the events of segment n.
func (f *fixture) wantWhole(o *provider.Orchestration) {
	f.t.Helper()
	if _, err := o.Events(); err != nil {
		f.t.Error(err)
	}
	for i, s := range o.Segments {
		if s.Sequence != int64(i) || len(s.Events) == 0 {
			f.t.Errorf("segment %d with %d events, want segment %d", s.Sequence, len(s.Events), i)
		}
	}
	if last := o.Segments[len(o.Segments)-1]; o.Head.Segment != last.Sequence || o.Head.Watermark != last.Watermark {
		f.t.Errorf("head %+v, last segment %d of watermark %+v", o.Head, last.Sequence, last.Watermark)
	}
}

func behindNotTorn(f *fixture) {
	const turns = 3
	e := f.start("a")
	f.Lag(100)
	for range turns {
		e.commit(bulky(400 << 10)) // more than one item
	}
	behind := false
	for lag := 3 * turns; lag >= 0; lag-- {
		f.Lag(lag)
		o := f.readEventually(e)
		f.wantWhole(o)
		behind = behind || o.Head.Segment < turns
		if o.Head.Segment < turns && o.Verified {
			f.t.Errorf("lag %d: a read up to segment %d of %d reports that it is verified", lag, o.Head.Segment, turns)
		}
	}
	if !behind {
		f.t.Error("no read was stale, so nothing was tested")
	}
	f.Lag(100)
	if head := e.read().Head.Segment; head != turns {
		f.t.Errorf("a strong read ends at segment %d", head)
	}
}

func instanceIsLatest(f *fixture) {
	f.Lag(100)
	e := f.start("a")
	f.wantStatus("a", provider.StatusPending)
	e.commit(turnStarted(), ended(`1`))
	f.wantStatus("a", provider.StatusCompleted)
	if _, err := f.p.ReadTerminalEvent(f.ctx(), e.instance.ExecutionID); err != nil {
		f.t.Errorf("final event of a completed instance: %v", err)
	}
}

func staleHead(f *fixture) {
	e := f.start("a")
	e.commit(turnStarted())
	f.Lag(2)
	two, three := e.commit(activity(Queue)), e.commit(completed(3))
	o, err := f.p.ReadOrchestration(f.ctx(), e.item(), provider.Eventual)
	f.must(err)
	if o.Verified || o.Head != two.Head {
		f.t.Fatalf("verified %v, head %+v, want %+v", o.Verified, o.Head, two.Head)
	}
	rival := *two
	rival.Events = append([]history.Event{}, two.Events...)
	_, err = f.p.AckOrchestrationItem(f.ctx(), &rival)
	f.wantIs(err, provider.ErrConflict)
	if head := e.read().Head; head != three.After() {
		f.t.Errorf("head %+v, want %+v", head, three.After())
	}
}

func readersDuringCommits(f *fixture) {
	const turns, readers = 6, 3
	e := f.start("a")
	var committed atomic.Int64
	var done atomic.Bool
	var wg sync.WaitGroup
	errs := make(chan error, readers)
	for r := range readers {
		wg.Go(func() {
			for !done.Load() {
				if err := f.readOnce(e, provider.Consistency(r%2), &committed); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	for range turns {
		e.commit(bulky(400 << 10)) // more than one item
		committed.Add(1)
	}
	done.Store(true)
	wg.Wait()
	close(errs)
	for err := range errs {
		f.t.Error(err)
	}
	if head := e.read().Head.Segment; head != turns {
		f.t.Errorf("head %d, want %d", head, turns)
	}
}

// readOnce checks one read. A strong read must return every turn that was committed before it started.
func (f *fixture) readOnce(e *execution, c provider.Consistency, committed *atomic.Int64) error {
	before := committed.Load()
	o, err := f.p.ReadOrchestration(f.ctx(), e.item(), c)
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
