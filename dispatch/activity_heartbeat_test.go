package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// page is the heartbeat detail of test activities: their progress.
type page struct{ Page int }

// heartbeatInput configures an activity that sends one heartbeat per page. It starts after the page of its last
// heartbeat.
type heartbeatInput struct {
	Pages   int
	Each    time.Duration
	StopsAt int  // the page at which the first attempt fails or hangs; 0: none
	Hangs   bool // hangs until its context ends, instead of failing
}

// heartbeatHub records the start of each attempt.
type heartbeatHub struct {
	*jobHub

	all    *perdure.Registry
	mu     sync.Mutex
	begins []string
}

// walk is the activity "walk". It sends a heartbeat for each page.
func (s *heartbeatHub) walk(ctx context.Context, w heartbeatInput) (int, error) {
	last, ok := perdure.HeartbeatDetails[page](ctx)
	info := perdure.ActivityInfoFrom(ctx)
	s.mu.Lock()
	s.begins = append(s.begins, fmt.Sprintf("attempt %d after %d %v", info.Attempt, last.Page, ok))
	s.mu.Unlock()
	for n := last.Page + 1; n <= w.Pages; n++ {
		if n == w.StopsAt && info.Attempt == 1 && info.DeliveryCount == 1 {
			if w.Hangs {
				<-ctx.Done()
				return 0, context.Cause(ctx)
			}
			return 0, errors.New("out of breath")
		}
		perdure.Heartbeat(ctx, page{n})
		select {
		case <-time.After(w.Each):
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
	return w.Pages, nil
}

// seen lists the started attempts, each with the details that it received.
func (s *heartbeatHub) seen() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.begins, ", ")
}

// withHeartbeats runs test on a hub whose work queue contains one such activity, #3.
func withHeartbeats(
	t *testing.T, w heartbeatInput, opts []perdure.ActivityCallOption,
	test func(ctx context.Context, s *heartbeatHub, in provider.Instance),
) {
	t.Helper()
	s := &heartbeatHub{jobHub: &jobHub{causes: map[int64]error{}, seen: map[int64]time.Time{}}}
	s.all = s.registry()
	perdure.AddActivity(s.all, "walk", s.walk)
	perdure.AddOrchestration(s.all, "walks", func(ctx *perdure.OrchestrationContext, w heartbeatInput) (int, error) {
		return perdure.CallActivityByName[int](ctx, "walk", w, opts...).Await(ctx)
	})
	inBubble(t, simhub.Options{Registry: s.all}, func(ctx context.Context, h *hub) {
		s.hub = h
		in := s.startAs("a", "walks", w)
		s.turn(0)
		test(ctx, s, in)
		time.Sleep(3 * time.Hour) // abandoned activities return
	})
}

// heartbeatWorker creates a worker. If other is not nil, other replaces the activity.
func (s *heartbeatHub) heartbeatWorker(
	other func(ctx context.Context, w heartbeatInput) (int, error),
) *dispatch.Worker {
	r := s.all
	if other != nil {
		r = perdure.NewRegistry()
		perdure.AddActivity(r, "walk", other)
	}
	return s.workerOf(r, nil)
}

// details returns the heartbeat details that workers wrote, in order.
func (f *jobHub) details() (all []string) {
	for _, in := range f.recordWrites() {
		all = append(all, text(in.ExpressionAttributeValues, ":details"))
	}
	return all
}

func TestHeartbeat_frequent_isWrittenOncePerSecond(t *testing.T) {
	t.Parallel()
	withHeartbeats(t, heartbeatInput{Pages: 100, Each: 95 * time.Millisecond}, nil,
		func(ctx context.Context, s *heartbeatHub, in provider.Instance) {
			if failed := <-s.handled(ctx, s.heartbeatWorker(nil)); len(failed) > 0 {
				t.Errorf("got failed records %v, want none", failed)
			}
			// The activity takes 9.5 s, and the worker writes the newest details of each second.
			got := s.details()
			if len(got) != 9 || !slices.Contains(got, `{"Page":11}`) ||
				!slices.IsSortedFunc(got, func(a, b string) int {
					return len(a) - len(b)
				}) {
				t.Errorf("got details %s, want 9 in increasing order", got)
			}
			if r := s.recorded(in, 3); string(r.Details) != got[len(got)-1] ||
				time.Since(r.LastHeartbeatAt) > 2*time.Second || r.CancelOutcome != "" || s.recordReads() != 1 {
				t.Errorf("got record %+v after %d reads, want the last details after 1 read by the test",
					r, s.recordReads())
			}
		})
}

