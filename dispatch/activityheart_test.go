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

// page is how far an activity of these tests is.
type page struct{ Page int }

// stroll is how an activity goes through pages: from the one after its last heartbeat, one every so often.
type stroll struct {
	Pages   int
	Each    time.Duration
	StopsAt int  // this attempt's page at which it fails, or hangs; 0: none
	Hangs   bool // until its context ends
}

// strolls are the beginnings of attempts that tests have seen.
type strolls struct {
	*floor

	all    *perdure.Registry
	mu     sync.Mutex
	begins []string
}

func (s *strolls) walk(ctx context.Context, w stroll) (int, error) {
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

func (s *strolls) seen() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.begins, ", ")
}

// strolling runs a test with an activity that walks so, which lies in the work queue as #3.
func strolling(t *testing.T, w stroll, opts []perdure.ActivityCallOption, test func(ctx context.Context, s *strolls, in provider.Instance)) {
	t.Helper()
	s := &strolls{floor: &floor{causes: map[int64]error{}, seen: map[int64]time.Time{}}}
	s.all = s.registry()
	perdure.AddActivity(s.all, "walk", s.walk)
	perdure.AddOrchestration(s.all, "walks", func(ctx *perdure.OrchestrationContext, w stroll) (int, error) {
		return perdure.CallActivityByName[int](ctx, "walk", w, opts...).Await(ctx)
	})
	inBubble(t, simhub.Options{Registry: s.all}, func(ctx context.Context, h *hub) {
		s.hub = h
		in := s.startAs("a", "walks", w)
		s.turn(0)
		test(ctx, s, in)
		time.Sleep(3 * time.Hour) // what was leaked comes to its end
	})
}

// walker is a worker, for another walk than that of the others if there is one.
func (s *strolls) walker(other func(ctx context.Context, w stroll) (int, error)) *dispatch.Worker {
	r := s.all
	if other != nil {
		r = perdure.NewRegistry()
		perdure.AddActivity(r, "walk", other)
	}
	return s.workerOf(r, nil)
}

// details are those that were written, in order.
func (f *floor) details() (all []string) {
	for _, in := range f.recordWrites() {
		all = append(all, text(in.ExpressionAttributeValues, ":details"))
	}
	return all
}

func TestHeartbeatsAreWrittenOnceASecond(t *testing.T) {
	t.Parallel()
	strolling(t, stroll{Pages: 100, Each: 95 * time.Millisecond}, nil, func(ctx context.Context, s *strolls, in provider.Instance) {
		if failed := <-s.handled(ctx, s.walker(nil)); len(failed) > 0 {
			t.Errorf("failed %v", failed)
		}
		// It takes 9.5 s, and the newest of each second is written.
		got := s.details()
		if len(got) != 9 || !slices.Contains(got, `{"Page":11}`) || !slices.IsSortedFunc(got, func(a, b string) int { return len(a) - len(b) }) {
			t.Errorf("written: %s", got)
		}
		if r := s.recorded(in, 3); string(r.Details) != got[len(got)-1] || time.Since(r.LastHeartbeatAt) > 2*time.Second || r.CancelOutcome != "" || s.recordReads() != 1 {
			t.Errorf("%+v, %d reads: want the test's own alone", r, s.recordReads())
		}
	})
}

// What is rarer than once a second is written at once: it must not be lost with the worker.
func TestARareHeartbeatIsWrittenAtOnce(t *testing.T) {
	t.Parallel()
	const each = 60300 * time.Millisecond // not when the worker looks for cancellations
	strolling(t, stroll{Pages: 3, Each: each}, nil, func(ctx context.Context, s *strolls, in provider.Instance) {
		over := s.handled(ctx, s.walker(nil))
		for n := 1; n <= 3; n++ {
			wait := 10 * time.Millisecond
			if n == 1 {
				wait += time.Second // it may have been a short one
			}
			time.Sleep(wait)
			if r := s.recorded(in, 3); string(r.Details) != fmt.Sprintf(`{"Page":%d}`, n) {
				t.Errorf("page %d: %s", n, r.Details)
			}
			time.Sleep(each - wait)
		}
		<-over
		if got := s.details(); len(got) != 3 {
			t.Errorf("written: %s", got)
		}
	})
}

func TestAShortActivitysHeartbeatsCostNothing(t *testing.T) {
	t.Parallel()
	strolling(t, stroll{Pages: 9, Each: 100 * time.Millisecond}, nil, func(ctx context.Context, s *strolls, _ provider.Instance) {
		<-s.handled(ctx, s.walker(nil))
		if s.wantSent(1); len(s.details())+s.recordReads() > 0 {
			t.Errorf("written: %s", s.details())
		}
	})
}

