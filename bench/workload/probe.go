package workload

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// probe records the activities of this process. It is global, because orchestrations are registered as plain functions.
var probe = struct {
	ran atomic.Int64

	mu    sync.Mutex
	marks map[string]time.Time
	gate  chan struct{} // closed to end blocked activities
}{marks: map[string]time.Time{}, gate: make(chan struct{})}

// Noop is the body of the normal activity. It returns the number of its input.
func Noop(p Payload) int {
	probe.ran.Add(1)
	return p.N
}

// Ran adds activities that ran in another process.
func Ran(n int) { probe.ran.Add(int64(n)) }

const heartbeatInterval = 50 * time.Millisecond

// Block is the body of the activity that waits. It returns when its context ends or the measurement ends. It calls
// beat, if not nil, every 50 ms, because some engines receive a cancel in the response to a heartbeat.
func Block(ctx context.Context, id string, beat func()) error {
	Mark(id + "/blocked")
	probe.mu.Lock()
	gate := probe.gate
	probe.mu.Unlock()
	tick := time.NewTicker(heartbeatInterval)
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

// Mark records the time when a point is first reached. Later calls, for example of replays, do not change it.
func Mark(name string) {
	probe.mu.Lock()
	defer probe.mu.Unlock()
	if _, ok := probe.marks[name]; !ok {
		probe.marks[name] = time.Now()
	}
}

// pollInterval is the poll interval of waitForMark, which limits the error of the measurement.
const pollInterval = 200 * time.Microsecond

// waitForMark waits until a point is reached and returns the time. ok is false if it is not reached within the given
// time.
func waitForMark(ctx context.Context, name string, within time.Duration) (at time.Time, ok bool) {
	for end := time.Now().Add(within); ; time.Sleep(pollInterval) {
		probe.mu.Lock()
		at, ok = probe.marks[name]
		probe.mu.Unlock()
		if ok || ctx.Err() != nil || time.Now().After(end) {
			return at, ok
		}
	}
}

// reset clears the probe.
func reset() {
	probe.mu.Lock()
	defer probe.mu.Unlock()
	probe.ran.Store(0)
	probe.marks, probe.gate = map[string]time.Time{}, make(chan struct{})
}

// release ends the blocked activities.
func release() {
	probe.mu.Lock()
	defer probe.mu.Unlock()
	select {
	case <-probe.gate:
	default:
		close(probe.gate)
	}
}
