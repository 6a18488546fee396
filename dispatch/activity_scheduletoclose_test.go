package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// closeInput configures an orchestration that calls an activity.
type closeInput struct {
	Close   time.Duration // schedule-to-close timeout
	Retries time.Duration // initial retry interval; 0: no retries
	Job     job
	Times   int // number of calls in sequence; 0: one
}

// closeRegistry returns the orchestrations. Without workers, no activity "job" is registered.
func (f *jobHub) closeRegistry(workers bool) *perdure.Registry {
	r := f.registry()
	if !workers {
		r = perdure.NewRegistry()
	}
	perdure.AddOrchestration(r, "errand", func(ctx *perdure.OrchestrationContext, e closeInput) (string, error) {
		opts := []perdure.ActivityCallOption{perdure.WithScheduleToCloseTimeout(e.Close)}
		if e.Retries > 0 {
			opts = append(opts, perdure.WithRetry(perdure.RetryPolicy{InitialInterval: e.Retries}))
		}
		for range max(e.Times, 1) - 1 {
			if _, err := perdure.CallActivityByName[string](ctx, "job", e.Job, opts...).Await(ctx); err != nil {
				return "", err
			}
		}
		return perdure.CallActivityByName[string](ctx, "job", e.Job, opts...).Await(ctx)
	})
	perdure.AddActivity(r, "fail", func(ctx context.Context, _ int) (int, error) {
		return 0, fmt.Errorf("attempt %d", perdure.ActivityInfoFrom(ctx).Attempt)
	})
	perdure.AddOrchestration(r, "fails", func(ctx *perdure.OrchestrationContext, e closeInput) (int, error) {
		retry := perdure.WithRetry(perdure.RetryPolicy{InitialInterval: e.Retries})
		return perdure.CallActivityByName[int](ctx, "fail", 1, perdure.WithScheduleToCloseTimeout(e.Close),
			retry).Await(ctx)
	})
	perdure.AddOrchestration(r, "errand-given-up", func(ctx *perdure.OrchestrationContext, e closeInput) (int, error) {
		doing := perdure.CallActivityByName[string](ctx, "job", e.Job, perdure.WithScheduleToCloseTimeout(e.Close))
		first, err := perdure.Select(ctx, doing, perdure.CreateTimer(ctx, time.Second))
		return first, errors.Join(err, perdure.Sleep(ctx, 2*e.Close))
	})
	return r
}

// withCloseTimeouts runs test on a hub with or without workers for the activity.
func withCloseTimeouts(t *testing.T, workers bool, o simhub.Options, test func(ctx context.Context, f *jobHub)) {
	t.Helper()
	f := &jobHub{causes: map[int64]error{}, seen: map[int64]time.Time{}}
	o.Registry = f.closeRegistry(workers)
	inBubble(t, o, func(ctx context.Context, h *hub) {
		f.hub = h
		test(ctx, f)
		time.Sleep(3 * time.Hour)
	})
}

// wantScheduleToClose fails the test unless the instance ended with a schedule-to-close timeout after the duration
// want.
func (f *jobHub) wantScheduleToClose(in provider.Instance, end history.Event, want time.Duration) {
	f.t.Helper()
	took := end.Time.Sub(in.CreatedAt)
	if e := end.Error; e == nil || e.Cause == nil || e.Cause.Type != history.TypeTimeout ||
		!strings.Contains(e.Cause.Message, "schedule-to-close") || e.NonRetryable {
		f.t.Errorf("ended with %s %+v, want a schedule-to-close timeout", end.String(), e)
	}
	if took < want || took > want+50*time.Millisecond {
		f.t.Errorf("ended after %v, want %v", took, want)
	}
	var ends []history.Event
	for _, e := range f.events(in) {
		if e.Kind == history.ActivityFailed || e.Kind == history.ActivityCompleted {
			ends = append(ends, e)
		}
	}
	if len(ends) != 1 {
		f.t.Errorf("got %d outcomes of the activity, want 1: %v", len(ends), ends)
	}
}

// No worker receives the activity. The timer ends it, one second after the timeout.
func TestScheduleToClose_noWorkerReceivesTheActivity_timerEndsIt(t *testing.T) {
	t.Parallel()
	for _, limit := range []time.Duration{time.Minute, 20 * time.Hour} { // by a delayed message, and by a schedule
		t.Run(limit.String(), func(t *testing.T) {
			t.Parallel()
			withCloseTimeouts(t, false, simhub.Options{}, func(ctx context.Context, f *jobHub) {
				in := f.startAs("a", "errand", closeInput{Close: limit})
				f.turn(0)
				if err := f.Provider.DeleteRecords(ctx, "default", f.receive("sim://default")...); err != nil {
					t.Fatal(err)
				}
				f.wantScheduleToClose(in, f.finish(in), limit+time.Second)
				f.checkIdle()
			})
		})
	}
}

