package replay

import (
	"encoding/json"
	"runtime"
	"testing"
	"time"

	"github.com/perdure/perdure/history"
)

// BenchmarkSwitch is one resumption of a coroutine and its next park.
func BenchmarkSwitch(b *testing.B) {
	x := newExecution(Orchestration{}, Options{})
	x.scheduler.spawn(func() {
		for {
			x.scheduler.park()
		}
	})
	c := x.scheduler.coroutines[0]
	b.ReportAllocs()
	for b.Loop() {
		x.scheduler.resume(c)
	}
	x.scheduler.unwind()
}

func TestRaceOverAndOverGathersNoWaiters(t *testing.T) {
	t.Parallel()
	const races = 100
	x := New(Orchestration{Body: func(c *Context, _ json.RawMessage) Ending {
		slow := c.ScheduleActivity(ActivityCall{Name: "slow"})
		for range races {
			c.AwaitAny([]*Task{slow, c.ScheduleActivity(ActivityCall{Name: "quick"})})
		}
		return Ending{Kind: history.OrchestrationCompleted}
	}}, Options{})
	t.Cleanup(func() { x.Close() })
	if err := x.Replay([]history.Event{{ID: 1, Kind: history.OrchestrationStarted}}); err != nil {
		t.Fatal(err)
	}
	id := int64(4) // of "quick"
	for !x.Ended() {
		quick := history.Event{Kind: history.ActivityCompleted, SourceEventID: id}
		if _, err := x.Turn(Turn{Inputs: [][]history.Event{{quick}}}); err != nil {
			t.Fatal(err)
		}
		if n := len(x.x.tasks.open[3].waiters); n > 1 {
			t.Fatalf("%d waiters", n)
		}
		id = x.LastEventID()
	}
}

func TestCoroutinesThatAreOverAreForgotten(t *testing.T) {
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
	if n := len(x.x.scheduler.coroutines); n > 16 {
		t.Errorf("%d coroutines", n)
	}
}

// Bytes bounds the cache, so it must be about what a suspended instance takes. Not parallel: the test reads the heap.
func TestBytesIsAboutWhatASuspendedInstanceCosts(t *testing.T) {
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
	each, told := (footprint()-before)/n, instances[0].Bytes()
	for _, x := range instances {
		x.Close()
	}
	t.Logf("%d bytes each, Bytes says %d", each, told)
	if told < each/2 || told > 3*each {
		t.Errorf("%d bytes each, Bytes says %d", each, told)
	}
}

// nest suspends a body at an ordinary depth of calls.
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

// footprint returns what heap and stacks take, in bytes.
func footprint() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc + m.StackInuse)
}

// A scope that lives long keeps nothing of tasks and waits that are over.
func TestScopeForgetsWhatIsOver(t *testing.T) {
	t.Parallel()
	const rounds = 100
	var scope *scope
	x := New(Orchestration{Body: func(c *Context, _ json.RawMessage) Ending {
		s := c.WithCancel()
		scope = s.scope
		for range rounds {
			u := s.WithCancel()
			timer := s.CreateTimer(time.Hour)
			g := s.Go(func() { s.Await(timer) })
			s.AwaitAny([]*Task{g, s.ScheduleActivity(ActivityCall{Name: "a"})})
			s.Cancel("requested", "", timer)
			u.End("dropped_future")
			s.Await(g)
		}
		s.Await(s.WaitForExternalEvent("e"))
		return Ending{Kind: history.OrchestrationCompleted}
	}}, Options{})
	t.Cleanup(func() { x.Close() })
	if err := x.Replay([]history.Event{{ID: 1, Kind: history.OrchestrationStarted}}); err != nil {
		t.Fatal(err)
	}
	if _, err := x.Turn(Turn{}); err != nil {
		t.Fatal(err)
	}
	for range rounds {
		a := history.Event{Kind: history.ActivityCompleted, SourceEventID: x.LastEventID()}
		if _, err := x.Turn(Turn{Inputs: [][]history.Event{{a}}}); err != nil {
			t.Fatal(err)
		}
	}
	m := scope.members
	if len(m.under) > 8 || len(m.tasks) > 8 || len(m.waiting) != 1 {
		t.Errorf("%d scopes, %d tasks, %d waiting", len(m.under), len(m.tasks), len(m.waiting))
	}
}
