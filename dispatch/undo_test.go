package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/shortrun"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/wire"
)

// spec is the input of a saga. It configures the call of the activity "do", which the saga compensates with "undo".
type spec struct {
	Job job
	// FailsUntil is the first attempt that does not fail at once. Every is the retry interval; 0 means no retries.
	FailsUntil int
	Every      time.Duration
	Close      time.Duration // schedule-to-close timeout
	// NoWait calls the activity without WaitForCancellation.
	NoWait bool
	// Child makes the call in a child saga. Fails makes the saga fail while the activity runs.
	Child, Fails bool
}

// sagas is a hub that records the calls of its orchestration "saga", which calls activity 3 and compensates it when
// cancelled.
type sagas struct {
	*hub

	mu     sync.Mutex
	begun  []time.Time
	ended  []time.Time // only ends of code that was not abandoned
	undone []time.Time
}

func (s *sagas) note(times *[]time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*times = append(*times, time.Now())
}

// seen returns the recorded times.
func (s *sagas) seen(times *[]time.Time) []time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]time.Time(nil), *times...)
}

func (s *sagas) do(ctx context.Context, d spec) (string, error) {
	s.note(&s.begun)
	defer func() {
		if _, died := simhub.Process(ctx); !died {
			s.note(&s.ended)
		}
	}()
	if n := perdure.ActivityInfoFrom(ctx).Attempt; n < d.FailsUntil {
		return "", fmt.Errorf("attempt %d", n)
	}
	if d.Job.Ignores {
		time.Sleep(d.Job.Takes)
		return "done", nil
	}
	select {
	case <-time.After(d.Job.Takes):
		return "done", nil
	case <-ctx.Done():
	}
	time.Sleep(d.Job.Longer)
	if d.Job.Fails {
		return "", errors.New("failed in the end")
	}
	return "done in the end", nil
}

// saga is the orchestration. Its custom status is the end of the activity.
func (s *sagas) saga(ctx *perdure.OrchestrationContext, d spec) (_ string, err error) {
	var opts []perdure.CallOption
	if !d.NoWait {
		opts = append(opts, perdure.WaitForCancellation())
	}
	if d.Every > 0 {
		opts = append(opts, perdure.WithRetry(perdure.RetryPolicy{
			InitialInterval: d.Every, BackoffCoefficient: 1, MaxInterval: d.Every,
		}))
	}
	var doing *perdure.Future[string]
	if d.Child {
		d.Child = false
		doing = perdure.CallSubOrchestrationByName[string](ctx, "saga", d,
			all[perdure.SubOrchestrationCallOption](opts)...)
	} else {
		calls := all[perdure.ActivityCallOption](opts)
		if d.Close > 0 {
			calls = append(calls, perdure.WithScheduleToCloseTimeout(d.Close))
		}
		doing = perdure.CallActivityByName[string](ctx, "do", d, calls...)
	}
	defer perdure.Compensate(ctx, &err, func(ctx *perdure.OrchestrationContext) error {
		if _, why := doing.Await(ctx); why != nil {
			ctx.SetCustomStatus(endOf(why))
		}
		_, err := perdure.CallActivityByName[string](ctx, "undo", ctx.InstanceID()).Await(ctx)
		return err
	})
	if d.Fails {
		_ = perdure.Sleep(ctx, time.Second)
		return "", errLate
	}
	return doing.Await(ctx)
}

var errLate = errors.New("too late")

func all[T any](opts []perdure.CallOption) (as []T) {
	for _, o := range opts {
		as = append(as, any(o).(T))
	}
	return as
}

func endOf(err error) string {
	c, ok := errors.AsType[*perdure.CancelledError](err)
	if !ok {
		return err.Error()
	}
	return fmt.Sprintf("%s, %s", c.Reason, c.CancelOutcome)
}

func (s *sagas) registry() *perdure.Registry {
	r := registry()
	perdure.AddActivity(r, "do", s.do)
	perdure.AddActivity(r, "undo", func(_ context.Context, id string) (string, error) {
		s.note(&s.undone)
		return id, nil
	})
	perdure.AddOrchestration(r, "saga", s.saga)
	return r
}

// withSagas runs a test on sagas, and then waits for abandoned code to return.
func withSagas(t *testing.T, o simhub.Options, test func(ctx context.Context, s *sagas)) {
	t.Helper()
	s := &sagas{}
	o.Registry = s.registry()
	inBubble(t, o, func(ctx context.Context, h *hub) {
		s.hub = h
		test(ctx, s)
		time.Sleep(3 * time.Hour)
	})
}

// cancelIt sends a cancel request for the instance.
func (s *sagas) cancelIt(in provider.Instance) {
	s.t.Helper()
	s.send(provider.Message{
		Kind: provider.MessageCancel, InstanceID: in.InstanceID, Reason: "requested", Text: "no",
		RequestedBy: history.RequestedByClient,
	})
}

