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

// errand is an activity, and how it is called.
type errand struct {
	Close   time.Duration // of schedule-to-close
	Retries time.Duration // the first interval; 0: none
	Job     job
	Times   int // one after the other; 0: one
}

// errands are orchestrations of such activities. Where there are no workers, none knows "job".
func (f *floor) errands(workers bool) *perdure.Registry {
	r := f.registry()
	if !workers {
		r = perdure.NewRegistry()
	}
	perdure.AddOrchestration(r, "errand", func(ctx *perdure.OrchestrationContext, e errand) (string, error) {
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
	perdure.AddOrchestration(r, "fails", func(ctx *perdure.OrchestrationContext, e errand) (int, error) {
		retry := perdure.WithRetry(perdure.RetryPolicy{InitialInterval: e.Retries})
		return perdure.CallActivityByName[int](ctx, "fail", 1, perdure.WithScheduleToCloseTimeout(e.Close), retry).Await(ctx)
	})
	perdure.AddOrchestration(r, "errand-given-up", func(ctx *perdure.OrchestrationContext, e errand) (int, error) {
		doing := perdure.CallActivityByName[string](ctx, "job", e.Job, perdure.WithScheduleToCloseTimeout(e.Close))
		first, err := perdure.Select(ctx, doing, perdure.CreateTimer(ctx, time.Second))
		return first, errors.Join(err, perdure.Sleep(ctx, 2*e.Close))
	})
	return r
}

// onErrand runs a test on a hub with workers that know the activity, or without.
func onErrand(t *testing.T, workers bool, o simhub.Options, test func(ctx context.Context, f *floor)) {
	t.Helper()
	f := &floor{causes: map[int64]error{}, seen: map[int64]time.Time{}}
	o.Registry = f.errands(workers)
	inBubble(t, o, func(ctx context.Context, h *hub) {
		f.hub = h
		test(ctx, f)
		time.Sleep(3 * time.Hour)
	})
}

// wantClosed fails unless an end is that of an activity whose schedule-to-close time was over, after so long.
func (f *floor) wantClosed(in provider.Instance, end history.Event, want time.Duration) {
	f.t.Helper()
	took := end.Time.Sub(in.CreatedAt)
	if e := end.Error; e == nil || e.Cause == nil || e.Cause.Type != history.TypeTimeout || !strings.Contains(e.Cause.Message, "schedule-to-close") || e.NonRetryable {
		f.t.Errorf("ended with %s %+v", end.String(), e)
	}
	if took < want || took > want+50*time.Millisecond {
		f.t.Errorf("it ended after %v, want %v", took, want)
	}
	var ends []history.Event
	for _, e := range f.events(in) {
		if e.Kind == history.ActivityFailed || e.Kind == history.ActivityCompleted {
			ends = append(ends, e)
		}
	}
	if len(ends) != 1 {
		f.t.Errorf("the activity has ended %d times: %v", len(ends), ends)
	}
}

// Nobody ever picks the activity up: the timer ends it, a second after it should have ended.
func TestScheduleToCloseEndsWhatNoWorkerHas(t *testing.T) {
	t.Parallel()
	for _, limit := range []time.Duration{time.Minute, 20 * time.Hour} { // by a delayed message, and by a schedule
		t.Run(limit.String(), func(t *testing.T) {
			t.Parallel()
			onErrand(t, false, simhub.Options{}, func(ctx context.Context, f *floor) {
				in := f.startAs("a", "errand", errand{Close: limit})
				f.turn(0)
				if err := f.Provider.DeleteRecords(ctx, "default", f.receive("sim://default")...); err != nil {
					t.Fatal(err)
				}
				f.wantClosed(in, f.finish(in), limit+time.Second)
				f.checkRest()
			})
		})
	}
}

// Who runs it ends it in time, and whatever it does afterwards is not heard: not at the end of the grace, nor the timer.
func TestScheduleToCloseEndsWhatIsRunning(t *testing.T) {
	t.Parallel()
	for name, j := range map[string]job{"heeds it": {Takes: time.Hour, Longer: time.Second}, "ignores it": stubborn} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onErrand(t, true, simhub.Options{}, func(_ context.Context, f *floor) {
				in := f.startAs("a", "errand", errand{Close: time.Minute, Retries: time.Second, Job: j})
				f.wantClosed(in, f.finish(in), time.Minute)
				if f.ran() != 1 {
					t.Errorf("%d ran", f.ran())
				}
				if _, cause := f.cause(3); !j.Ignores {
					if e, ok := errors.AsType[*perdure.TimeoutError](cause); !ok || !strings.Contains(e.Message, "schedule-to-close") {
						t.Errorf("its context ended with %v", cause)
					}
				}
				f.checkRest()
			})
		})
	}
}

