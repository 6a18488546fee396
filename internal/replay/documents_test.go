package replay_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/replay"
)

// large returns a document that is large enough to be stored as a reference.
func large(n int) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`"%d%s"`, n, bytes.Repeat([]byte("x"), 4<<10)))
}

func raisedEvent(n int) history.Event {
	return history.Event{
		Kind: history.ExternalEventRaised, Name: "e", EventID: fmt.Sprint(n), Data: history.NewInlinePayload(large(n)),
	}
}

// store holds the documents of a test and records which ones are fetched.
type store struct {
	docs      map[string]json.RawMessage
	requested []string
	fail      error
	takes     time.Duration
}

func (s *store) fetch(r history.Reference) (json.RawMessage, error) {
	time.Sleep(s.takes)
	s.requested = append(s.requested, r.Ref)
	if s.fail != nil {
		return nil, s.fail
	}
	return s.docs[r.Ref], nil
}

// takes returns a body that waits for n events, records the beginning of the last document, and then waits for a timer.
func takes(n int, last *string) replay.Orchestration {
	return body(func(c *replay.Context) {
		for range n {
			t := c.WaitForExternalEvent("e")
			c.Await(t)
			*last = string(t.TakeResult()[:3])
		}
		c.Await(c.CreateTimer(time.Hour, ""))
	})
}

// carryingStart starts an execution with events that an earlier one carried over.
func carryingStart(n int) (history.Event, *store) {
	ev, s := started, &store{docs: map[string]json.RawMessage{}}
	for i := range n {
		at := history.DataLocation{ExecutionID: "01JBEFORE", Segment: int64(i), EventID: 7}
		s.docs[at.String()] = large(i)
		ev.CarriedEvents = append(ev.CarriedEvents, history.CarriedEvent{
			Name: "e", EventID: fmt.Sprint(i), Data: at.Refer(large(i)),
		})
	}
	return ev, s
}

func with(s *store) replay.Options {
	o := options
	o.Fetch = s.fetch
	o.SegmentOf = func(id int64) int64 { return id / 10 }
	return o
}

// Only documents that a task waits for are fetched, in a turn and on replay.
func TestFetch_onlyAwaitedDocuments(t *testing.T) {
	t.Parallel()
	start, s := carryingStart(5)
	var last string
	log := []history.Event{start}
	for range 2 {
		x := replay.New(takes(2, &last), with(s))
		if err := x.Replay(log); err != nil {
			t.Fatal(err)
		}
		if len(log) == 1 {
			log = append(log, turn(t, x)...)
		}
		x.Close()
		if last != `"1x` || len(s.requested) != 2 || s.requested[0] != "x#01JBEFORE/0/7" ||
			s.requested[1] != "x#01JBEFORE/1/7" {
			t.Errorf("got last document %s, requested documents %q", last, s.requested)
		}
		s.requested = nil
	}
}

// If an event is carried over again, its reference does not change. An event that arrived in this execution gets a
// reference, unless it is small.
func TestContinuation_carriedEvents_areReferences(t *testing.T) {
	t.Parallel()
	start, s := carryingStart(2)
	x := replay.New(replay.Orchestration{
		Name: "o", Version: "1",
		Body: func(c *replay.Context, _ json.RawMessage) replay.Ending {
			c.Await(c.WaitForExternalEvent("go"))
			return replay.Ending{Kind: history.OrchestrationContinuedAsNew, Input: json.RawMessage("2")}
		},
	}, with(s))
	defer x.Close()
	if err := x.Replay([]history.Event{start}); err != nil {
		t.Fatal(err)
	}
	small := history.Event{Kind: history.ExternalEventRaised, Name: "e", EventID: "small", Data: history.Payload(`"s"`)}
	first := turn(t, x, raisedEvent(8), small)
	out, err := x.Turn(replay.Turn{
		Now: epoch, Inputs: [][]history.Event{{raisedEvent(9), {Kind: history.ExternalEventRaised, Name: "go"}}},
	})
	if err != nil || out.Continued == nil || len(s.requested) > 0 {
		t.Fatalf("got turn %+v, error %v, requested documents %q", out, err, s.requested)
	}
	want := []history.Payload{
		start.CarriedEvents[0].Data, start.CarriedEvents[1].Data,
		history.DataLocation{
			ExecutionID: options.ExecutionID, Segment: 0, EventID: first[len(first)-2].ID,
		}.Refer(large(8)), history.Payload(`"s"`),
		history.DataLocation{ExecutionID: options.ExecutionID, Segment: 0, EventID: out.Events[1].ID}.Refer(large(9)),
	}
	for i, e := range out.Continued.Events {
		if i >= len(want) || string(e.Data) != string(want[i]) {
			t.Errorf("carried event %d has the data %.120s", i, e.Data)
		}
	}
	if len(out.Continued.Events) != len(want) {
		t.Errorf("got %d carried events", len(out.Continued.Events))
	}
}