// meanwhile calls do while the hub runs for d.
func (s *sagas) meanwhile(d time.Duration, do func()) {
	s.t.Helper()
	var served sync.WaitGroup
	served.Go(func() { s.serveFor(d) })
	do()
	served.Wait()
}

// cancelAfter waits, sends a cancel request, and returns the current time.
func (s *sagas) cancelAfter(d time.Duration, in provider.Instance) (at time.Time) {
	s.t.Helper()
	time.Sleep(d)
	s.cancelIt(in)
	return time.Now()
}

// worker returns a worker of the test.
func (s *sagas) worker() *dispatch.Worker {
	return must(dispatch.NewWorker(s.registry(), s.Provider, &dispatch.WorkerOptions{
		Logger: slog.New(slog.DiscardHandler),
	}))
}

// wantUndone fails the test unless the activity of a cancelled instance has the given outcome, and was undone once
// after its end.
func (s *sagas) wantUndone(in provider.Instance, ended perdure.CancelOutcome) {
	s.t.Helper()
	now := s.read(in)
	end, err := s.Provider.ReadTerminalEvent(s.t.Context(), in.ExecutionID)
	if err != nil || end.Kind != history.OrchestrationCancelled {
		s.t.Errorf("ended with %s, error %v, want cancelled", end.String(), err)
	}
	if want := `"requested, ` + string(ended) + `"`; string(now.CustomStatus) != want {
		s.t.Errorf("custom status: got %s, want %s", now.CustomStatus, want)
	}
	undone, last := s.seen(&s.undone), s.seen(&s.ended)
	if len(undone) != 1 {
		s.t.Fatalf("got %d undos, want 1", len(undone))
	}
	if n := len(last); n > 0 && ended != perdure.OutcomeAbandoned && undone[0].Before(last[n-1]) {
		s.t.Errorf("undone %v before the end", last[n-1].Sub(undone[0]))
	}
	s.checkIdle()
}

// after returns the time from at to the undo.
func (s *sagas) after(at time.Time) time.Duration {
	undone := s.seen(&s.undone)
	if len(undone) == 0 {
		s.t.Fatal("got no undo")
	}
	return undone[0].Sub(at)
}

// A cancelled activity takes some time to stop. Its undo starts after the activity has returned, with cached and
// uncached instances.
func TestUndo_activityStopsSlowly_waitsUntilItHasReturned(t *testing.T) {
	t.Parallel()
	for name, j := range map[string]job{
		"with a result":                  {Takes: time.Hour, Longer: 4 * time.Second},
		"with an error":                  {Takes: time.Hour, Longer: 4 * time.Second, Fails: true},
		"ignoring the cancel":            {Takes: 12 * time.Second, Ignores: true},
		"at the end of the grace period": {Takes: time.Hour, Longer: 9 * time.Second},
		"at once":                        {Takes: time.Hour},
	} {
		for _, cold := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", cold=", cold), func(t *testing.T) {
				t.Parallel()
				o := simhub.Options{}
				if cold {
					o.CacheBytes = 1
				}
				withSagas(t, o, func(_ context.Context, s *sagas) {
					in := s.startAs("a", "saga", spec{Job: j})
					s.meanwhile(2*time.Hour, func() { s.cancelAfter(5*time.Second, in) })
					s.wantUndone(in, perdure.OutcomeReturned)
					s.wantCancelHistory(in)
				})
			})
		}
	}
}

// wantCancelHistory fails the test unless history has the cancel, its observation and the end in this order. It returns
// the time of the observation.
func (s *sagas) wantCancelHistory(in provider.Instance) (seen time.Time) {
	s.t.Helper()
	var decided, ended *history.Event
	events := s.events(in)
	for i := range events {
		switch e := &events[i]; {
		case e.SourceEventID != 3:
		case e.Kind == history.ActivityCancelRequested:
			decided = e
		default:
			ended = e
		}
	}
	if decided == nil || ended == nil || ended.Cancel == nil || ended.Cancel.SeenAt == nil ||
		ended.Cancel.Outcome == "" {
		s.t.Fatalf("got cancel %v, end %+v", decided, ended)
	}
	if seen = *ended.Cancel.SeenAt; seen.Before(decided.Time) || seen.After(ended.Time) {
		s.t.Errorf("got cancel at %v, observed at %v, ended at %v", decided.Time, seen, ended.Time)
	}
	return seen
}