// The worker writes details that are rarer than one per second at once, so that a crash does not lose them.
func TestHeartbeat_rare_isWrittenAtOnce(t *testing.T) {
	t.Parallel()
	const each = 60300 * time.Millisecond // differs from the times of polls
	withHeartbeats(t, heartbeatInput{Pages: 3, Each: each}, nil,
		func(ctx context.Context, s *heartbeatHub, in provider.Instance) {
			over := s.handled(ctx, s.heartbeatWorker(nil))
			for n := 1; n <= 3; n++ {
				wait := 10 * time.Millisecond
				if n == 1 {
					wait += time.Second // the worker waits because the activity may be a short one
				}
				time.Sleep(wait)
				if r := s.recorded(in, 3); string(r.Details) != fmt.Sprintf(`{"Page":%d}`, n) {
					t.Errorf("page %d: got details %s", n, r.Details)
				}
				time.Sleep(each - wait)
			}
			<-over
			if got := s.details(); len(got) != 3 {
				t.Errorf("got written details %s, want 3", got)
			}
		})
}

func TestHeartbeat_shortActivity_costsNothing(t *testing.T) {
	t.Parallel()
	withHeartbeats(t, heartbeatInput{Pages: 9, Each: 100 * time.Millisecond}, nil,
		func(ctx context.Context, s *heartbeatHub, _ provider.Instance) {
			<-s.handled(ctx, s.heartbeatWorker(nil))
			if s.wantSent(1); len(s.details())+s.recordReads() > 0 {
				t.Errorf("got written details %s, want none", s.details())
			}
		})
}

// The next attempt continues after the last page of the failed attempt, although writes are one second apart.
func TestHeartbeat_attemptFails_nextAttemptHasTheDetails(t *testing.T) {
	t.Parallel()
	retry := perdure.WithRetry(perdure.RetryPolicy{InitialInterval: time.Minute})
	withHeartbeats(t, heartbeatInput{Pages: 30, Each: 100 * time.Millisecond, StopsAt: 16},
		[]perdure.ActivityCallOption{retry},
		func(_ context.Context, s *heartbeatHub, in provider.Instance) {
			if end := s.finish(in); string(end.Output) != "30" {
				t.Errorf("the instance ended with %s", end.String())
			}
			if got := s.seen(); got != "attempt 1 after 0 false, attempt 2 after 15 true" {
				t.Errorf("got attempts %q", got)
			}
			s.checkIdle()
		})
}

// If an invocation ends or a process stops, the worker writes the latest details of its activities.
func TestHeartbeat_workerStops_nextDeliveryHasTheDetails(t *testing.T) {
	t.Parallel()
	t.Run("invocation deadline", func(t *testing.T) {
		t.Parallel()
		withHeartbeats(t, heartbeatInput{Pages: 30, Each: 300 * time.Millisecond, StopsAt: 16, Hangs: true}, nil,
			func(ctx context.Context, s *heartbeatHub, in provider.Instance) {
				limited, stop := context.WithTimeout(ctx, 20*time.Second) // cancels the activity at 9 s
				defer stop()
				<-s.handled(limited, s.heartbeatWorker(nil))
				s.wantContinuesAfter(in, 15)
			})
	})
	t.Run("shutdown", func(t *testing.T) {
		t.Parallel()
		withHeartbeats(t, heartbeatInput{Pages: 1000, Each: 90 * time.Millisecond}, nil,
			func(ctx context.Context, s *heartbeatHub, in provider.Instance) {
				stop := s.polled(ctx, s.Provider, "default", s.heartbeatWorker(nil).HandleRecords,
					dispatch.PollOptions{GracePeriod: time.Second})
				time.Sleep(5 * time.Second)
				_ = stop()
				s.wantContinuesAfter(in, 67) // the pages of 6 s
			})
	})
	t.Run("abandoned activity", func(t *testing.T) {
		t.Parallel()
		withHeartbeats(t, heartbeatInput{Pages: 30, Each: 100 * time.Millisecond}, nil,
			func(ctx context.Context, s *heartbeatHub, in provider.Instance) {
				w := s.heartbeatWorker(func(ctx context.Context, _ heartbeatInput) (int, error) {
					<-ctx.Done()
					for n := range 100 { // the worker abandons the activity in this loop
						perdure.Heartbeat(ctx, page{n})
						time.Sleep(240 * time.Millisecond)
					}
					return 0, nil
				})
				limited, stop := context.WithTimeout(ctx, 20*time.Second)
				defer stop()
				<-s.handled(limited, w)
				if s.wantContinuesAfter(in, 37); w.AbandonedActivities() != 1 { // the grace period is 9 s
					t.Errorf("got %d abandoned activities, want 1", w.AbandonedActivities())
				}
			})
	})
}