// The next attempt goes on where this one failed, to the page: not to the second.
func TestTheNextAttemptFindsTheDetails(t *testing.T) {
	t.Parallel()
	retry := perdure.WithRetry(perdure.RetryPolicy{InitialInterval: time.Minute})
	strolling(t, stroll{Pages: 30, Each: 100 * time.Millisecond, StopsAt: 16}, []perdure.ActivityCallOption{retry}, func(_ context.Context, s *strolls, in provider.Instance) {
		if end := s.finish(in); string(end.Output) != "30" {
			t.Errorf("ended with %s", end.String())
		}
		if got := s.seen(); got != "attempt 1 after 0 false, attempt 2 after 15 true" {
			t.Error(got)
		}
		s.checkRest()
	})
}

// An invocation that ends, or a process that is stopped, keeps what its activities have reached.
func TestTheNextDeliveryFindsTheDetails(t *testing.T) {
	t.Parallel()
	t.Run("after a deadline", func(t *testing.T) {
		t.Parallel()
		strolling(t, stroll{Pages: 30, Each: 300 * time.Millisecond, StopsAt: 16, Hangs: true}, nil, func(ctx context.Context, s *strolls, in provider.Instance) {
			limited, stop := context.WithTimeout(ctx, 20*time.Second) // told at 9 s
			defer stop()
			<-s.handled(limited, s.walker(nil))
			s.wantOnFrom(in, 15)
		})
	})
	t.Run("after a shutdown", func(t *testing.T) {
		t.Parallel()
		strolling(t, stroll{Pages: 1000, Each: 90 * time.Millisecond}, nil, func(ctx context.Context, s *strolls, in provider.Instance) {
			stop := s.polled(ctx, s.Provider, "default", s.walker(nil).HandleRecords, dispatch.PollOptions{GracePeriod: time.Second})
			time.Sleep(5 * time.Second)
			_ = stop()
			s.wantOnFrom(in, 67) // pages of 6 s
		})
	})
	t.Run("of one that leaked", func(t *testing.T) {
		t.Parallel()
		strolling(t, stroll{Pages: 30, Each: 100 * time.Millisecond}, nil, func(ctx context.Context, s *strolls, in provider.Instance) {
			w := s.walker(func(ctx context.Context, _ stroll) (int, error) {
				<-ctx.Done()
				for n := range 100 { // it is given up after some of these
					perdure.Heartbeat(ctx, page{n})
					time.Sleep(240 * time.Millisecond)
				}
				return 0, nil
			})
			limited, stop := context.WithTimeout(ctx, 20*time.Second)
			defer stop()
			<-s.handled(limited, w)
			if s.wantOnFrom(in, 37); w.AbandonedActivities() != 1 { // the grace is 9 s
				t.Errorf("%d leaked", w.AbandonedActivities())
			}
		})
	})
}

// wantOnFrom lets the activity go on, and fails unless it does so behind a page.
func (s *strolls) wantOnFrom(in provider.Instance, last int) {
	s.t.Helper()
	if end := s.finish(in); end.Kind != history.OrchestrationCompleted {
		s.t.Errorf("ended with %s", end.String())
	}
	if got, want := s.seen(), fmt.Sprintf("attempt 1 after %d true", last); !strings.HasSuffix(got, want) {
		s.t.Errorf("%s, want %s at the end", got, want)
	}
}

// Once the lock is lost another worker has the activity: its details are newer, and must not be overwritten.
func TestNothingIsWrittenAfterTheLockIsLost(t *testing.T) {
	t.Parallel()
	strolling(t, stroll{}, nil, func(ctx context.Context, s *strolls, _ provider.Instance) {
		w := s.walker(func(ctx context.Context, _ stroll) (int, error) {
			for n := range 60 { // it does not heed its context, and goes on while it is given up
				perdure.Heartbeat(ctx, page{n})
				time.Sleep(700 * time.Millisecond)
			}
			return 0, nil
		})
		refused := s.failing("ChangeMessageVisibilityBatch")
		over := s.handled(ctx, w) // leased at 3 s, for 30 s
		time.Sleep(10 * time.Second)
		refused.Store(true)
		time.Sleep(22900 * time.Millisecond)
		synctest.Wait()
		written := len(s.details())
		if written < 20 {
			t.Errorf("%d writes in 33 s", written)
		}
		if failed := <-over; len(failed) != 1 {
			t.Errorf("failed %v", failed)
		}
		time.Sleep(time.Minute)
		if more := len(s.details()) - written; more > 0 {
			t.Errorf("%d writes after the lock was lost", more)
		}
	})
}