// A worker abandons an activity that ignores its cancel after the grace period. The undo starts afterwards.
func TestUndo_activityIgnoresItsCancel_waitsUntilItIsAbandoned(t *testing.T) {
	t.Parallel()
	withSagas(t, simhub.Options{}, func(_ context.Context, s *sagas) {
		in := s.startAs("a", "saga", spec{Job: ignoresCancel})
		var at time.Time
		s.meanwhile(time.Minute, func() { at = s.cancelAfter(5*time.Second, in) })
		s.wantUndone(in, perdure.OutcomeAbandoned)
		if took := s.after(at); took < 10*time.Second || took > 12*time.Second {
			t.Errorf("undone after %v, want 10 s to 12 s", took)
		}
		s.wantCancelHistory(in)
	})
}

// A queued activity is cancelled before it starts. Only this case has the outcome never_began.
func TestUndo_activityNeverStarted_hasOutcomeNeverStarted(t *testing.T) {
	t.Parallel()
	for _, retried := range []time.Duration{0, time.Minute} {
		withSagas(t, simhub.Options{}, func(ctx context.Context, s *sagas) {
			in := s.startAs("a", "saga", spec{Every: retried})
			s.turn(0)
			s.cancelIt(in)
			s.turn(0)
			s.serveFor(time.Minute)
			s.wantUndone(in, perdure.OutcomeNeverStarted)
			if n := len(s.seen(&s.begun)); n > 0 {
				t.Errorf("got %d runs, want 0", n)
			}
			if left, err := s.Provider.ReadActivityRecord(ctx, in.ExecutionID, 3); err != nil ||
				left.CancelOutcome != provider.OutcomeNeverStarted {
				t.Errorf("got activity record %+v, error %v, want never started", left, err)
			}
		})
	}
}

// A worker crashes during the grace period of its activity, or before it observes the cancel. Its lease expires, and
// the redelivery reports the end and, if it was stored, the time of the observation.
func TestUndo_workerDies_redeliveryReportsTheEnd(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ ran, gracePeriod time.Duration }{
		"in the grace period":    {5 * time.Second, 3 * time.Second},
		"before the observation": {5600 * time.Millisecond, 0}, // between two polls, of four per second
		"after a lease renewal":  {50 * time.Second, 3 * time.Second},
		"just started":           {500 * time.Millisecond, 1200 * time.Millisecond}, // before the first lease renewal
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var dead atomic.Bool
			// A crashed worker makes no calls.
			crashNow := func(ctx context.Context, call simaws.Call, next func() error) error {
				if dead.Load() && ctx.Value(crashingKey{}) != nil {
					return simhub.ErrCrashed
				}
				return next()
			}
			withSagas(t, simhub.Options{Intercept: crashNow}, func(ctx context.Context, s *sagas) {
				in := s.startAs("a", "saga", spec{Job: ignoresCancel})
				s.turn(0)
				records := s.receive("sim://default")
				go s.worker().HandleRecords(context.WithValue(ctx, crashingKey{}, true), records)
				time.Sleep(c.ran)
				s.cancelIt(in)
				s.turn(0)
				time.Sleep(c.gracePeriod)
				dead.Store(true)
				died := time.Now()
				s.serveFor(30 * time.Minute)
				s.wantUndone(in, perdure.OutcomeWorkerLost)
				if seen := s.wantCancelHistory(in); seen.Before(died) != (c.gracePeriod > 0) {
					t.Errorf("got SeenAt %v after the crash of the worker", seen.Sub(died))
				}
				if left, err := s.Provider.ReadActivityRecord(ctx, in.ExecutionID, 3); err != nil ||
					left.CancelOutcome != "" || left.SeenAt.IsZero() != (c.gracePeriod == 0) {
					t.Errorf("got activity record %+v, error %v", left, err)
				}
				// the time of one lease; a record that is released in between may be early
				if took := s.after(died); took < 15*time.Second || took > time.Minute {
					t.Errorf("got undo %v after the crash of the worker, want 15 s to 1 min", took)
				}
			})
		})
	}
}

type crashingKey struct{}

// No code runs between two attempts, so the turn that cancels the activity reports the end. The next attempt is in its
// queue, or has a schedule, which is deleted. The activity is settled when messages of either arrive.
func TestUndo_activityWaitsForNextAttempt_endsAtOnce(t *testing.T) {
	t.Parallel()
	for _, every := range []time.Duration{5 * time.Minute, 14 * time.Minute, time.Hour, 26 * time.Hour} {
		for _, cold := range []bool{false, true} {
			t.Run(fmt.Sprint(every, ", cold=", cold), func(t *testing.T) {
				t.Parallel()
				o := simhub.Options{}
				if cold {
					o.CacheBytes = 1
				}
				withSagas(t, o, func(_ context.Context, s *sagas) {
					in := s.startAs("a", "saga", spec{FailsUntil: 100, Every: every})
					var at time.Time
					s.meanwhile(every+every/2+time.Minute, func() { at = s.cancelAfter(every+every/2, in) })
					if took := s.after(at); took > 2*time.Second {
						t.Errorf("undone after %v, want at most 2 s", took)
					}
					if n := s.Cloud.Schedules.Count(); n > 0 {
						t.Errorf("got %d schedules, want 0", n)
					}
					s.serveFor(3 * every)
					if n := len(s.seen(&s.begun)); n != 2 {
						t.Errorf("got %d attempts, want 2", n)
					}
					s.wantUndone(in, perdure.OutcomeReturned)
				})
			})
		}
	}
}