// wantContinuesAfter completes the instance, and fails the test unless the attempt continued after the page last.
func (s *heartbeatHub) wantContinuesAfter(in provider.Instance, last int) {
	s.t.Helper()
	if end := s.finish(in); end.Kind != history.OrchestrationCompleted {
		s.t.Errorf("the instance ended with %s", end.String())
	}
	if got, want := s.seen(), fmt.Sprintf("attempt 1 after %d true", last); !strings.HasSuffix(got, want) {
		s.t.Errorf("got attempts %s, want the suffix %s", got, want)
	}
}

// After the lock is lost, another worker may write newer details. This worker must not overwrite them.
func TestHeartbeat_lockIsLost_isNotWritten(t *testing.T) {
	t.Parallel()
	withHeartbeats(t, heartbeatInput{}, nil, func(ctx context.Context, s *heartbeatHub, _ provider.Instance) {
		w := s.heartbeatWorker(func(ctx context.Context, _ heartbeatInput) (int, error) {
			for n := range 60 { // ignores the end of its context
				perdure.Heartbeat(ctx, page{n})
				time.Sleep(700 * time.Millisecond)
			}
			return 0, nil
		})
		refused := s.failing("ChangeMessageVisibilityBatch")
		over := s.handled(ctx, w) // takes the lease at 3 s, for 30 s
		time.Sleep(10 * time.Second)
		refused.Store(true)
		time.Sleep(22900 * time.Millisecond)
		synctest.Wait()
		written := len(s.details())
		if written < 20 {
			t.Errorf("got %d writes in 33s, want at least 20", written)
		}
		if failed := <-over; len(failed) != 1 {
			t.Errorf("got failed records %v, want 1", failed)
		}
		time.Sleep(time.Minute)
		if more := len(s.details()) - written; more > 0 {
			t.Errorf("got %d writes after the lock was lost, want none", more)
		}
	})
}

// Details that the worker cannot encode or that are too large leave the earlier details. They still count as a
// heartbeat.
func TestHeartbeat_detailsAreInvalid_areDropped(t *testing.T) {
	t.Parallel()
	withHeartbeats(t, heartbeatInput{}, []perdure.ActivityCallOption{perdure.WithHeartbeatTimeout(3 * time.Second)},
		func(ctx context.Context, s *heartbeatHub, in provider.Instance) {
			w := s.heartbeatWorker(func(ctx context.Context, _ heartbeatInput) (int, error) {
				for _, details := range []any{
					page{7}, strings.Repeat("x", perdure.MaxPayloadBytes), func() {}, nil, (*page)(nil),
				} {
					perdure.Heartbeat(ctx, details)
					time.Sleep(2 * time.Second)
				}
				return 1, nil
			})
			<-s.handled(ctx, w)
			if got := s.sent(); len(got) != 1 || got[0].Error != nil {
				t.Errorf("got outcomes %+v, want one success", got)
			}
			if got := s.recorded(in, 3); string(got.Details) != `{"Page":7}` || len(s.details()) != 1 {
				t.Errorf("got stored details %s and writes %s, want only page 7", got.Details, s.details())
			}
			if n := strings.Count(s.log.String(), "payload too large"); n != 1 ||
				strings.Count(s.log.String(), logevent.HeartbeatDetailsDropped) != 1 {
				t.Errorf("the log reports the dropped details %d times, want once:\n%s", n, s.log.String())
			}
		})
}

