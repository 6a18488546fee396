package replay_test

import (
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/replay"
	"github.com/perdure/perdure/internal/replay/stack"
)

// A diagnosis shows frames of user code, not of the runtime or the engine.
func TestStack_showsUserCodeOnly(t *testing.T) {
	t.Parallel()
	x := replay.New(body(func(c *replay.Context) {
		done := make(chan struct{})
		go func() {
			activity(c, "a")
			close(done)
		}()
		<-done
	}), replay.Options{InstanceID: "order-17", ExecutionID: "01JEXECUTION", TurnTimeout: 50 * time.Millisecond})
	defer x.Close()
	if err := x.Replay([]history.Event{started}); err != nil {
		t.Fatal(err)
	}
	_, err := x.Turn(replay.Turn{Now: epoch})
	e := as[*replay.ForeignGoroutineError](t, err)
	if got := stack.Where(e.Stack); !strings.Contains(got, "TestStack_showsUserCodeOnly") ||
		!strings.Contains(got, "(replay/frames_test.go:") || strings.Contains(got, "runtime") {
		t.Errorf("got %s in stack\n%s", got, e.Stack)
	}

	never := make(chan struct{})
	defer close(never)
	y := replay.New(body(func(*replay.Context) {
		<-never
	}), replay.Options{InstanceID: "order-17", ExecutionID: "01JBLOCKED", TurnTimeout: 50 * time.Millisecond})
	defer y.Close()
	if err := y.Replay([]history.Event{started}); err != nil {
		t.Fatal(err)
	}
	_, err = y.Turn(replay.Turn{Now: epoch})
	b := as[*replay.BlockedOutsideError](t, err)
	if got := stack.Where(b.Stack); !strings.Contains(got, "TestStack_showsUserCodeOnly") ||
		!strings.Contains(got, "(replay/frames_test.go:") {
		t.Errorf("got %s in stack\n%s", got, b.Stack)
	}
	if got := stack.Where("stack not found: the code may have changed its pprof labels"); got != "" {
		t.Error(got)
	}
}