// Interleaving: the cancel is committed while the next attempt becomes due, by message delay or timer. In each order,
// the end is reported, and no code runs afterwards.
func TestUndo_nextAttemptBecomesDue_endsOnce(t *testing.T) {
	t.Parallel()
	for _, every := range []time.Duration{time.Minute, time.Hour} {
		for early := -3 * time.Second; early <= 4*time.Second; early += 250 * time.Millisecond {
			withSagas(t, simhub.Options{}, func(_ context.Context, s *sagas) {
				in := s.startAs("a", "saga", spec{
					FailsUntil: 2, Every: every, Job: job{Takes: time.Hour, Longer: 2 * time.Second},
				})
				var at time.Time
				s.meanwhile(every+time.Hour, func() { at = s.cancelAfter(every-early, in) })
				s.wantUndone(in, perdure.OutcomeReturned)
				if took := s.after(at); took > 10*time.Second {
					t.Errorf("interval %v, cancelled %v early: undone after %v", every, early, took)
				}
			})
		}
	}
}

// No worker receives the activity. The schedule-to-close timeout also bounds the wait for its end.
func TestUndo_noWorkerReceivesActivity_isBoundedByScheduleToClose(t *testing.T) {
	t.Parallel()
	for _, closes := range []time.Duration{10 * time.Minute, 5 * time.Hour} {
		withSagas(t, simhub.Options{}, func(_ context.Context, s *sagas) {
			in := s.startAs("a", "saga", spec{Close: closes})
			at := time.Now()
			s.turn(0)
			ignored := s.receive("sim://default") // received by a process that ignores it
			if err := s.Provider.AbandonRecords(s.t.Context(), "default", 12*time.Hour, ignored...); err != nil {
				t.Fatal(err)
			}
			s.meanwhile(closes+closes/2, func() { s.cancelAfter(time.Minute, in) })
			if took := s.after(at); took < closes || took > closes+5*time.Second {
				t.Errorf("undone after %v, schedule-to-close timeout %v", took, closes)
			}
			s.serveFor(24 * time.Hour)
			s.wantUndone(in, perdure.OutcomeTimedOut)
		})
	}
}

// The schedule-to-close timeout expires during the grace period. The worker abandons the activity before, and the undo
// does not start while the orchestration still waits.
func TestUndo_scheduleToCloseExpiresInGracePeriod_activityIsAbandonedBefore(t *testing.T) {
	t.Parallel()
	withSagas(t, simhub.Options{}, func(_ context.Context, s *sagas) {
		in := s.startAs("a", "saga", spec{Close: 15 * time.Second, Job: ignoresCancel})
		s.meanwhile(time.Hour, func() { s.cancelAfter(10*time.Second, in) })
		s.wantUndone(in, perdure.OutcomeAbandoned)
	})
}

// Interleaving: one copy of a work item runs and is in its grace period. Another copy is delivered, and its worker
// reads the cancel during the grace period or later. The worker does not report an end that has not happened.
func TestUndo_copyOfRunningWorkItem_doesNotReportTheEnd(t *testing.T) {
	t.Parallel()
	for _, late := range []time.Duration{0, time.Second, 4 * time.Second, 7 * time.Second, 12 * time.Second} {
		withSagas(t, simhub.Options{}, func(ctx context.Context, s *sagas) {
			in := s.startAs("a", "saga", spec{Job: job{Takes: time.Hour, Longer: 9 * time.Second}})
			s.turn(0)
			items := s.workItems()
			go s.worker().HandleRecords(ctx, []provider.Record{items[0].Record})
			time.Sleep(late)
			again := items[0].WorkItem
			again.PossibleDuplicate = true
			if err := s.Provider.PutWorkItems(ctx, again); err != nil {
				t.Fatal(err)
			}
			s.meanwhile(time.Hour, func() { s.cancelAfter(max(0, 5*time.Second-late), in) })
			if n := len(s.seen(&s.begun)); n != 1 {
				t.Errorf("copy after %v: got %d concurrent runs, want 1", late, n)
			}
			s.wantUndone(in, perdure.OutcomeReturned)
		})
	}
}

