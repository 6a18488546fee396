package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/internal/simaws"
)

// An activity observes a cancellation within the poll interval of 250 ms, at any phase of the interval.
func TestPoll_cancel_isObservedWithinTheInterval(t *testing.T) {
	t.Parallel()
	for _, ms := range []int{10, 240, 260, 490, 510, 740, 760, 990, 1010} {
		after := time.Duration(ms) * time.Millisecond
		t.Run(after.String(), func(t *testing.T) {
			t.Parallel()
			onJobHub(t, func(ctx context.Context, f *jobHub) {
				in := f.jobsOf("a", forever)
				over := f.handled(ctx, f.worker(nil))
				time.Sleep(time.Minute + after)
				f.cancel(in, 3)
				decided := time.Now()
				<-over
				if took := f.observedAt().Sub(decided); took > dispatch.DefaultCancelPollInterval {
					t.Errorf("the activity observed the cancellation after %v, want at most %v",
						took, dispatch.DefaultCancelPollInterval)
				}
			})
		})
	}
}

// Eventually consistent reads lag. One poll per second is strongly consistent.
func TestPoll_readsLag_cancelIsObservedWithinASecond(t *testing.T) {
	t.Parallel()
	for _, ms := range []int{10, 260, 510, 760} {
		after := time.Duration(ms) * time.Millisecond
		t.Run(after.String(), func(t *testing.T) {
			t.Parallel()
			onJobHub(t, func(ctx context.Context, f *jobHub) {
				in := f.jobsOf("a", forever)
				over := f.handled(ctx, f.worker(nil))
				f.Cloud.Table.Lag(1000)
				time.Sleep(time.Minute + after)
				f.cancel(in, 3)
				decided := time.Now()
				<-over
				if took := f.observedAt().Sub(decided); took > time.Second || took <= 0 {
					t.Errorf("the activity observed the cancellation after %v, want at most 1s", took)
				}
			})
		})
	}
}

// A poll that reads outdated data does not skip decisions, because the next poll starts at the last decision that was
// read.
func TestPoll_readsOutdatedData_skipsNoDecision(t *testing.T) {
	t.Parallel()
	onJobHub(t, func(ctx context.Context, f *jobHub) {
		in := f.jobsOf("a", forever, forever, forever)
		over := f.handled(ctx, f.worker(nil))
		time.Sleep(time.Minute + 10*time.Millisecond)
		f.Cloud.Table.Lag(3) // reads miss the decisions of at most one turn
		f.cancel(in, 3)
		f.cancel(in, 4)
		time.Sleep(300 * time.Millisecond)
		f.cancel(in, 5)
		<-over
		for id := int64(3); id <= 5; id++ {
			f.wantCause(id, perdure.ReasonSelectLoser)
		}
	})
}

// While polls fail, the worker polls once a second, because additional reads would also be throttled. After an hour of
// failures, the first successful poll finds all decisions.
func TestPoll_failing_isMadeOncePerSecond(t *testing.T) {
	t.Parallel()
	onJobHub(t, func(ctx context.Context, f *jobHub) {
		in := f.jobsOf("a", forever)
		w := f.worker(func(o *dispatch.WorkerOptions) { o.LeaseAfter = 2 * time.Hour }) // no renewal replaces a poll
		on := f.failing("Query")
		over := f.handled(ctx, w)
		time.Sleep(10*time.Second + 10*time.Millisecond)
		on.Store(true)
		time.Sleep(time.Second)
		pollCount := f.polls()
		time.Sleep(time.Minute)
		if n := f.polls() - pollCount; n != 60 {
			t.Errorf("got %d polls in a minute in which all fail, want 60", n)
		}
		f.Cloud.Table.Lag(1000)
		on.Store(false)
		recovered := time.Now()
		f.cancel(in, 3)
		<-over
		if took := f.observedAt().Sub(recovered); took > time.Second {
			t.Errorf("the activity observed the cancellation %v after the table recovered, want at most 1s", took)
		}
	})
}