// If the worker cannot read the details, it does not start the attempt from the beginning.
func TestHeartbeat_detailsAreUnreadable_recordIsReleased(t *testing.T) {
	t.Parallel()
	retry := perdure.WithRetry(perdure.RetryPolicy{InitialInterval: time.Second})
	withHeartbeats(t, heartbeatInput{Pages: 30, Each: 100 * time.Millisecond, StopsAt: 16},
		[]perdure.ActivityCallOption{retry},
		func(ctx context.Context, s *heartbeatHub, in provider.Instance) {
			<-s.handled(ctx, s.heartbeatWorker(nil))
			s.turn(0) // schedules the next attempt
			time.Sleep(time.Second)
			s.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
				if in, ok := c.Input.(*dynamodb.GetItemInput); ok && text(in.Key, "sk") == "a#0000000003" {
					return errors.New("refused")
				}
				return next()
			})
			if failed := <-s.handled(ctx, s.heartbeatWorker(nil)); len(failed) != 1 {
				t.Errorf("got failed records %v, want 1", failed)
			}
			s.interfere(nil)
			if end := s.finish(in); string(end.Output) != "30" ||
				s.seen() != "attempt 1 after 0 false, attempt 2 after 15 true" {
				t.Errorf("ended with %s after attempts %s", end.String(), s.seen())
			}
		})
}

// The session sent the work item again. Neither its attempt number nor its delivery count shows the earlier run.
func TestHeartbeat_workItemIsSentAgain_hasTheDetails(t *testing.T) {
	t.Parallel()
	withHeartbeats(t, heartbeatInput{Pages: 9, Each: time.Millisecond}, nil,
		func(ctx context.Context, s *heartbeatHub, in provider.Instance) {
			r := provider.ActivityRecord{ActivityID: 3, Details: []byte(`{"Page":5}`), LastHeartbeatAt: time.Now()}
			if err := s.Provider.PutActivityRecords(ctx, in.ExecutionID, r); err != nil {
				t.Fatal(err)
			}
			records := s.receive("sim://default")
			at := time.Now().UTC().Format(time.RFC3339Nano)
			records[0].Body = strings.Replace(records[0].Body, `"attempt":1`, `"attempt":1,"notBefore":"`+at+`"`, 1)
			s.heartbeatWorker(nil).HandleRecords(ctx, records)
			if got := s.seen(); got != "attempt 1 after 5 true" {
				t.Errorf("got attempts %q", got)
			}
		})
}

// If a write of details fails, the next poll writes them.
func TestHeartbeat_writeFails_isWrittenByTheNextPoll(t *testing.T) {
	t.Parallel()
	withHeartbeats(t, heartbeatInput{Pages: 2, Each: time.Minute}, nil,
		func(ctx context.Context, s *heartbeatHub, in provider.Instance) {
			refused := s.failing("UpdateItem")
			refused.Store(true)
			over := s.handled(ctx, s.heartbeatWorker(nil))
			time.Sleep(10 * time.Second)
			refused.Store(false)
			time.Sleep(1100 * time.Millisecond)
			if r := s.recorded(in, 3); string(r.Details) != `{"Page":1}` ||
				strings.Count(s.log.String(), logevent.HeartbeatWriteFailed) != 1 {
				t.Errorf("got stored details %s, log:\n%s", r.Details, s.log.String())
			}
			<-over
		})
}

func TestHeartbeat_timeout_attemptIsRetried(t *testing.T) {
	t.Parallel()
	opts := []perdure.ActivityCallOption{
		perdure.WithHeartbeatTimeout(3 * time.Second), perdure.WithRetry(perdure.RetryPolicy{
			InitialInterval: time.Minute, MaxAttempts: 2,
		}),
	}
	withHeartbeats(t, heartbeatInput{Pages: 20, Each: 2 * time.Second, StopsAt: 6, Hangs: true}, opts,
		func(_ context.Context, s *heartbeatHub, in provider.Instance) {
			end := s.finish(in)
			// 11 s until the timeout after page 5 (5 pages of 2 s), 60 s until the retry, 30 s for 15 pages.
			if took := end.Time.Sub(in.CreatedAt).Round(time.Second); string(end.Output) != "20" ||
				took != (11+60+30)*time.Second {
				t.Errorf("ended after %v with %s", took, end.String())
			}
			if got := s.seen(); got != "attempt 1 after 0 false, attempt 2 after 5 true" {
				t.Errorf("got attempts %q", got)
			}
			s.checkIdle()
		})
}