// Interleaving: the failure of the first attempt is redelivered during the grace period of the second. This failure is
// not the end of the activity.
func TestUndo_earlierFailureIsRedelivered_undoStillWaits(t *testing.T) {
	t.Parallel()
	withSagas(t, simhub.Options{}, func(_ context.Context, s *sagas) {
		in := s.startAs("a", "saga", spec{
			FailsUntil: 2, Every: time.Minute, Job: job{Takes: time.Hour, Longer: 9 * time.Second},
		})
		s.meanwhile(time.Hour, func() {
			time.Sleep(10 * time.Minute) // beyond the deduplication interval of SQS
			message := s.failure()
			s.cancelAfter(0, in)
			time.Sleep(time.Second)
			s.send(message)
		})
		s.wantUndone(in, perdure.OutcomeReturned)
		if n := len(s.seen(&s.begun)); n != 2 {
			t.Errorf("got %d attempts, want 2", n)
		}
	})
}

// failure returns the last message of a failed attempt.
func (s *sagas) failure() (message provider.Message) {
	s.t.Helper()
	for _, c := range s.made() {
		send, ok := c.Input.(*sqs.SendMessageBatchInput)
		if !ok || *send.QueueUrl != s.Provider.Config().InboxURL {
			continue
		}
		for i := range send.Entries {
			if m, err := wire.DecodeMessage(*send.Entries[i].MessageBody); err == nil &&
				m.Kind == provider.MessageActivityAttempts {
				message = m
			}
		}
	}
	if len(message.Outcomes) != 1 {
		s.t.Fatalf("got message %+v, want one outcome", message)
	}
	return message
}

// Interleaving: the orchestrator stores the next attempt and crashes before it sends the attempt. Then the activity is
// cancelled. The redelivered failure causes the end.
func TestUndo_nextAttemptWasNotSent_endsAfterRedelivery(t *testing.T) {
	t.Parallel()
	for _, every := range []time.Duration{time.Second, time.Minute, time.Hour} {
		var crashed atomic.Bool
		intercept := func(ctx context.Context, c simaws.Call, next func() error) error {
			in, writes := c.Input.(*dynamodb.TransactWriteItemsInput)
			if writes && len(in.TransactItems) == 2 && in.TransactItems[1].Update != nil &&
				crashed.CompareAndSwap(false, true) {
				if err := next(); err != nil {
					return err
				}
				return simhub.ErrCrashed
			}
			return next()
		}
		withSagas(t, simhub.Options{Intercept: intercept, Environments: 2}, func(_ context.Context, s *sagas) {
			in := s.startAs("a", "saga", spec{FailsUntil: 100, Every: every})
			s.meanwhile(2*time.Hour, func() { s.cancelAfter(100*time.Millisecond, in) })
			if !crashed.Load() {
				t.Fatal("no process has crashed")
			}
			s.wantUndone(in, perdure.OutcomeReturned)
		})
	}
}

// Interleaving: a worker checks a redelivered work item for the end of the activity and then for a cancel. The cancel
// is committed between the two reads.
func TestUndo_cancelBetweenTwoReads_isObserved(t *testing.T) {
	t.Parallel()
	s := &sagas{}
	var in provider.Instance
	var done atomic.Bool
	o := simhub.Options{Registry: s.registry()}
	inBubble(t, o, func(ctx context.Context, h *hub) {
		s.hub = h
		in = h.startAs("a", "saga", spec{Job: forever})
		h.turn(0)
		items := h.workItems()
		again := items[0].WorkItem
		again.PossibleDuplicate = true
		if err := h.Provider.PutWorkItems(ctx, again); err != nil {
			t.Fatal(err)
		}
		_ = h.Provider.DeleteRecords(ctx, "default", items[0].Record)
		h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
			query, ok := c.Input.(*dynamodb.QueryInput)
			if ok && strings.HasPrefix(text(query.ExpressionAttributeValues, ":sk"), "h#") &&
				done.CompareAndSwap(false, true) {
				s.cancelIt(in)
				h.turn(0)
				h.awaitCancelRecord(in) // the orchestrator that polls may have received the cancel
			}
			return next()
		})
		h.serveFor(time.Hour)
		if !done.Load() {
			t.Error("the worker made no second read")
		}
		s.wantUndone(in, perdure.OutcomeNeverStarted)
	})
}

// A worker that stops, or has lost its lease, does not report the end of a cancelled activity. The redelivery reports
// it.
func TestUndo_workerStops_redeliveryReportsTheEnd(t *testing.T) {
	t.Parallel()
	withSagas(t, simhub.Options{}, func(ctx context.Context, s *sagas) {
		in := s.startAs("a", "saga", spec{Job: job{Takes: time.Hour, Longer: 5 * time.Second}})
		s.turn(0)
		records := s.receive("sim://default")
		ctx, stop := context.WithCancel(ctx)
		done := make(chan []string)
		go func() {
			done <- s.worker().HandleRecords(ctx, records)
		}()
		time.Sleep(5500 * time.Millisecond)
		stop()
		time.Sleep(100 * time.Millisecond)
		s.cancelIt(in)
		s.turn(0)
		if failed := <-done; len(failed) != 1 {
			t.Errorf("got failed records %v, want 1", failed)
		}
		s.serveFor(time.Hour)
		s.wantUndone(in, perdure.OutcomeWorkerLost)
	})
}

