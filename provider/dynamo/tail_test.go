package dynamo_test

import (
	"errors"
	"testing"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// tail returns the IDs of the events after a position, and advances the position.
func (l *long) tail(tb testing.TB, at *provider.Tail) (ids []int64) {
	tb.Helper()
	for e, err := range l.ReadTail(tb.Context(), "a", l.in.ExecutionID, at) {
		if err != nil {
			tb.Fatal(err)
		}
		if ids = append(ids, e.ID); at.Event != e.ID {
			tb.Errorf("the position is %d at event %d", at.Event, e.ID)
		}
	}
	return ids
}

func TestReadTail_anyPosition_yieldsTheEventsAfterIt(t *testing.T) {
	t.Parallel()
	l := newLong(t)
	l.turns(t, 20)
	l.turn(t, history.SideEffectRecorded, 900<<10) // several parts
	l.turns(t, 20)
	last := l.next - 1
	for after := range last + 3 {
		at := provider.Tail{Event: after}
		ids := l.tail(t, &at)
		want := max(last-after, 0)
		if int64(len(ids)) != want || want > 0 && (ids[0] != after+1 || ids[want-1] != last) {
			t.Errorf("after %d: %v", after, ids)
		}
		if at.Segment != last {
			t.Errorf("after %d: the next segment is %d, want %d", after, at.Segment, last)
		}
	}
}

// A caller that stops within the history continues after its last event.
func TestReadTail_stoppedReader_continues(t *testing.T) {
	t.Parallel()
	l := newLong(t)
	l.turns(t, 5)
	var at provider.Tail
	for want := int64(1); want < l.next; want++ {
		for e, err := range l.ReadTail(t.Context(), "a", l.in.ExecutionID, &at) {
			if err != nil || e.ID != want {
				t.Errorf("event %d, %v, want %d", e.ID, err, want)
			}
			break
		}
	}
	if ids := l.tail(t, &at); len(ids) > 0 {
		t.Errorf("events %v after the last one", ids)
	}
}

// A poll reads no items without a commit, and only the new segment after a commit. A reader that resumes near the end
// of a long history reads a few segments.
func TestReadTail_longHistory_readsFewItems(t *testing.T) {
	t.Parallel()
	l := newLong(t)
	l.turns(t, 300)
	at := provider.Tail{Event: l.next - 3}
	l.queried = 0
	if ids := l.tail(t, &at); len(ids) != 2 || l.queried > 8 {
		t.Errorf("resumed with events %v and %d items", ids, l.queried)
	}
	end := provider.Tail{Event: l.next - 1} // that of a long poll
	l.queried = 0
	if ids := l.tail(t, &end); len(ids) > 0 || l.queried != 1 || end != at {
		t.Errorf("resumed at the end with events %v and %d items at %+v", ids, l.queried, end)
	}
	far := provider.Tail{Event: 150}
	l.queried = 0
	if ids := l.tail(t, &far); len(ids) != 151 || l.queried > 151+20 {
		t.Errorf("resumed with %d events and %d items", len(ids), l.queried)
	}

	l.queried = 0
	for range 10 {
		if ids := l.tail(t, &at); len(ids) > 0 {
			t.Errorf("events %v without a commit", ids)
		}
	}
	if l.queried > 0 {
		t.Errorf("10 polls without a commit read %d items", l.queried)
	}
	l.turns(t, 1)
	if ids := l.tail(t, &at); len(ids) != 1 || l.queried != 1 {
		t.Errorf("a commit: events %v, %d items", ids, l.queried)
	}
}

// Reads with a known segment are eventually consistent. A stale one yields fewer events, but loses none.
func TestReadTail_staleReads_loseNoEvent(t *testing.T) {
	t.Parallel()
	l := newLong(t)
	l.turns(t, 2)
	at := provider.Tail{Event: 1}
	seen := len(l.tail(t, &at)) + 1
	l.cloud.Table.Lag(3)
	for range 20 {
		l.turns(t, 1)
		seen += len(l.tail(t, &at))
	}
	l.cloud.Table.Lag(0)
	if seen += len(l.tail(t, &at)); int64(seen) != l.next-1 {
		t.Errorf("%d of %d events", seen, l.next-1)
	}
}

func TestReadTail_deletedOrForeignExecution_returnsErrNotFound(t *testing.T) {
	t.Parallel()
	l := newLong(t)
	l.turns(t, 9)
	known := provider.Tail{Event: 4}
	l.tail(t, &known)
	read := func(instanceID string, at provider.Tail) (err error) {
		for _, err = range l.ReadTail(t.Context(), instanceID, l.in.ExecutionID, &at) {
			if err == nil {
				t.Errorf("%s has events after %+v", instanceID, at)
			}
		}
		return err
	}
	for _, at := range []provider.Tail{{}, {Event: 4}, {Event: 400}} {
		if err := read("b", at); !errors.Is(err, provider.ErrNotFound) {
			t.Errorf("another instance after %+v: %v", at, err)
		}
	}
	for done := false; !done; {
		err := l.DeleteInstance(t.Context(), "a", true)
		if done = err == nil || errors.Is(err, provider.ErrNotFound); !done {
			t.Fatal(err)
		}
	}
	for _, at := range []provider.Tail{{}, {Event: 4}, known} {
		if err := read("a", at); !errors.Is(err, provider.ErrNotFound) {
			t.Errorf("deleted, after %+v: %v", at, err)
		}
	}
}
