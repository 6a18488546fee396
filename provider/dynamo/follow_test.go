package dynamo_test

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo"
)

var _ client.TailReader = (*dynamo.Provider)(nil)

// Follow reads through ReadTail, and resumes after any event.
func TestFollow_resumedAfterAnyEvent_yieldsTheRest(t *testing.T) {
	t.Parallel()
	l := newLong(t)
	l.turns(t, 12)
	l.turn(t, history.OrchestrationTerminated, 0)
	c := client.New(l.Provider, client.WithClock(time.Now))
	for after := range l.next {
		var ids []int64
		for e, err := range c.Follow(t.Context(), "a", client.WithExecutionID(l.in.ExecutionID),
			client.AfterEvent(after)) {
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, e.ID)
		}
		if want := l.next - 1 - after; int64(len(ids)) != want || want > 0 && ids[0] != after+1 {
			t.Errorf("after %d: %v", after, ids)
		}
	}
}

// A page at the end of a long history has the cost of its events, not that of all earlier ones.
func TestReadHistory_afterManyEvents_readsTheRestOnly(t *testing.T) {
	t.Parallel()
	l := newLong(t)
	l.turns(t, 1000)
	last := l.next - 1
	for _, after := range []int64{499, 500, 501, 750, last - 100, last - 1, last, last + 1, math.MaxInt64} {
		l.queried = 0
		n := int64(0)
		for e, err := range l.ReadHistory(t.Context(), "a", l.in.ExecutionID, after) {
			if n++; err != nil || e.ID != after+n {
				t.Fatalf("after %d: event %d, %v", after, e.ID, err)
			}
		}
		want := max(last-after, 0)
		if n != want || after >= 500 && l.queried > int(want)+20 {
			t.Errorf("after %d: %d events of %d items, want %d", after, n, l.queried, want)
		}
	}
	for instance, execution := range map[string]string{"b": l.in.ExecutionID, "a": "01ARZ3NDEKTSV4RRFFQ69G5FAV"} {
		if _, err := client.Collect(l.ReadHistory(t.Context(), instance, execution, 700)); !errors.Is(err,
			provider.ErrNotFound) {
			t.Errorf("execution %s of %s: %v", execution, instance, err)
		}
	}
}
