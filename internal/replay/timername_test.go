package replay_test

import (
	"testing"
	"time"

	"github.com/perdure/perdure/internal/replay"
)

// nap returns code with a timer, which has a name unless it is empty.
func nap(name string) replay.Orchestration {
	return body(func(c *replay.Context) { c.Await(c.CreateTimer(time.Hour, name)) })
}

// A replay does not compare the names of timers. A diagnosis shows them on both sides.
func TestNondeterminismError_namedTimer_showsName(t *testing.T) {
	t.Parallel()
	log := record(t, nap("payment window"))
	x := instance(t, body(func(c *replay.Context) { c.Await(activity(c, "charge")) }))
	e := as[*replay.NondeterminismError](t, x.Replay(log[1:]))
	if e.Expected != `TimerCreated "payment window"` || e.Got != `ActivityScheduled "charge"` {
		t.Errorf("got %v", e)
	}
	x = instance(t, nap("payment window"))
	e = as[*replay.NondeterminismError](t, x.Replay(record(t, body(func(c *replay.Context) {
		c.Await(activity(c, "charge"))
	}))[1:]))
	if e.Got != `TimerCreated "payment window"` {
		t.Errorf("got %v", e)
	}
}
