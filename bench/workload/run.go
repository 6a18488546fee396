package workload

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Names of the workloads.
const (
	Sequence = "sequence" // instances of ten activities in a row, one instance after another
	Fan5     = "fan5"     // instances of five parallel activities, twenty in flight
	Fan1000  = "fan1000"  // one instance of 1,000 parallel activities
	Growth   = "growth"   // one instance of 100 activities in a row, one of 1,600
	Timeout  = "race"     // an activity that loses against a timer
	Cancel   = "cancel"   // an activity whose instance a client cancels
)

// Names returns all workloads in the order of a run.
func Names() []string { return []string{Sequence, Fan5, Fan1000, Growth, Timeout, Cancel} }

// KindOf returns the orchestration that a workload runs.
func KindOf(name string) Kind {
	switch name {
	case Fan5, Fan1000:
		return Fan
	case Timeout:
		return Race
	case Cancel:
		return Hold
	default:
		return Chain
	}
}

// Size is the amount of work. The benchmark uses Full, tests use less.
type Size struct {
	Instances      int           // of Sequence
	Within         time.Duration // of Fan5; limits the starts of Sequence
	InFlight       int           // of Fan5
	Wide           int           // activities of Fan1000
	Short, Long    int           // activities of Growth
	Stops          int           // repetitions of Timeout and Cancel
	StopsLimit     time.Duration // longest wait for a cancel to be observed
	SequenceLength int           // activities of each instance of Sequence
}

// Full returns the size of the benchmark.
func Full() Size {
	return Size{
		Instances: 100, Within: 5 * time.Second, InFlight: 20, Wide: 1000, Short: 100, Long: 1600, Stops: 3,
		StopsLimit:     5 * time.Second,
		SequenceLength: 10,
	}
}

// Outcome is the outcome of a workload. Fields that do not apply are zero.
type Outcome struct {
	Instances  int           `json:"instances"`
	Activities int64         `json:"activities"`
	Wall       time.Duration `json:"wall"`
	// ShortEach and LongEach are the times of an activity in the short and the long chain of Growth.
	ShortEach time.Duration `json:"shortEach"`
	LongEach  time.Duration `json:"longEach"`
	// Seen is the median time from the timer or the cancel to the end of the activity's context. It is zero if the
	// context never ended.
	Seen time.Duration `json:"seen"`
	// Never is true if a cancel was not observed within the limit.
	Never bool `json:"never"`
}

// WarmUp runs a few small instances.
func WarmUp(ctx context.Context, e Engine) error {
	for i := range 5 {
		if err := runOne(ctx, e, Chain, fmt.Sprintf("warm-%d", i), 5); err != nil {
			return fmt.Errorf("warm-up: %w", err)
		}
	}
	reset()
	return nil
}

// Run runs a workload by name.
func Run(ctx context.Context, e Engine, name string, size Size) (o Outcome, err error) {
	reset()
	began := time.Now()
	switch name {
	case Sequence:
		o, err = runMany(ctx, e, plan{
			kind: Chain, n: size.SequenceLength, inFlight: 1, count: size.Instances, within: size.Within,
		})
	case Fan5:
		o, err = runMany(ctx, e, plan{kind: Fan, n: 5, inFlight: size.InFlight, within: size.Within})
	case Fan1000:
		o, err = runMany(ctx, e, plan{kind: Fan, n: size.Wide, inFlight: 1, count: 1})
	case Growth:
		o, err = growth(ctx, e, size)
	case Timeout, Cancel:
		o, err = measureCancels(ctx, e, name, size)
	default:
		return o, fmt.Errorf("unknown workload %q; choose from %v", name, Names())
	}
	o.Wall, o.Activities = time.Since(began), probe.ran.Load()
	return o, err
}

// runOne runs one instance and checks its result.
func runOne(ctx context.Context, e Engine, kind Kind, id string, n int) error {
	got, err := e.Run(ctx, kind, Input{ID: id, N: n})
	if err != nil {
		return fmt.Errorf("%s: %w", id, err)
	}
	if got != Sum(n) {
		return fmt.Errorf("%s: the result of %s of %d is %d, not %d", id, kind, n, got, Sum(n))
	}
	return nil
}