// After the instance has ended, no end is awaited, and no end of its activities is sent.
func TestUndo_instanceEnds_noEndIsReported(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(s *sagas, in provider.Instance){
		"terminated": func(s *sagas, in provider.Instance) {
			s.send(provider.Message{Kind: provider.MessageTerminate, InstanceID: in.InstanceID})
		},
		"purged": func(s *sagas, in provider.Instance) {
			if err := s.Provider.DeleteInstance(s.t.Context(), in.InstanceID, true); err != nil {
				s.t.Error(err)
			}
		},
	} {
		for _, begun := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", begun=", begun), func(t *testing.T) {
				t.Parallel()
				withSagas(t, simhub.Options{}, func(_ context.Context, s *sagas) {
					in := s.startAs("a", "saga", spec{Job: ignoresCancel})
					before := 0
					finish := func() {
						end(s, in)
						before = len(s.made())
					}
					if s.turn(0); begun {
						s.meanwhile(time.Hour, func() { time.Sleep(5 * time.Second); finish() })
					} else {
						finish()
						s.turn(0)
						s.serveFor(time.Hour)
					}
					if n := s.outcomesSince(before); n > 0 || len(s.seen(&s.undone)) > 0 {
						t.Errorf("got %d outcomes for an ended instance, want 0", n)
					}
					s.checkIdle()
				})
			})
		}
	}
}

// outcomesSince counts the outcomes that were sent since a call.
func (s *sagas) outcomesSince(call int) (n int) {
	for _, c := range s.made()[call:] {
		if in, ok := c.Input.(*sqs.SendMessageBatchInput); ok && *in.QueueUrl == s.Provider.Config().InboxURL {
			for i := range in.Entries {
				m, _ := wire.DecodeMessage(*in.Entries[i].MessageBody)
				n += len(m.Outcomes)
			}
		}
	}
	return n
}

// Without WaitForCancellation there are no additional messages, reads or writes, and the activity may end after its
// undo.
func TestUndo_withoutWaitForCancellation_costsNothingMore(t *testing.T) {
	t.Parallel()
	for _, begun := range []bool{false, true} {
		withSagas(t, simhub.Options{}, func(_ context.Context, s *sagas) {
			in := s.startAs("a", "saga", spec{Job: ignoresCancel, NoWait: true})
			before := 0
			s.turn(0)
			if !begun {
				s.cancelIt(in)
				s.turn(0)
			}
			s.meanwhile(time.Hour, func() {
				if begun {
					s.cancelAfter(5*time.Second, in)
				}
				before = len(s.made())
			})
			if n := s.outcomesSince(before); n != 1 { // the outcome of the undo
				t.Errorf("begun=%v: got %d outcomes, want 1", begun, n)
			}
			records := 0
			for _, c := range s.made() {
				u, ok := c.Input.(*dynamodb.UpdateItemInput)
				if ok && strings.Contains(*u.UpdateExpression, "token") {
					t.Error("the run lease was stored")
				}
				if ok && strings.HasPrefix(text(u.Key, "sk"), "a#") {
					records++
				}
			}
			if records != 1 { // the outcome
				t.Errorf("begun=%v: got %d writes of its record, want 1", begun, records)
			}
			if at := s.seen(&s.undone); len(at) != 1 {
				t.Errorf("got %d undos, want 1", len(at))
			}
		})
	}
}

// Interleaving: an activity is called and cancelled in one turn, and the process crashes at any call. The repeated turn
// ends the activity.
func TestWaitForCancellation_cancelledInItsOwnTurn_endsDespiteCrash(t *testing.T) {
	t.Parallel()
	for n := int64(1); ; n++ {
		intercept, calls := simhub.CrashAt(n, true)
		r := registry()
		perdure.AddOrchestration(r, "at-once", func(ctx *perdure.OrchestrationContext, _ int) (string, error) {
			f := perdure.CallActivityByName[int](ctx, "inc", 1, perdure.WaitForCancellation())
			f.Cancel("never mind")
			_, err := f.Await(ctx)
			return endOf(err), nil
		})
		inBubble(t, simhub.Options{
			Registry: r, Intercept: intercept, Environments: 2,
		}, func(_ context.Context, h *hub) {
			end := h.finish(h.start("at-once", 0))
			// A worker that crashed after it received the activity may have run it.
			if out := string(end.Output); out != `"requested, never_began"` && out != `"requested, worker_gone"` {
				t.Errorf("crash at call %d: ended with %s, output %s", n, end.String(), end.Output)
			}
			h.checkIdle()
		})
		if calls.Load() < n {
			return
		}
	}
}

