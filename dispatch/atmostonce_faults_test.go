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
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/shortrun"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
)

// onceRegistry returns a registry whose orchestration "once" calls the activity "pay" at most once. The activity
// records each start and runs code.
func (d *debits) onceRegistry(
	code func(ctx context.Context) (int, error), opts ...perdure.ActivityCallOption,
) *perdure.Registry {
	r := registry()
	perdure.AddActivity(r, "pay", func(ctx context.Context, _ int) (int, error) {
		d.begins(ctx)
		return code(ctx)
	})
	perdure.AddOrchestration(r, "once", func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
		return perdure.CallActivityByName[int](ctx, "pay", 0, append(opts, perdure.AtMostOnce())...).Await(ctx)
	})
	return r
}

// writes reports whether a call updates an item with an expression that contains a text.
func writes(c simaws.Call, expression string) bool {
	in, ok := c.Input.(*dynamodb.UpdateItemInput)
	return ok && in.UpdateExpression != nil && strings.Contains(*in.UpdateExpression, expression)
}

const (
	takesRunLease  = "REMOVE #outcome"
	storesOutcome  = "SET #outcome = :outcome"
	recordsPending = "#pendingOf"
)

// throttledForTenMinutes throttles the selected calls for ten minutes, starting with the first one.
func throttledForTenMinutes(picks func(simaws.Call) bool) simaws.Interceptor {
	var since atomic.Int64
	return func(_ context.Context, c simaws.Call, next func() error) error {
		if !picks(c) {
			return next()
		}
		since.CompareAndSwap(0, time.Now().UnixNano())
		if time.Since(time.Unix(0, since.Load())) < 10*time.Minute {
			return simaws.Throttled()
		}
		return next()
	}
}

// An activity that becomes asynchronous while its worker stops still has its time limits.
func TestR32_activityBecomesPendingWhileItsWorkerStops_keepsItsTimeLimits(t *testing.T) {
	t.Parallel()
	for name, opt := range map[string]perdure.ActivityCallOption{
		"start-to-close": perdure.WithStartToCloseTimeout(10 * time.Minute),
		"heartbeat":      perdure.WithHeartbeatTimeout(10 * time.Minute),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := &debits{}
			r := d.onceRegistry(func(ctx context.Context) (int, error) {
				<-ctx.Done()
				return 0, perdure.ErrPending
			}, opt)
			inBubble(t, simhub.Options{
				Registry: r, InvocationLimit: time.Minute, WorkVisibility: time.Minute,
			}, func(_ context.Context, h *hub) {
				in := h.start("once", 0)
				end := h.finish(in)
				if end.Error == nil || end.Error.Cause == nil || end.Error.Cause.Type != history.TypeTimeout ||
					end.Time.Sub(in.CreatedAt) > 13*time.Minute {
					t.Errorf("got end after %v with %+v, want a timeout", end.Time.Sub(in.CreatedAt), end.Error)
				}
				h.checkIdle()
			})
			d.check(t, name, 1)
		})
	}
}

// A worker stops while the code of an awaited activity still runs. The worker reports no end. The retry policy applies,
// and the outcome shows the compensation that the code may still run.
func TestR32_workerStopsWhileCodeRuns_nextDeliveryReportsAbandoned(t *testing.T) {
	t.Parallel()
	for _, retried := range []bool{false, true} {
		t.Run(fmt.Sprint("retried ", retried), func(t *testing.T) {
			t.Parallel()
			d := &debits{}
			opts := []perdure.ActivityCallOption{perdure.WaitForCancellation()}
			if retried {
				opts = append(opts, perdure.WithRetry(perdure.RetryPolicy{}))
			}
			r := d.onceRegistry(func(ctx context.Context) (int, error) {
				if perdure.ActivityInfoFrom(ctx).Attempt == 1 {
					time.Sleep(10 * time.Minute)
				}
				return 1, nil
			}, opts...)
			inBubble(t, simhub.Options{
				Registry: r, InvocationLimit: time.Minute, WorkVisibility: time.Minute,
			}, func(_ context.Context, h *hub) {
				in := h.start("once", 0)
				end := h.finish(in)
				var ended string
				for _, e := range h.events(in) {
					if (e.Kind == history.ActivityFailed || e.Kind == history.ActivityCompleted) && e.Cancel != nil {
						ended = e.Cancel.Outcome
					}
				}
				if retried != (string(end.Output) == "1") || ended != history.OutcomeAbandoned {
					t.Errorf("ended with %s %+v; activity outcome is %q, want abandoned",
						end.String(), end.Error, ended)
				}
				h.checkIdle()
			})
			d.check(t, "not returned", 2)
		})
	}
}