// plan limits the instances of a run by their number and by the time of their starts. Zero means no limit.
type plan struct {
	kind               Kind
	n, inFlight, count int
	within             time.Duration
}

func (p plan) allows(i int, began time.Time) bool {
	return (p.count == 0 || i <= p.count) && (p.within == 0 || time.Since(began) < p.within)
}

func runMany(ctx context.Context, e Engine, p plan) (Outcome, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var clients sync.WaitGroup
	var next, done atomic.Int64
	began := time.Now()
	for range p.inFlight {
		clients.Go(func() {
			for i := int(next.Add(1)); ctx.Err() == nil && p.allows(i, began); i = int(next.Add(1)) {
				if err := runOne(ctx, e, p.kind, fmt.Sprintf("%s-%06d", p.kind, i), p.n); err != nil {
					stop(err)
					return
				}
				done.Add(1)
			}
		})
	}
	clients.Wait()
	o := Outcome{Instances: int(done.Load())}
	if err := context.Cause(ctx); err != nil {
		return o, err
	}
	if ran, want := probe.ran.Load(), int64(o.Instances*p.n); ran < want {
		return o, fmt.Errorf("%d activities ran, not %d: the result was not computed", ran, want)
	}
	return o, nil
}

func growth(ctx context.Context, e Engine, size Size) (o Outcome, err error) {
	each := func(n int) time.Duration {
		began := time.Now()
		if err == nil {
			err = runOne(ctx, e, Chain, fmt.Sprintf("length-%d", n), n)
		}
		return time.Since(began) / time.Duration(n)
	}
	o.Instances, o.ShortEach, o.LongEach = 2, each(size.Short), each(size.Long)
	if ran, want := probe.ran.Load(), int64(size.Short+size.Long); err == nil && ran < want {
		err = fmt.Errorf("%d activities ran, not %d: the result was not computed", ran, want)
	}
	return o, err
}

// reachLimit limits the time before the measurement starts.
const reachLimit = 20 * time.Second

// measureCancels measures how soon an activity observes a cancel.
func measureCancels(ctx context.Context, e Engine, name string, size Size) (o Outcome, err error) {
	var seen []time.Duration
	for i := range size.Stops {
		d, ok, err := measureCancel(ctx, e, name, fmt.Sprintf("%s-%d", name, i), size.StopsLimit)
		if err != nil {
			return o, err
		}
		o.Instances++
		if !ok {
			o.Never = true
			return o, nil
		}
		seen = append(seen, d)
	}
	slices.Sort(seen)
	o.Seen = seen[len(seen)/2]
	return o, nil
}

func measureCancel(ctx context.Context, e Engine, name, id string, limit time.Duration) (
	after time.Duration, seen bool, err error,
) {
	reset()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = e.Run(ctx, KindOf(name), Input{ID: id, N: 1}) // engines end a cancelled instance differently
	}()
	defer func() { // end blocked activities, so that the engine is idle for the next measurement
		release()
		select {
		case <-ended:
		case <-time.After(limit):
		}
	}()
	if _, ok := waitForMark(ctx, id+"/blocked", reachLimit); !ok {
		return 0, false, errors.Join(fmt.Errorf("%s: the activity did not start", id), context.Cause(ctx))
	}
	from, err := trigger(ctx, e, name, id)
	if err != nil {
		return 0, false, err
	}
	at, seen := waitForMark(ctx, id+"/cancelled", limit)
	return at.Sub(from), seen, nil
}

// cancelDelay is the time that an activity runs before its instance is cancelled.
const cancelDelay = 300 * time.Millisecond

// trigger waits for the timer or cancels the instance, and returns the time.
func trigger(ctx context.Context, e Engine, name, id string) (time.Time, error) {
	if name == Timeout {
		at, ok := waitForMark(ctx, TimerMark(id), reachLimit)
		if !ok {
			return at, errors.Join(fmt.Errorf("%s: the timer did not fire", id), context.Cause(ctx))
		}
		return at, nil
	}
	time.Sleep(cancelDelay)
	at := time.Now()
	return at, e.Cancel(ctx, id)
}

// TimerMark returns the name of the mark that the orchestration Race sets when its timer has fired.
func TimerMark(id string) string { return id + "/timer" }