// What cannot be kept leaves what was before, and is a sign of life.
func TestDetailsThatCannotBeKeptAreDropped(t *testing.T) {
	t.Parallel()
	strolling(t, stroll{}, []perdure.ActivityCallOption{perdure.WithHeartbeatTimeout(3 * time.Second)}, func(ctx context.Context, s *strolls, in provider.Instance) {
		w := s.walker(func(ctx context.Context, _ stroll) (int, error) {
			for _, details := range []any{page{7}, strings.Repeat("x", perdure.MaxPayloadBytes), func() {}, nil, (*page)(nil)} {
				perdure.Heartbeat(ctx, details)
				time.Sleep(2 * time.Second)
			}
			return 1, nil
		})
		<-s.handled(ctx, w)
		if got := s.sent(); len(got) != 1 || got[0].Error != nil {
			t.Errorf("sent %+v", got)
		}
		if got := s.recorded(in, 3); string(got.Details) != `{"Page":7}` || len(s.details()) != 1 {
			t.Errorf("%s left, written %s", got.Details, s.details())
		}
		if n := strings.Count(s.log.String(), "payload too large"); n != 1 || strings.Count(s.log.String(), logevent.HeartbeatDetailsDropped) != 1 {
			t.Errorf("the log says so %d times:\n%s", n, s.log.String())
		}
	})
}

// Nobody knows where it is to go on: then it does not begin at the beginning.
func TestAttemptsWhoseDetailsCannotBeReadAreGivenBack(t *testing.T) {
	t.Parallel()
	retry := perdure.WithRetry(perdure.RetryPolicy{InitialInterval: time.Second})
	strolling(t, stroll{Pages: 30, Each: 100 * time.Millisecond, StopsAt: 16}, []perdure.ActivityCallOption{retry}, func(ctx context.Context, s *strolls, in provider.Instance) {
		<-s.handled(ctx, s.walker(nil))
		s.turn(0) // sends the next attempt
		time.Sleep(time.Second)
		s.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
			if in, ok := c.Input.(*dynamodb.GetItemInput); ok && text(in.Key, "sk") == "a#0000000003" {
				return errors.New("refused")
			}
			return next()
		})
		if failed := <-s.handled(ctx, s.walker(nil)); len(failed) != 1 {
			t.Errorf("failed %v", failed)
		}
		s.interfere(nil)
		if end := s.finish(in); string(end.Output) != "30" || s.seen() != "attempt 1 after 0 false, attempt 2 after 15 true" {
			t.Errorf("ended with %s, %s", end.String(), s.seen())
		}
	})
}

// Where a work item was sent anew instead of given back, neither its attempt nor its deliveries tell that it has begun before.
func TestWhatWasSentAnewFindsTheDetails(t *testing.T) {
	t.Parallel()
	strolling(t, stroll{Pages: 9, Each: time.Millisecond}, nil, func(ctx context.Context, s *strolls, in provider.Instance) {
		r := provider.ActivityRecord{ActivityID: 3, Details: []byte(`{"Page":5}`), LastHeartbeatAt: time.Now()}
		if err := s.Provider.PutActivityRecords(ctx, in.ExecutionID, r); err != nil {
			t.Fatal(err)
		}
		records := s.receive("sim://default")
		at := time.Now().UTC().Format(time.RFC3339Nano)
		records[0].Body = strings.Replace(records[0].Body, `"attempt":1`, `"attempt":1,"notBefore":"`+at+`"`, 1)
		s.walker(nil).HandleRecords(ctx, records)
		if got := s.seen(); got != "attempt 1 after 5 true" {
			t.Error(got)
		}
	})
}

// Details whose write failed are written with the next look.
func TestDetailsWhoseWriteFailsAreWrittenLater(t *testing.T) {
	t.Parallel()
	strolling(t, stroll{Pages: 2, Each: time.Minute}, nil, func(ctx context.Context, s *strolls, in provider.Instance) {
		refused := s.failing("UpdateItem")
		refused.Store(true)
		over := s.handled(ctx, s.walker(nil))
		time.Sleep(10 * time.Second)
		refused.Store(false)
		time.Sleep(1100 * time.Millisecond)
		if r := s.recorded(in, 3); string(r.Details) != `{"Page":1}` || strings.Count(s.log.String(), logevent.HeartbeatWriteFailed) != 1 {
			t.Errorf("%s left, logged:\n%s", r.Details, s.log.String())
		}
		<-over
	})
}