func TestHeartbeat_timeout_isATimeoutError(t *testing.T) {
	t.Parallel()
	withHeartbeats(t, heartbeatInput{},
		[]perdure.ActivityCallOption{perdure.WithHeartbeatTimeout(90300 * time.Millisecond)},
		func(ctx context.Context, s *heartbeatHub, in provider.Instance) {
			cause := make(chan error, 1)
			w := s.heartbeatWorker(func(ctx context.Context, _ heartbeatInput) (int, error) {
				<-ctx.Done()
				cause <- context.Cause(ctx)
				time.Sleep(time.Hour) // ignores the end of its context
				perdure.Heartbeat(ctx, page{99})
				time.Sleep(time.Minute)
				return 1, nil
			})
			began := time.Now()
			<-s.handled(ctx, w)
			if took := time.Since(began).Round(100 * time.Millisecond); took != 90300*time.Millisecond {
				t.Errorf("the worker waited %v, want 1m30.3s", took)
			}
			if e, ok := errors.AsType[*perdure.TimeoutError](<-cause); !ok ||
				!strings.Contains(e.Message, "heartbeat timeout of 1m30.3s") ||
				!errors.Is(e, context.DeadlineExceeded) {
				t.Errorf("the context ended with %v", e)
			}
			if got := s.sent(); len(got) != 1 || got[0].Error == nil || got[0].Error.Type != history.TypeTimeout ||
				got[0].Error.NonRetryable {
				t.Errorf("got outcomes %+v, want one retryable timeout", got)
			}
			time.Sleep(2 * time.Hour)
			if n := len(s.recordWrites()); n > 0 {
				t.Errorf("got %d writes for the abandoned attempt, want none", n)
			}
			if end := s.finish(in); end.Kind != history.OrchestrationFailed || end.Error.Cause == nil ||
				end.Error.Cause.Type != history.TypeTimeout {
				t.Errorf("the instance ended with %s %+v", end.String(), end.Error)
			}
		})
}

// The worker also observes a timeout that is shorter than its poll interval.
func TestHeartbeat_shortTimeout_isObserved(t *testing.T) {
	t.Parallel()
	withHeartbeats(t, heartbeatInput{Pages: 2, StopsAt: 1, Hangs: true},
		[]perdure.ActivityCallOption{perdure.WithHeartbeatTimeout(300 * time.Millisecond)},
		func(ctx context.Context, s *heartbeatHub, _ provider.Instance) {
			began := time.Now()
			<-s.handled(ctx, s.heartbeatWorker(nil))
			if took := time.Since(began); took < 300*time.Millisecond || took > 320*time.Millisecond {
				t.Errorf("the worker waited %v, want 300ms", took)
			}
		})
}

// The heartbeat timeout does not apply in the grace period of a cancelled activity.
func TestHeartbeat_timeoutInTheGracePeriod_isIgnored(t *testing.T) {
	t.Parallel()
	onJobHub(t, func(ctx context.Context, f *jobHub) {
		in := f.jobsOf("a", job{Takes: time.Hour, Longer: 9 * time.Second})
		records := f.receive("sim://default")
		records[0].Body = strings.Replace(records[0].Body, `"attempt":1`, `"attempt":1,"heartbeatMs":5000`, 1)
		over := make(chan []string, 1)
		go func() { over <- f.worker(nil).HandleRecords(ctx, records) }()
		time.Sleep(2 * time.Second)
		f.cancel(in, 3)
		<-over
		if r := f.recorded(in, 3); r.CancelOutcome != provider.OutcomeCompleted {
			t.Errorf("got record %+v, want the cancel outcome completed", r)
		}
		f.wantSent(1)
	})
}
