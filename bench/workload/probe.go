package workload

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// probe is what activities note. Orchestrations are registered as plain functions, so there is one for the process.
var probe = struct {
	ran atomic.Int64

	mu    sync.Mutex
	marks map[string]time.Time
	gate  chan struct{} // closed to let held activities go
}{marks: map[string]time.Time{}, gate: make(chan struct{})}

// Noop is the body of the ordinary activity: it returns the number it was given.
func Noop(p Payload) int {
	probe.ran.Add(1)
	return p.N
}

// Ran notes activities that ran in another process.
func Ran(n int) { probe.ran.Add(int64(n)) }

const beatEvery = 50 * time.Millisecond

// Block is the body of the activity that waits: it returns when its context ends, or when the measurement gives up. beat, if there is one,
// is called every 50 ms: some engines hear of a cancel in the answer to a heartbeat.
func Block(ctx context.Context, id string, beat func()) error {
	Mark(id + "/blocked")
	probe.mu.Lock()
	gate := probe.gate
	probe.mu.Unlock()
	tick := time.NewTicker(beatEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			Mark(id + "/cancelled")
			return context.Cause(ctx)
		case <-gate:
			return nil
		case <-tick.C:
			if beat != nil {
				beat()
			}
		}
	}
}

// Mark notes when a point is reached first: replays do not move it.
func Mark(name string) {
	probe.mu.Lock()
	defer probe.mu.Unlock()
	if _, ok := probe.marks[name]; !ok {
		probe.marks[name] = time.Now()
	}
}

// lookEvery bounds the error of what is measured by marks.
const lookEvery = 200 * time.Microsecond

// marked waits until a point is reached, and says when that was.
func marked(ctx context.Context, name string, within time.Duration) (at time.Time, ok bool) {
	for end := time.Now().Add(within); ; time.Sleep(lookEvery) {
		probe.mu.Lock()
		at, ok = probe.marks[name]
		probe.mu.Unlock()
		if ok || ctx.Err() != nil || time.Now().After(end) {
			return at, ok
		}
	}
}

// reset forgets what was noted.
func reset() {
	probe.mu.Lock()
	defer probe.mu.Unlock()
	probe.ran.Store(0)
	probe.marks, probe.gate = map[string]time.Time{}, make(chan struct{})
}

// release lets the activities go that wait.
func release() {
	probe.mu.Lock()
	defer probe.mu.Unlock()
	select {
	case <-probe.gate:
	default:
		close(probe.gate)
	}
}
