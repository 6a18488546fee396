package replay_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/replay"
)

// A fan-out that waits for its last result holds all results. Bytes must count them, since it bounds the cache of warm
// instances.
func TestBytes_unreadResults_areCounted(t *testing.T) {
	t.Parallel()
	const n, size = 50, 100 << 10
	x := instance(t, body(func(c *replay.Context) {
		tasks := make([]*replay.Task, n+1)
		for i := range tasks {
			tasks[i] = activity(c, "fetch")
		}
		for _, task := range slices.Backward(tasks) {
			c.Await(task)
			task.TakeResult()
		}
		c.Await(activity(c, "rest"))
	}))
	turn(t, x)
	empty := x.Bytes()
	result, err := json.Marshal(strings.Repeat("x", size-2))
	if err != nil {
		t.Fatal(err)
	}
	for id := int64(3); id < 3+n; id++ {
		turn(t, x, history.Event{
			Kind: history.ActivityCompleted, SourceEventID: id, Attempt: 1, Result: history.Payload(result),
		})
	}
	if held := x.Bytes() - empty; held < n*size/2 {
		t.Errorf("%d bytes for %d unread results of %d bytes each", held, n, size)
	}
	turn(t, x, history.Event{
		Kind: history.ActivityCompleted, SourceEventID: 3 + n, Attempt: 1, Result: history.Payload(result),
	})
	if left := x.Bytes() - empty; left > size {
		t.Errorf("%d bytes after all results were read", left)
	}
}

// An event that returns to the mailbox is counted once.
func TestBytes_returnedEvent_isCountedOnce(t *testing.T) {
	t.Parallel()
	const size = 100 << 10
	x := instance(t, body(func(c *replay.Context) {
		s := c.WithCancel()
		s.WaitForExternalEvent("e")
		c.Await(activity(c, "a"))
		s.End("dropped_future")
		e := c.WaitForExternalEvent("e")
		c.Await(e)
		e.TakeResult()
		c.Await(activity(c, "b"))
	}))
	turn(t, x)
	data, err := json.Marshal(strings.Repeat("x", size-2))
	if err != nil {
		t.Fatal(err)
	}
	turn(t, x, raise("e", "1", string(data)))
	turn(t, x, done(4))
	if left := x.Bytes(); left > size {
		t.Errorf("%d bytes after all results were read", left)
	}
}