// The turn that takes parked events records references to them, and its code reads the documents that are in memory.
func TestParkedEvents_largeData_isReferenced(t *testing.T) {
	t.Parallel()
	s := &store{}
	var last string
	x := replay.New(takes(3, &last), with(s))
	defer x.Close()
	parked := history.Event{
		ID: 2, Kind: history.InputsParked, Time: epoch, Inputs: []history.Event{raisedEvent(1), raisedEvent(2)},
	}
	if err := x.Replay([]history.Event{started, parked}); err != nil {
		t.Fatal(err)
	}
	events := turn(t, x)
	refs := 0
	for i := range events {
		if ref, ok := events[i].Data.Reference(); ok {
			if want := fmt.Sprintf("x#%s/0/2/inputs/%d", options.ExecutionID, refs); ref.Ref != want {
				t.Errorf("got reference to %s, want %s", ref.Ref, want)
			}
			refs++
		}
	}
	if refs != 2 || last != `"2x` || len(s.requested) > 0 {
		t.Errorf("got %d references, last document %s, requested documents %q", refs, last, s.requested)
	}
}

// A turn takes only as many parked inputs as it can hold documents.
func TestTurn_largeParkedDocuments_takesPartOfThem(t *testing.T) {
	t.Parallel()
	s := &store{docs: map[string]json.RawMessage{}}
	start := started
	for i := range 5 {
		at := history.DataLocation{ExecutionID: "01JBEFORE", EventID: int64(i) + 1}
		ref, _ := at.Refer(large(i)).Reference()
		ref.Bytes = 15 << 20
		s.docs[ref.Ref] = large(i)
		start.Inputs = append(start.Inputs, history.Event{
			Kind: history.ExternalEventRaised, Name: "e", EventID: fmt.Sprint(i),
			Data: history.NewReferencePayload(ref),
		})
	}
	var last string
	x := replay.New(takes(5, &last), with(s))
	defer x.Close()
	if err := x.Replay([]history.Event{start}); err != nil {
		t.Fatal(err)
	}
	var took []int64
	for range 3 {
		events := turn(t, x)
		took = append(took, events[0].ParkedConsumed)
	}
	if fmt.Sprint(took) != "[2 2 0]" || last != `"4x` {
		t.Errorf("got turns that consumed %v parked inputs, last document %s", took, last)
	}
}

// A slow store does not count as blocked code. Code that blocks after the fetch is still reported.
func TestTurnLimit_slowFetch_doesNotCount(t *testing.T) {
	t.Parallel()
	for _, blocks := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			start, s := carryingStart(3)
			s.takes = time.Minute
			o := with(s)
			o.TurnTimeout = time.Second
			x := replay.New(body(func(c *replay.Context) {
				for range 3 {
					c.Await(c.WaitForExternalEvent("e"))
				}
				if blocks {
					time.Sleep(time.Hour)
				}
			}), o)
			err := x.Replay([]history.Event{start})
			if err == nil {
				_, err = x.Turn(replay.Turn{Now: epoch})
			}
			if _, blocked := errors.AsType[*replay.BlockedOutsideError](err); blocked != blocks ||
				!blocked && err != nil {
				t.Errorf("blocks %v: got error %v", blocks, err)
			}
			x.Close()
			time.Sleep(2 * time.Hour)
		})
	}
}

// A failed fetch is a separate error that names the document.
func TestFetch_fails_turnReturnsFetchError(t *testing.T) {
	t.Parallel()
	start, s := carryingStart(1)
	s.fail = errors.New("store is unavailable")
	var last string
	for name, o := range map[string]replay.Options{"fails": with(s), "none": options} {
		x := replay.New(takes(1, &last), o)
		if err := x.Replay([]history.Event{start}); err != nil {
			t.Fatal(err)
		}
		_, err := x.Turn(replay.Turn{Now: epoch})
		if e := as[*replay.FetchError](t, err); e.Ref != "x#01JBEFORE/0/7" ||
			name == "fails" && !errors.Is(err, s.fail) {
			t.Errorf("%s: got error %v", name, err)
		}
		x.Close()
	}
}

// A warm instance keeps only some documents of buffered events in memory. The others are references.
func TestParkedEvents_manyDocuments_areReferenced(t *testing.T) {
	t.Parallel()
	s := &store{docs: map[string]json.RawMessage{}}
	var last string
	doc := func(n int) json.RawMessage {
		return json.RawMessage(fmt.Sprintf(`"%d%s"`, n, bytes.Repeat([]byte("x"), 256<<10)))
	}
	gate := body(func(c *replay.Context) {
		c.Await(c.WaitForExternalEvent("go"))
		for range 40 {
			t := c.WaitForExternalEvent("e")
			c.Await(t)
			last = string(t.TakeResult()[:4])
		}
	})
	x := replay.New(gate, with(s))
	defer x.Close()
	if err := x.Replay([]history.Event{started}); err != nil {
		t.Fatal(err)
	}
	for i := range 40 {
		in := raisedEvent(i)
		in.Data = history.NewInlinePayload(doc(i))
		for _, e := range turn(t, x, in) {
			if e.Kind == history.ExternalEventRaised {
				at := history.DataLocation{ExecutionID: options.ExecutionID, Segment: e.ID / 10, EventID: e.ID}
				s.docs[at.String()] = doc(i)
			}
		}
	}
	if n := x.Bytes(); n > 6<<20 {
		t.Errorf("got %d MiB for the instance", n>>20)
	}
	turn(t, x, history.Event{Kind: history.ExternalEventRaised, Name: "go"})
	if !x.Ended() || last != `"39x` || len(s.requested) < 20 || len(s.requested) > 30 {
		t.Errorf("got ended %v, last document %s, %d documents were fetched", x.Ended(), last, len(s.requested))
	}
}
