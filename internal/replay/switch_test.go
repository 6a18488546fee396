package replay

import (
	"encoding/json"
	"runtime"
	"testing"
	"time"

	"github.com/perdure/perdure/history"
)

func TestCoroutines_ended_releaseMemory(t *testing.T) {
	t.Parallel()
	x := New(Orchestration{Body: func(c *Context, _ json.RawMessage) Ending {
		for range 1000 {
			c.Await(c.Go(func() {}))
		}
		return Ending{Kind: history.OrchestrationCompleted}
	}}, Options{})
	t.Cleanup(func() { x.Close() })
	if err := x.Replay([]history.Event{{ID: 1, Kind: history.OrchestrationStarted}}); err != nil {
		t.Fatal(err)
	}
	if _, err := x.Turn(Turn{}); err != nil {
		t.Fatal(err)
	}
	if n := len(x.x.scheduler.All()); n > 16 {
		t.Errorf("got %d coroutines, want at most 16", n)
	}
}

// Bytes limits the cache, so it must match the memory of a suspended instance. Not parallel: the test reads the heap.
func TestBytes_suspendedInstance_matchesHeap(t *testing.T) {
	const n = 1000
	code := Orchestration{Name: "o", Body: func(c *Context, _ json.RawMessage) Ending {
		nest(c, 8)
		return Ending{Kind: history.OrchestrationCompleted}
	}}
	before := footprint()
	instances := make([]*Instance, n)
	for i := range instances {
		instances[i] = New(code, Options{InstanceID: "i", ExecutionID: "x"})
		if err := instances[i].Replay([]history.Event{{ID: 1, Kind: history.OrchestrationStarted}}); err != nil {
			t.Fatal(err)
		}
		if _, err := instances[i].Turn(Turn{Now: time.Unix(0, 0)}); err != nil {
			t.Fatal(err)
		}
	}
	each, reported := (footprint()-before)/n, instances[0].Bytes()
	for _, x := range instances {
		x.Close()
	}
	t.Logf("an instance uses %d bytes, Bytes returns %d", each, reported)
	if reported < each/2 || reported > 3*each {
		t.Errorf("an instance uses %d bytes, Bytes returns %d", each, reported)
	}
}

// nest suspends a body at a typical depth of calls.
//
//go:noinline
func nest(c *Context, depth int) int {
	var pad [64]byte
	pad[depth] = 1
	if depth > 0 {
		return nest(c, depth-1) + int(pad[depth])
	}
	c.Await(c.ScheduleActivity(ActivityCall{Name: "a", Input: json.RawMessage("1")}))
	return int(pad[depth])
}

// footprint returns the bytes in use by heap and stacks.
func footprint() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc + m.StackInuse)
}
