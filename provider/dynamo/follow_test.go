package dynamo_test

import (
	"testing"
	"time"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
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