// A worker crashes while it runs an awaited activity. The failure reports the lost worker.
func TestR32_workerOfAwaitedActivityDies_outcomeIsWorkerLost(t *testing.T) {
	t.Parallel()
	d, crashNow := &debits{}, func(simaws.Call) (bool, bool) { return false, false }
	r := d.onceRegistry(func(ctx context.Context) (int, error) {
		simhub.Die(ctx)
		return 1, nil
	}, perdure.WaitForCancellation())
	inBubble(t, simhub.Options{
		Registry: r, Intercept: simhub.Crash(crashNow), WorkVisibility: time.Minute,
	}, func(_ context.Context, h *hub) {
		in := h.start("once", 0)
		h.finish(in)
		for _, e := range h.events(in) {
			if e.Kind == history.ActivityFailed && history.CancelOutcomeOf(&e) != history.OutcomeWorkerLost {
				t.Errorf("got outcome %q, want worker lost", history.CancelOutcomeOf(&e))
			}
		}
		h.checkIdle()
	})
	d.check(t, "dead", 1)
}

// A worker does not lose a known outcome when a service fails for a while. No redelivery would run the activity again.
func TestR32_temporaryOutage_losesNoOutcome(t *testing.T) {
	t.Parallel()
	wait := perdure.WaitForCancellation()
	codec := &turning{id: "turned"}
	for name, c := range map[string]struct {
		opts  []perdure.ActivityCallOption
		code  func(context.Context) (int, error)
		fault simaws.Interceptor
		codec perdure.Codec
	}{
		"outcome of an awaited activity cannot be stored": {
			opts:  []perdure.ActivityCallOption{wait},
			fault: throttledForTenMinutes(func(c simaws.Call) bool { return writes(c, storesOutcome) }),
		},
		"cancel record cannot be read": {
			fault: throttledForTenMinutes(readsCancels),
		},
		"cancel record of an awaited activity cannot be read": {
			opts:  []perdure.ActivityCallOption{wait},
			fault: throttledForTenMinutes(readsCancels),
		},
		"run lease cannot be taken": {
			fault: throttledForTenMinutes(func(c simaws.Call) bool { return writes(c, takesRunLease) }),
		},
		"result cannot be encoded": {
			code: func(context.Context) (int, error) {
				codec.fail(errors.New("out of service"))
				time.AfterFunc(time.Minute, func() { codec.fail(nil) })
				return 1, nil
			},
			codec: codec,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := &debits{}
			if c.code == nil {
				c.code = func(context.Context) (int, error) { return 1, nil }
			}
			o := simhub.Options{
				Registry: d.onceRegistry(c.code, c.opts...), Intercept: c.fault, WorkVisibility: time.Minute,
			}
			if c.codec != nil {
				o.Codecs = []perdure.Codec{c.codec}
			}
			inBubble(t, o, func(_ context.Context, h *hub) {
				if end := h.finish(h.start("once", 0)); end.Kind != history.OrchestrationCompleted {
					t.Errorf("ended with %s %+v, want completed", end.String(), end.Error)
				}
				h.checkIdle()
			})
			d.check(t, name, 1)
		})
	}
}

// The pending state of an asynchronous activity cannot be written. The sweeper does not fail the activity while a
// caller holds the token.
func TestR32_pendingStateCannotBeWritten_sweeperDoesNotFailTheActivity(t *testing.T) {
	t.Parallel()
	d := &debits{}
	r := d.onceRegistry(func(context.Context) (int, error) {
		return 0, perdure.ErrPending
	}, perdure.WaitForCancellation(), perdure.WithStartToCloseTimeout(3*time.Hour))
	fault := throttledForTenMinutes(func(c simaws.Call) bool { return writes(c, recordsPending) })
	inBubble(t, simhub.Options{
		Registry: r, Intercept: fault, WorkVisibility: time.Minute,
	}, func(_ context.Context, h *hub) {
		end := h.finish(h.start("once", 0))
		if end.Error == nil || end.Error.Cause == nil || end.Error.Cause.Type != history.TypeTimeout {
			t.Errorf("got end %+v, want a timeout", end.Error)
		}
		h.checkIdle()
	})
	d.check(t, "made pending", 1)
}