// Attempts at 0, 60 and 180 s; the next would be after the end. Its failure says more than that time is over.
func TestNoRetryBeginsAfterScheduleToClose(t *testing.T) {
	t.Parallel()
	onErrand(t, true, simhub.Options{}, func(_ context.Context, f *floor) {
		in := f.startAs("a", "fails", errand{Close: 5 * time.Minute, Retries: time.Minute})
		end := f.finish(in)
		if took := end.Time.Sub(in.CreatedAt); end.Error == nil || end.Error.Cause.Message != "attempt 3" || took > 181*time.Second || took < 180*time.Second {
			t.Errorf("after %v: %s %+v", took, end.String(), end.Error)
		}
		f.checkRest()
	})
}

// An attempt lies in the queue between two tries when the time is over: it is not made.
func TestARetryThatIsLateIsNotMade(t *testing.T) {
	t.Parallel()
	onErrand(t, true, simhub.Options{}, func(ctx context.Context, f *floor) {
		f.startAs("a", "errand", errand{Close: time.Minute, Job: job{}})
		f.turn(0)
		records := f.receive("sim://default")
		time.Sleep(time.Minute)
		failed := f.worker(nil).HandleRecords(ctx, records)
		synctest.Wait()
		if got := f.sent(); len(failed) > 0 || f.ran() > 0 || len(got) != 1 || got[0].Error == nil || got[0].Error.Type != history.TypeTimeout {
			t.Errorf("failed %v, %d ran, sent %+v", failed, f.ran(), got)
		}
	})
}

// What is done in time leaves no timer: neither a message, nor a schedule of ten days.
func TestWhatIsDoneInTimeLeavesNoSchedule(t *testing.T) {
	t.Parallel()
	onErrand(t, true, simhub.Options{}, func(_ context.Context, f *floor) {
		in := f.startAs("a", "errand", errand{Close: 240 * time.Hour, Job: job{Takes: 40 * time.Minute}, Times: 2})
		if end := f.finish(in); end.Kind != history.OrchestrationCompleted {
			t.Errorf("ended with %s", end.String())
		}
		f.checkRest()
	})
}

// The timer of what the code has given up brings nothing: not even an outcome that is filtered.
func TestTheTimerOfACancelledActivityIsDropped(t *testing.T) {
	t.Parallel()
	onErrand(t, false, simhub.Options{}, func(_ context.Context, f *floor) {
		in := f.startAs("a", "errand-given-up", errand{Close: time.Minute})
		f.finish(in)
		for _, e := range f.events(in) {
			if e.Kind == history.ActivityFailed {
				t.Errorf("%s of a cancelled activity", e.String())
			}
		}
	})
}

// Interleaving: the turn is committed and the process dies before, while or after it sends. What is sent again is the same.
func TestScheduleToCloseSurvivesADispatchThatIsRepeated(t *testing.T) {
	t.Parallel()
	for name, after := range map[string]bool{"before it sends": false, "after the first": true} {
		for _, workers := range []bool{true, false} {
			t.Run(fmt.Sprint(name, " with workers ", workers), func(t *testing.T) {
				t.Parallel()
				var turns atomic.Int32
				crash, crashed := crashOnce(after, func(c simaws.Call) bool {
					if put, ok := c.Input.(*dynamodb.PutItemInput); ok && strings.HasPrefix(text(put.Item, "sk"), "h#") {
						turns.Add(1)
					}
					return c.Operation == "SendMessageBatch" && turns.Load() > 0
				})
				onErrand(t, workers, simhub.Options{Intercept: crash}, func(_ context.Context, f *floor) {
					in := f.startAs("a", "errand", errand{Close: 57 * time.Minute, Job: stubborn})
					end := f.finish(in)
					took := 57 * time.Minute
					if !workers {
						took += time.Second
					}
					if f.wantClosed(in, end, took); !crashed.Load() {
						t.Error("nothing has crashed")
					}
				})
			})
		}
	}
}