func TestAnAttemptWithoutHeartbeatsIsTriedAgain(t *testing.T) {
	t.Parallel()
	opts := []perdure.ActivityCallOption{
		perdure.WithHeartbeatTimeout(3 * time.Second), perdure.WithRetry(perdure.RetryPolicy{InitialInterval: time.Minute, MaxAttempts: 2}),
	}
	strolling(t, stroll{Pages: 20, Each: 2 * time.Second, StopsAt: 6, Hangs: true}, opts, func(_ context.Context, s *strolls, in provider.Instance) {
		end := s.finish(in)
		// 10 s until it hangs, which is 1 s after the last page's heartbeat timeout began to count; the wait; then 15 pages of 2 s.
		if took := end.Time.Sub(in.CreatedAt).Round(time.Second); string(end.Output) != "20" || took != (11+60+30)*time.Second {
			t.Errorf("after %v: %s", took, end.String())
		}
		if got := s.seen(); got != "attempt 1 after 0 false, attempt 2 after 5 true" {
			t.Error(got)
		}
		s.checkRest()
	})
}

func TestAHeartbeatTimeoutIsATimeoutError(t *testing.T) {
	t.Parallel()
	strolling(t, stroll{}, []perdure.ActivityCallOption{perdure.WithHeartbeatTimeout(90300 * time.Millisecond)}, func(ctx context.Context, s *strolls, in provider.Instance) {
		cause := make(chan error, 1)
		w := s.walker(func(ctx context.Context, _ stroll) (int, error) {
			<-ctx.Done()
			cause <- context.Cause(ctx)
			time.Sleep(time.Hour) // and it does not heed that
			perdure.Heartbeat(ctx, page{99})
			time.Sleep(time.Minute)
			return 1, nil
		})
		began := time.Now()
		<-s.handled(ctx, w)
		if took := time.Since(began).Round(100 * time.Millisecond); took != 90300*time.Millisecond {
			t.Errorf("after %v", took)
		}
		if e, ok := errors.AsType[*perdure.TimeoutError](<-cause); !ok || !strings.Contains(e.Message, "heartbeat timeout of 1m30.3s") || !errors.Is(e, context.DeadlineExceeded) {
			t.Errorf("the context ended with %v", e)
		}
		if got := s.sent(); len(got) != 1 || got[0].Error == nil || got[0].Error.Type != history.TypeTimeout || got[0].Error.NonRetryable {
			t.Errorf("sent %+v", got)
		}
		time.Sleep(2 * time.Hour)
		if n := len(s.recordWrites()); n > 0 {
			t.Errorf("%d writes of what was given up", n)
		}
		if end := s.finish(in); end.Kind != history.OrchestrationFailed || end.Error.Cause == nil || end.Error.Cause.Type != history.TypeTimeout {
			t.Errorf("ended with %s %+v", end.String(), end.Error)
		}
	})
}

// A timeout that is shorter than any other look of the worker is kept as well.
func TestAShortHeartbeatTimeout(t *testing.T) {
	t.Parallel()
	strolling(t, stroll{Pages: 2, StopsAt: 1, Hangs: true}, []perdure.ActivityCallOption{perdure.WithHeartbeatTimeout(300 * time.Millisecond)}, func(ctx context.Context, s *strolls, _ provider.Instance) {
		began := time.Now()
		<-s.handled(ctx, s.walker(nil))
		if took := time.Since(began); took < 300*time.Millisecond || took > 320*time.Millisecond {
			t.Errorf("after %v", took)
		}
	})
}

// A cancelled activity has its grace: it must not be taken for one that hangs.
func TestAHeartbeatTimeoutDoesNotCutTheGrace(t *testing.T) {
	t.Parallel()
	onFloor(t, func(ctx context.Context, f *floor) {
		in := f.jobsOf("a", job{Takes: time.Hour, Longer: 9 * time.Second})
		records := f.receive("sim://default")
		records[0].Body = strings.Replace(records[0].Body, `"attempt":1`, `"attempt":1,"heartbeatMs":5000`, 1)
		over := make(chan []string, 1)
		go func() { over <- f.worker(nil).HandleRecords(ctx, records) }()
		time.Sleep(2 * time.Second)
		f.cancel(in, 3)
		<-over
		if r := f.recorded(in, 3); r.CancelOutcome != provider.OutcomeCompleted {
			t.Errorf("%+v", r)
		}
		f.wantSent(1)
	})
}