// A parent's undo waits for the end of its child, which follows the child's own undo, for each state of the child when
// the cancel arrives.
func TestUndo_ofParent_waitsForUndoOfChild(t *testing.T) {
	t.Parallel()
	for name, d := range map[string]spec{
		"stops slowly":      {Child: true, Job: job{Takes: time.Hour, Longer: 4 * time.Second}},
		"is abandoned":      {Child: true, Job: ignoresCancel},
		"waits for a retry": {Child: true, FailsUntil: 100, Every: time.Hour},
	} {
		for _, cold := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", cold=", cold), func(t *testing.T) {
				t.Parallel()
				o := simhub.Options{}
				if cold {
					o.CacheBytes = 1
				}
				withSagas(t, o, func(_ context.Context, s *sagas) {
					in := s.startAs("a", "saga", d)
					s.meanwhile(2*time.Hour, func() { s.cancelAfter(5*time.Second, in) })
					s.wantFamilyUndone(in, d)
				})
			})
		}
	}
}

// wantFamilyUndone fails the test unless parent and child were undone once, and the child was undone after its
// activity.
func (s *sagas) wantFamilyUndone(in provider.Instance, d spec) {
	s.t.Helper()
	undone := s.seen(&s.undone)
	if len(undone) != 2 || !d.Job.Ignores && len(s.seen(&s.ended)) > 0 && undone[0].Before(s.seen(&s.ended)[0]) {
		s.t.Errorf("ended at %v, undone at %v", s.seen(&s.ended), undone)
	}
	if now := s.read(in); string(now.CustomStatus) != `"requested, over"` &&
		string(now.CustomStatus) != `"parent_cancelled, over"` {
		s.t.Errorf("child: got %s", now.CustomStatus)
	}
	s.checkIdle()
}

// A process crashes before or after each call while a saga, with or without a child, is cancelled. Each step is undone
// after its end, and the hub is empty at the end.
func TestR23_crashAtAnyCallWhileASagaIsCancelled_undoesEachStep(t *testing.T) {
	t.Parallel()
	for name, d := range map[string]spec{
		"an activity": {Job: job{Takes: time.Hour, Longer: 2 * time.Second}},
		"an activity that ignores the cancellation":   {Job: job{Takes: 20 * time.Second, Ignores: true}},
		"an activity that waits for its next attempt": {FailsUntil: 100, Every: time.Hour},
		"a child":         {Child: true, Job: job{Takes: time.Hour, Longer: 2 * time.Second}},
		"another failure": {Fails: true, Job: job{Takes: time.Hour, Longer: 2 * time.Second}},
	} {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", after=", after), func(t *testing.T) {
				t.Parallel()
				for n := int64(1); ; n += shortrun.Step(crashStep) {
					intercept, calls := simhub.CrashAt(n, after)
					withSagas(t, simhub.Options{
						Intercept: intercept, Environments: 2, WorkVisibility: time.Minute,
					}, func(_ context.Context, s *sagas) {
						in := s.startAs("a", "saga", d)
						s.meanwhile(3*time.Hour, func() { s.cancelAfter(5*time.Second, in) })
						s.wantInOrder(in, d, fmt.Sprintf("crash at call %d", n))
					})
					if calls.Load() < n || t.Failed() {
						return
					}
				}
			})
		}
	}
}

// wantInOrder fails the test unless each activity is undone after its end. An undo may run again after its process has
// crashed.
func (s *sagas) wantInOrder(in provider.Instance, d spec, when string) {
	s.t.Helper()
	end, err := s.Provider.ReadTerminalEvent(s.t.Context(), in.ExecutionID)
	if want := map[bool]history.Kind{
		false: history.OrchestrationCancelled,
		true:  history.OrchestrationFailed,
	}[d.Fails]; err != nil || end.Kind != want {
		s.t.Errorf("%s: ended with %s, error %v", when, end.String(), err)
	}
	undone, ended, least := s.seen(&s.undone), s.seen(&s.ended), 1
	if d.Child {
		least = 2
	}
	if len(undone) < least || len(undone) > least+1 {
		s.t.Errorf("%s: got %d undos", when, len(undone))
	}
	if n := len(ended); n > 0 && len(undone) > 0 && !d.Job.Ignores && undone[0].Before(ended[n-1]) {
		s.t.Errorf("%s: undone %v before the end", when, ended[n-1].Sub(undone[0]))
	}
	if err := s.CheckIdle(s.t.Context()); err != nil {
		s.t.Errorf("%s: got error %v", when, err)
	}
}