// A renewal of the run lease that arrives late does not remove the stored outcome. The worker crashes before it sends
// the outcome.
func TestR32_runLeaseIsRenewedLate_storedOutcomeRemains(t *testing.T) {
	t.Parallel()
	for _, wait := range []bool{false, true} {
		t.Run(fmt.Sprint("waited ", wait), func(t *testing.T) {
			t.Parallel()
			d := &debits{}
			var opts []perdure.ActivityCallOption
			if wait {
				opts = append(opts, perdure.WaitForCancellation())
			}
			var taken, sent atomic.Int64
			r := d.onceRegistry(func(context.Context) (int, error) {
				for taken.Load() < 2 {
					time.Sleep(time.Second)
				}
				return 1, nil
			}, opts...)
			fault := func(_ context.Context, c simaws.Call, next func() error) error {
				in, sends := c.Input.(*sqs.SendMessageBatchInput)
				switch {
				case writes(c, takesRunLease) && taken.Add(1) == 2:
					time.Sleep(3 * time.Second)
				case sends && strings.Contains(*in.Entries[0].MessageBody, `"kind":"activityOutcomes"`) &&
					sent.Add(1) == 1:
					time.Sleep(5 * time.Second)
					return errors.New("out of service")
				}
				return next()
			}
			inBubble(t, simhub.Options{
				Registry: r, Intercept: fault, WorkVisibility: time.Minute,
			}, func(_ context.Context, h *hub) {
				if end := h.finish(h.start("once", 0)); end.Kind != history.OrchestrationCompleted {
					t.Errorf("ended with %s %+v, want completed", end.String(), end.Error)
				}
				h.checkIdle()
			})
			d.check(t, "renewed late", 1)
		})
	}
}

// At any call, the process crashes, the call fails, or its response is lost. No attempt starts twice, and the result is
// the same because of the retry policy. The orchestration waits for the end of the activity.
func TestR32_faultAtAnyCall_startsNoAttemptTwice(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]func(n int64) (simaws.Interceptor, *atomic.Int64){
		"crash before":  func(n int64) (simaws.Interceptor, *atomic.Int64) { return simhub.CrashAt(n, false) },
		"crash after":   func(n int64) (simaws.Interceptor, *atomic.Int64) { return simhub.CrashAt(n, true) },
		"fails":         func(n int64) (simaws.Interceptor, *atomic.Int64) { return simhub.FailAt(n, false) },
		"response lost": func(n int64) (simaws.Interceptor, *atomic.Int64) { return simhub.FailAt(n, true) },
	} {
		for _, takes := range []time.Duration{0, 40 * time.Second} {
			t.Run(fmt.Sprint(name, " ", takes), func(t *testing.T) {
				t.Parallel()
				for n := int64(1); ; n += shortrun.Step(crashStep) {
					d := &debits{}
					r := d.onceRegistry(func(context.Context) (int, error) {
						time.Sleep(takes)
						return 1, nil
					}, perdure.WaitForCancellation(), perdure.WithRetry(perdure.RetryPolicy{}))
					intercept, calls := fault(n)
					inBubble(t, simhub.Options{
						Registry: r, Intercept: intercept, Environments: 2, WorkVisibility: time.Minute,
					}, func(_ context.Context, h *hub) {
						if end := h.finish(h.start("once", 0)); string(end.Output) != "1" {
							t.Errorf("call %d: ended with %s, output %s, error %v",
								n, end.String(), end.Output, end.Error)
						}
						h.checkIdle()
					})
					d.check(t, fmt.Sprint("call ", n), 2)
					if calls.Load() < n || t.Failed() {
						return
					}
				}
			})
		}
	}
}