// A process that runs activities of many executions polls less often for each, but at least once a second.
func TestPoll_manyExecutions_pollsEachAtLeastOncePerSecond(t *testing.T) {
	t.Parallel()
	for executions, pollCount := range map[int]int{25: 4, 100: 2, 400: 1} {
		t.Run(fmt.Sprint(executions), func(t *testing.T) {
			t.Parallel()
			onJobHub(t, func(ctx context.Context, f *jobHub) {
				w := f.worker(nil)
				for i := range executions {
					f.jobsOf(fmt.Sprint("i", i), job{Takes: 4 * time.Minute})
				}
				for n := 0; n < executions; {
					records := f.receive("sim://default")
					n += len(records)
					go w.HandleRecords(ctx, records)
				}
				time.Sleep(2*time.Minute + 100*time.Millisecond)
				before := f.polls()
				time.Sleep(time.Minute)
				if n := f.polls() - before; n < 58*pollCount*executions || n > 62*pollCount*executions {
					t.Errorf("got %d polls in a minute, want %d per second for each execution", n, pollCount)
				}
			})
		})
	}
}

// An activity may have its own interval. The shortest interval of an execution's activities applies.
func TestPoll_activityHasAnInterval_shortestCounts(t *testing.T) {
	t.Parallel()
	pollCount := func(ctx context.Context, f *jobHub, opts ...perdure.ActivityOption) int {
		r := perdure.NewRegistry()
		perdure.DefineActivity[job, string]("job", opts...).Register(r, f.do)
		f.jobsOf("a", job{Takes: time.Minute}, job{Takes: time.Minute})
		w := f.workerOf(r, func(o *dispatch.WorkerOptions) { o.LeaseAfter = 2 * time.Hour })
		over := f.handled(ctx, w)
		time.Sleep(20*time.Second + 10*time.Millisecond)
		n := f.polls() - 1
		<-over
		return n
	}
	for name, c := range map[string]struct {
		opts []perdure.ActivityOption
		want int
	}{
		"worker's interval": {nil, 80},
		"five seconds":      {[]perdure.ActivityOption{perdure.WithCancelPollInterval(5 * time.Second)}, 4},
		"100 ms":            {[]perdure.ActivityOption{perdure.WithCancelPollInterval(100 * time.Millisecond)}, 200},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onJobHub(t, func(ctx context.Context, f *jobHub) {
				if n := pollCount(ctx, f, c.opts...); n < c.want-1 || n > c.want {
					t.Errorf("got %d polls in 20s, want %d", n, c.want)
				}
				strong := 0
				for _, made := range f.made() {
					if in, ok := made.Input.(*dynamodb.QueryInput); ok && readsCancels(made) && *in.ConsistentRead {
						strong++
					}
				}
				if least, most := min(c.want, 20), 62; strong < least || strong > most {
					t.Errorf("got %d strongly consistent polls, want 1 per second", strong)
				}
			})
		})
	}
}

// After an activity with a short interval has ended, the interval of the remaining activity applies.
func TestPoll_activityWithShortIntervalEnds_itsIntervalIsDropped(t *testing.T) {
	t.Parallel()
	onJobHub(t, func(ctx context.Context, f *jobHub) {
		r := perdure.NewRegistry()
		perdure.DefineActivity[job, string]("job", perdure.WithCancelPollInterval(10*time.Second)).Register(r, f.do)
		perdure.DefineActivity[job, string]("brief").Register(r, f.do)
		f.jobsOf("a", job{Takes: 12 * time.Minute}, job{Takes: 5 * time.Second, Brief: true}, job{
			Takes: 5 * time.Second, Brief: true,
		})
		w := f.workerOf(r, func(o *dispatch.WorkerOptions) { o.LeaseAfter = 2 * time.Hour })
		over := f.handled(ctx, w)
		time.Sleep(time.Minute)
		before := f.polls()
		time.Sleep(10 * time.Minute)
		if n := f.polls() - before; n < 59 || n > 61 {
			t.Errorf("got %d polls in ten minutes, want one every ten seconds", n)
		}
		<-over
	})
}

// A frozen function cuts off a poll. If the activity has ended by then, the worker logs no warning.
func TestPoll_failsAfterItsActivityEnded_logsNoWarning(t *testing.T) {
	t.Parallel()
	onJobHub(t, func(ctx context.Context, f *jobHub) {
		f.jobsOf("a", job{Takes: 5 * time.Second})
		over := f.handled(ctx, f.worker(nil))
		time.Sleep(4300 * time.Millisecond)
		f.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
			if readsCancels(c) {
				time.Sleep(3 * time.Second)
				return errors.New("cut off")
			}
			return next()
		})
		<-over
		time.Sleep(time.Minute)
		if strings.Contains(f.log.String(), logevent.CancelRecordReadFailed) {
			t.Errorf("got a warning about the poll:\n%s", f.log.String())
		}
	})
}