// The wait ends if the child does not exist or has ended.
func TestUndo_childDoesNotExist_waitEnds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before bool // the cancel is committed before the child's start is delivered
		taken  bool // another instance has the child's ID
	}{
		"cancelled with the start": {before: true},
		"ID in use":                {taken: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &sagas{}
			r := s.registry()
			perdure.AddOrchestration(r, "mother", func(ctx *perdure.OrchestrationContext, _ int) (string, error) {
				f := perdure.CallSubOrchestrationByName[string](ctx, "saga", spec{Job: job{Takes: time.Minute}},
					perdure.WithInstanceID("kid"), perdure.WaitForCancellation())
				if c.before {
					f.Cancel("no")
				} else if err := perdure.Sleep(ctx, 20*time.Second); err != nil {
					return "", err
				}
				f.Cancel("no")
				_, err := f.Await(ctx)
				return endOf(err), nil
			})
			inBubble(t, simhub.Options{Registry: r}, func(_ context.Context, h *hub) {
				if c.taken {
					h.startAs("kid", "waits-a-day", 0)
				}
				in := h.startAs("a", "mother", 0)
				h.serveFor(2 * time.Hour)
				end, err := h.Provider.ReadTerminalEvent(h.t.Context(), in.ExecutionID)
				if out := string(end.Output); err != nil || out != `"requested, over"` &&
					(!c.taken || !strings.Contains(out, "already_exists")) {
					t.Errorf("ended with %s, output %s, error %v", end.String(), out, err)
				}
			})
		})
	}
}

// listening returns a registry with an orchestration that awaits an activity with WaitForCancellation, and returns its
// outcome. If broken is set, the code differs from its history.
func (s *sagas) listening(broken bool) *perdure.Registry {
	r := s.registry()
	perdure.AddOrchestration(r, "listens", func(ctx *perdure.OrchestrationContext, d spec) (string, error) {
		if broken && ctx.IsReplaying() {
			ctx.SetCustomStatus("no such thing")
		}
		opts := []perdure.ActivityCallOption{perdure.WaitForCancellation()}
		if d.Every > 0 {
			opts = append(opts, perdure.WithRetry(perdure.RetryPolicy{InitialInterval: d.Every, BackoffCoefficient: 1}))
		}
		_, err := perdure.CallActivityByName[string](ctx, "do", d, opts...).Await(ctx)
		return endOf(err), nil
	})
	return r
}

// cancelActivity sends a cancel request for activity 3 only.
func (s *sagas) cancelActivity(in provider.Instance) {
	s.t.Helper()
	s.send(provider.Message{Kind: provider.MessageCancelActivity, InstanceID: in.InstanceID, ActivityID: 3, Text: "no"})
}

// A client cancels an activity twice by its ID. The orchestration receives its end after the activity has returned, and
// continues.
func TestCancelActivity_byClient_waitsForTheEnd(t *testing.T) {
	t.Parallel()
	s := &sagas{}
	inBubble(t, simhub.Options{Registry: s.listening(false)}, func(_ context.Context, h *hub) {
		s.hub = h
		in := h.startAs("a", "listens", spec{Job: job{Takes: time.Hour, Longer: 6 * time.Second}})
		s.meanwhile(time.Hour, func() {
			time.Sleep(10 * time.Second)
			s.cancelActivity(in)
			time.Sleep(2 * time.Second)
			s.cancelActivity(in)
		})
		h.wantOutput(in, `"requested, returned"`)
		if ended := s.seen(&s.ended); len(ended) != 1 || h.read(in).UpdatedAt.Before(ended[0]) {
			t.Errorf("activity ended at %v, and the instance at %v", ended, h.read(in).UpdatedAt)
		}
		h.checkIdle()
	})
}

// A blocked instance receives the cancel and the end of a running or waiting activity in the fixed build.
func TestCancelActivity_blockedInstance_receivesTheEndInFixedBuild(t *testing.T) {
	t.Parallel()
	for name, d := range map[string]spec{
		"running activity":    {Job: job{Takes: 2 * time.Minute}},
		"waiting for a retry": {FailsUntil: 100, Every: time.Hour},
		"failing again":       {FailsUntil: 100, Every: 30 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &sagas{}
			inBubble(t, simhub.Options{Registry: s.listening(true), CacheBytes: 1}, func(_ context.Context, h *hub) {
				s.hub = h
				in := h.startAs("a", "listens", d)
				s.meanwhile(20*time.Minute, func() {
					time.Sleep(10 * time.Second)
					s.cancelActivity(in)
				})
				if now := h.read(in); now.Status != provider.StatusBlocked {
					t.Fatalf("got status %s, want Blocked", now.Status)
				}
				fixed := h.orchestrator(s.listening(false), "fixed")
				h.send(provider.Message{
					Kind: provider.MessageWake, InstanceID: in.InstanceID, ExecutionID: in.ExecutionID,
				})
				for range 5 {
					h.passRecords(fixed)
					time.Sleep(time.Minute)
				}
				h.wantOutput(in, `"requested, returned"`)
			})
		})
	}
}