// The worker ends a running activity in time, and drops its later result. The timer has no effect.
func TestScheduleToClose_activityRuns_workerEndsIt(t *testing.T) {
	t.Parallel()
	for name, j := range map[string]job{
		"observes the cancellation": {Takes: time.Hour, Longer: time.Second}, "ignores the cancellation": ignoresCancel,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			withCloseTimeouts(t, true, simhub.Options{}, func(_ context.Context, f *jobHub) {
				in := f.startAs("a", "errand", closeInput{Close: time.Minute, Retries: time.Second, Job: j})
				f.wantScheduleToClose(in, f.finish(in), time.Minute)
				if f.ran() != 1 {
					t.Errorf("got %d runs, want 1", f.ran())
				}
				if _, cause := f.cause(3); !j.Ignores {
					if e, ok := errors.AsType[*perdure.TimeoutError](cause); !ok ||
						!strings.Contains(e.Message, "schedule-to-close") {
						t.Errorf("the context ended with %v, want a schedule-to-close timeout", cause)
					}
				}
				f.checkIdle()
			})
		})
	}
}

// Attempts start at 0, 60 and 180 s. The next attempt would start after the timeout, so the instance fails with the
// error of the third attempt.
func TestScheduleToClose_nextRetryIsTooLate_activityFails(t *testing.T) {
	t.Parallel()
	withCloseTimeouts(t, true, simhub.Options{}, func(_ context.Context, f *jobHub) {
		in := f.startAs("a", "fails", closeInput{Close: 5 * time.Minute, Retries: time.Minute})
		end := f.finish(in)
		if took := end.Time.Sub(in.CreatedAt); end.Error == nil || end.Error.Cause.Message != "attempt 3" ||
			took > 181*time.Second || took < 180*time.Second {
			t.Errorf("ended after %v with %s %+v", took, end.String(), end.Error)
		}
		f.checkIdle()
	})
}

// The timeout expires while the record of an attempt is in the queue. The worker does not run the attempt.
func TestScheduleToClose_recordIsDeliveredLate_activityIsNotRun(t *testing.T) {
	t.Parallel()
	withCloseTimeouts(t, true, simhub.Options{}, func(ctx context.Context, f *jobHub) {
		f.startAs("a", "errand", closeInput{Close: time.Minute, Job: job{}})
		f.turn(0)
		records := f.receive("sim://default")
		time.Sleep(time.Minute)
		failed := f.worker(nil).HandleRecords(ctx, records)
		synctest.Wait()
		if got := f.sent(); len(failed) > 0 || f.ran() > 0 || len(got) != 1 || got[0].Error == nil ||
			got[0].Error.Type != history.TypeTimeout {
			t.Errorf("got failed records %v, %d runs, outcomes %+v; want one timeout", failed, f.ran(), got)
		}
	})
}

// An activity that completes in time leaves no timer message and no schedule.
func TestScheduleToClose_activityCompletesInTime_noScheduleRemains(t *testing.T) {
	t.Parallel()
	withCloseTimeouts(t, true, simhub.Options{}, func(_ context.Context, f *jobHub) {
		in := f.startAs("a", "errand", closeInput{Close: 240 * time.Hour, Job: job{Takes: 40 * time.Minute}, Times: 2})
		if end := f.finish(in); end.Kind != history.OrchestrationCompleted {
			t.Errorf("the instance ended with %s", end.String())
		}
		f.checkIdle()
	})
}

// The orchestration has cancelled the activity. Its schedule-to-close timer adds no outcome to the history.
func TestScheduleToClose_activityIsCancelled_timerIsDropped(t *testing.T) {
	t.Parallel()
	withCloseTimeouts(t, false, simhub.Options{}, func(_ context.Context, f *jobHub) {
		in := f.startAs("a", "errand-given-up", closeInput{Close: time.Minute})
		f.finish(in)
		for _, e := range f.events(in) {
			if e.Kind == history.ActivityFailed {
				t.Errorf("got %s of a cancelled activity", e.String())
			}
		}
	})
}

// 1. The session commits a turn that schedules an activity with a timeout.
// 2. The process crashes before or after its first send.
// 3. The redispatch sends the same outputs, so the timeout keeps its due time.
func TestScheduleToClose_dispatchIsRepeated_keepsItsDueTime(t *testing.T) {
	t.Parallel()
	for name, after := range map[string]bool{"before the first send": false, "after the first send": true} {
		for _, workers := range []bool{true, false} {
			t.Run(fmt.Sprint(name, " with workers ", workers), func(t *testing.T) {
				t.Parallel()
				var turns atomic.Int32
				crash, crashed := crashOnce(after, func(c simaws.Call) bool {
					if put, ok := c.Input.(*dynamodb.PutItemInput); ok &&
						strings.HasPrefix(text(put.Item, "sk"), "h#") {
						turns.Add(1)
					}
					return c.Operation == "SendMessageBatch" && turns.Load() > 0
				})
				withCloseTimeouts(t, workers, simhub.Options{Intercept: crash}, func(_ context.Context, f *jobHub) {
					in := f.startAs("a", "errand", closeInput{Close: 57 * time.Minute, Job: ignoresCancel})
					end := f.finish(in)
					took := 57 * time.Minute
					if !workers {
						took += time.Second
					}
					if f.wantScheduleToClose(in, end, took); !crashed.Load() {
						t.Error("no process crashed")
					}
				})
			})
		}
	}
}
