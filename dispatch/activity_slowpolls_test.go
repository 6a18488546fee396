package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/internal/shortrun"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/provider"
)

// isPoll reports whether a call reads a cancel record, and whether the read is strongly consistent.
func isPoll(c simaws.Call) (strong, pollCount bool) {
	if !readsCancels(c) {
		return false, false
	}
	return *c.Input.(*dynamodb.QueryInput).ConsistentRead, true
}

// slowCalls lists ways in which a call delays its caller.
var slowCalls = map[string]func(ctx context.Context, next func() error) error{
	"hangs": func(ctx context.Context, _ func() error) error {
		<-ctx.Done()
		return ctx.Err()
	},
	"is throttled, and the client waits": func(ctx context.Context, _ func() error) error {
		if err := sleepFor(ctx, 3*time.Second); err != nil {
			return err
		}
		return &types.ProvisionedThroughputExceededException{}
	},
	"is throttled": func(context.Context, func() error) error {
		return &types.ProvisionedThroughputExceededException{}
	},
	"responds late": func(ctx context.Context, next func() error) error {
		if err := sleepFor(ctx, 600*time.Millisecond); err != nil {
			return err
		}
		return next()
	},
	"fails late": func(ctx context.Context, _ func() error) error {
		if err := sleepFor(ctx, 240*time.Millisecond); err != nil {
			return err
		}
		return errors.New("refused")
	},
}

// Eventually consistent polls that hang or are throttled do not delay the strongly consistent poll of each second. The
// interval need not divide a second.
func TestPoll_eventuallyConsistentPollsAreSlow_delayNoConsistentPoll(t *testing.T) {
	t.Parallel()
	for name, wait := range slowCalls {
		for _, every := range []time.Duration{
			250 * time.Millisecond, 300 * time.Millisecond, 900 * time.Millisecond, time.Second,
		} {
			t.Run(fmt.Sprint(name, every), func(t *testing.T) {
				t.Parallel()
				for _, ms := range []int{10, 260, 510, 760, 990} {
					onJobHub(t, func(ctx context.Context, f *jobHub) {
						in := f.jobsOf("a", forever)
						over := f.handled(ctx, f.worker(func(o *dispatch.WorkerOptions) {
							o.CancelPollInterval, o.LeaseAfter = every, 2*time.Hour
						}))
						f.interfere(func(ctx context.Context, c simaws.Call, next func() error) error {
							if strong, pollCount := isPoll(c); pollCount && !strong {
								return wait(ctx, next)
							}
							return next()
						})
						f.Cloud.Table.Lag(1000)
						time.Sleep(time.Minute + time.Duration(ms)*time.Millisecond)
						f.cancel(in, 3)
						decided := time.Now()
						<-over
						if took := f.observedAt().Sub(decided); took > time.Second+50*time.Millisecond || took <= 0 {
							t.Errorf("the activity observed the cancellation after %v, want at most 1s", took)
						}
						if strings.Contains(f.log.String(), logevent.CancelRecordReadFailed) {
							t.Error("the log reports failed polls, although one poll per second succeeds")
						}
					})
				}
			})
		}
	}
}

// With a short interval, an eventually consistent poll may still take as long as an ordinary call. A slow poll delays
// the strongly consistent poll by at most the time of one call.
func TestPoll_slowWithShortInterval_isNotAbandonedEarly(t *testing.T) {
	t.Parallel()
	onJobHub(t, func(ctx context.Context, f *jobHub) {
		in := f.jobsOf("a", forever)
		over := f.handled(ctx, f.worker(func(o *dispatch.WorkerOptions) {
			o.CancelPollInterval = 20 * time.Millisecond
		}))
		updateResult := &atomic.Bool{}
		f.interfere(func(ctx context.Context, c simaws.Call, next func() error) error {
			strong, pollCount := isPoll(c)
			switch {
			case !pollCount || strong:
			case updateResult.Load():
				return slowCalls["hangs"](ctx, next)
			default:
				if err := sleepFor(ctx, 200*time.Millisecond); err != nil {
					t.Error("the worker abandoned a poll after 200 ms")
				}
			}
			return next()
		})
		time.Sleep(time.Minute)
		updateResult.Store(true)
		f.cancel(in, 3)
		decided := time.Now()
		<-over
		if took := f.observedAt().Sub(decided); took > 1250*time.Millisecond {
			t.Errorf("the activity observed the cancellation after %v, want at most 1.25s", took)
		}
	})
}

// The worker abandons a strongly consistent poll after a second. The next poll has more time, because no poll would
// succeed if each call took longer than a second.
func TestPoll_consistentPollHangs_nextOneHasMoreTime(t *testing.T) {
	t.Parallel()
	onJobHub(t, func(ctx context.Context, f *jobHub) {
		in := f.jobsOf("a", forever)
		over := f.handled(ctx, f.worker(func(o *dispatch.WorkerOptions) { o.LeaseAfter = 2 * time.Hour }))
		f.Cloud.Table.Lag(1000)
		time.Sleep(time.Minute + 10*time.Millisecond)
		var hung atomic.Int64
		f.interfere(func(ctx context.Context, c simaws.Call, next func() error) error {
			if strong, _ := isPoll(c); strong && hung.Add(1) == 1 {
				return slowCalls["hangs"](ctx, next)
			}
			return next()
		})
		f.cancel(in, 3)
		decided := time.Now()
		<-over
		if took := f.observedAt().Sub(decided); took > 2*time.Second {
			t.Errorf("the activity observed the cancellation after %v, want the second of the hanging poll and another",
				took)
		}
	})
	onJobHub(t, func(ctx context.Context, f *jobHub) {
		in := f.jobsOf("a", forever)
		over := f.handled(ctx, f.worker(func(o *dispatch.WorkerOptions) { o.LeaseAfter = 2 * time.Hour }))
		f.interfere(func(ctx context.Context, c simaws.Call, next func() error) error {
			if readsCancels(c) {
				if err := sleepFor(ctx, 2*time.Second); err != nil {
					return err
				}
			}
			return next()
		})
		time.Sleep(time.Minute)
		if n := strings.Count(f.log.String(), logevent.CancelRecordReadFailed); n != 1 {
			t.Errorf("got %d log lines about polls that take two seconds each, want 1 about the first", n)
		}
		f.cancel(in, 3)
		decided := time.Now()
		<-over
		if took := f.observedAt().Sub(decided); took > 4*time.Second {
			t.Errorf("the activity observed the cancellation after %v, with polls of two seconds each", took)
		}
	})
}

// Polls for one execution do not delay polls for another execution.
func TestPoll_hangs_delaysNoOtherExecution(t *testing.T) {
	t.Parallel()
	onJobHub(t, func(ctx context.Context, f *jobHub) {
		first, second := f.jobsOf("a", forever), f.jobsOf("b", forever)
		over := f.handled(ctx, f.worker(nil))
		f.interfere(func(ctx context.Context, c simaws.Call, next func() error) error {
			if in, ok := c.Input.(*dynamodb.QueryInput); ok && readsCancels(c) &&
				strings.Contains(fmt.Sprint(in.ExpressionAttributeValues), first.ExecutionID) {
				return slowCalls["hangs"](ctx, next)
			}
			return next()
		})
		time.Sleep(time.Minute + 10*time.Millisecond)
		f.cancel(second, 3)
		decided := time.Now()
		time.Sleep(time.Second)
		if took := f.observedAt().Sub(decided); took > dispatch.DefaultCancelPollInterval || took <= 0 {
			t.Errorf("the activity observed the cancellation after %v, want at most the poll interval", took)
		}
		f.interfere(nil)
		f.cancel(first, 3)
		<-over
	})
}

// A successful renewal replaces a poll. A renewal that hangs delays polls by at most the interval.
func TestPoll_renewalHangs_isDelayedByAtMostTheInterval(t *testing.T) {
	t.Parallel()
	for _, ms := range []int{0, 240, 490, 740, 990} {
		onJobHub(t, func(ctx context.Context, f *jobHub) {
			in := f.jobsOf("a", forever)
			w := f.worker(func(o *dispatch.WorkerOptions) {
				o.LeaseAfter = time.Minute + time.Duration(ms)*time.Millisecond
			})
			over := f.handled(ctx, w)
			f.Cloud.Table.Lag(1000)
			f.interfere(func(ctx context.Context, c simaws.Call, next func() error) error {
				if c.Operation == "ChangeMessageVisibilityBatch" {
					return slowCalls["hangs"](ctx, next)
				}
				return next()
			})
			time.Sleep(time.Minute + time.Millisecond)
			f.cancel(in, 3)
			decided := time.Now()
			<-over
			if took := f.observedAt().Sub(decided); took > time.Second+dispatch.DefaultCancelPollInterval {
				t.Errorf("renewal after %d ms: the activity observed the cancellation after %v", ms, took)
			}
		})
	}
}

// A renewal of one record does not replace polls for other activities of its execution.
func TestPoll_otherActivityIsRenewed_isNotReplaced(t *testing.T) {
	t.Parallel()
	onJobHub(t, func(ctx context.Context, f *jobHub) {
		in := f.jobsOf("a", forever, forever)
		w := f.worker(func(o *dispatch.WorkerOptions) { o.LeaseAfter = 2 * time.Hour })
		records := f.receive("sim://default")
		over := make(chan []string, 1)
		go func() { over <- f.mapped(ctx, w, records) }()
		time.Sleep(time.Minute + 10*time.Millisecond)
		other := records[0]
		if strings.Contains(other.Body, `"activityId":3`) {
			other = records[1]
		}
		f.cancel(in, 3)
		decided := time.Now()
		for range 20 {
			time.Sleep(100 * time.Millisecond)
			if _, err := w.RenewRecords(ctx, 30*time.Second, other); err != nil {
				t.Error(err)
			}
		}
		if took := f.observedAt().Sub(decided); took > dispatch.DefaultCancelPollInterval || took <= 0 {
			t.Errorf("the activity observed the cancellation after %v, want at most the poll interval", took)
		}
		f.cancel(in, 4)
		<-over
	})
}

// A process with many executions polls less often for each. One strongly consistent poll per second remains.
func TestPoll_manyExecutions_observesACancelWithinASecond(t *testing.T) {
	t.Parallel()
	shortrun.Skip(t)
	for _, executions := range []int{60, 110, 180, 300} {
		onJobHub(t, func(ctx context.Context, f *jobHub) {
			w := f.worker(func(o *dispatch.WorkerOptions) { o.LeaseAfter = 2 * time.Hour })
			var all []provider.Instance
			for i := range executions {
				all = append(all, f.jobsOf(fmt.Sprint("i", i), job{Takes: 2 * time.Minute}))
			}
			for n := 0; n < executions; {
				records := f.receive("sim://default")
				n += len(records)
				go w.HandleRecords(ctx, records)
			}
			f.Cloud.Table.Lag(1000)
			for i := range 10 {
				time.Sleep(time.Second + time.Duration(i)*100*time.Millisecond)
				f.cancel(all[i], 3)
				decided := time.Now()
				time.Sleep(time.Second + 10*time.Millisecond)
				f.mu.Lock()
				if len(f.observations) != i+1 {
					t.Errorf("got %d executions: no activity observed the cancellation within a second of %v",
						executions, decided)
				}
				f.mu.Unlock()
			}
		})
	}
}
