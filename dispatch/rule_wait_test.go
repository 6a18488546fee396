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
)

// deed is what a saga does, and undoes: an activity "do" and how it is called.
type deed struct {
	Job job
	// FailsUntil is the first attempt that does not fail at once, Every the wait between attempts; 0: it is not tried again.
	FailsUntil int
	Every      time.Duration
	Close      time.Duration // of schedule-to-close
	// Unheard is that nobody waits for its end.
	Unheard bool
	// Child has a saga of its own do it, and that fails beside it: Fails.
	Child, Fails bool
}

// sagas is a hub whose orchestration "saga" does a deed, as #3, and undoes it when it is cancelled, and what was seen of that.
type sagas struct {
	*hub

	mu     sync.Mutex
	begun  []time.Time
	ended  []time.Time // by itself: what was given up ends unseen
	undone []time.Time
}

func (s *sagas) note(times *[]time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*times = append(*times, time.Now())
}

// seen are the times so far.
func (s *sagas) seen(times *[]time.Time) []time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]time.Time(nil), *times...)
}

func (s *sagas) do(ctx context.Context, d deed) (string, error) {
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

// saga is the orchestration. Its custom status is how the deed ended.
func (s *sagas) saga(ctx *perdure.OrchestrationContext, d deed) (_ string, err error) {
	var opts []perdure.CallOption
	if !d.Unheard {
		opts = append(opts, perdure.WaitForCancellation())
	}
	if d.Every > 0 {
		opts = append(opts, perdure.WithRetry(perdure.RetryPolicy{InitialInterval: d.Every, BackoffCoefficient: 1, MaxInterval: d.Every}))
	}
	var doing *perdure.Future[string]
	if d.Child {
		d.Child = false
		doing = perdure.CallSubOrchestrationByName[string](ctx, "saga", d, all[perdure.SubOrchestrationCallOption](opts)...)
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

// undoing runs a test on sagas, and then lets what was leaked come to its end.
func undoing(t *testing.T, o simhub.Options, test func(ctx context.Context, s *sagas)) {
	t.Helper()
	s := &sagas{}
	o.Registry = s.registry()
	inBubble(t, o, func(ctx context.Context, h *hub) {
		s.hub = h
		test(ctx, s)
		time.Sleep(3 * time.Hour)
	})
}

// cancelIt asks for the instance to be cancelled.
func (s *sagas) cancelIt(in provider.Instance) {
	s.t.Helper()
	s.send(provider.Message{Kind: provider.MessageCancel, InstanceID: in.InstanceID, Reason: "requested", Text: "no", RequestedBy: history.RequestedByClient})
}

// meanwhile does something while the functions run, for so long.
func (s *sagas) meanwhile(d time.Duration, do func()) {
	s.t.Helper()
	var served sync.WaitGroup
	served.Go(func() { s.serveFor(d) })
	do()
	served.Wait()
}

// cancelAfter is cancelIt, some time later.
func (s *sagas) cancelAfter(d time.Duration, in provider.Instance) (at time.Time) {
	s.t.Helper()
	time.Sleep(d)
	s.cancelIt(in)
	return time.Now()
}

// worker is one of the test's own.
func (s *sagas) worker() *dispatch.Worker {
	return must(dispatch.NewWorker(s.registry(), s.Provider, &dispatch.WorkerOptions{Logger: slog.New(slog.DiscardHandler)}))
}

// wantUndone fails unless the deed of an instance that is cancelled ended so, was undone once, and not before it had ended; early is how
// much sooner that may be, of what is not seen to end.
func (s *sagas) wantUndone(in provider.Instance, ended perdure.CancelOutcome) {
	s.t.Helper()
	now := s.read(in)
	end, err := s.Provider.ReadTerminalEvent(s.t.Context(), in.ExecutionID)
	if err != nil || end.Kind != history.OrchestrationCancelled {
		s.t.Errorf("it ended with %s, %v", end.String(), err)
	}
	if want := `"requested, ` + string(ended) + `"`; string(now.CustomStatus) != want {
		s.t.Errorf("the deed ended %s, want %s", now.CustomStatus, want)
	}
	undone, last := s.seen(&s.undone), s.seen(&s.ended)
	if len(undone) != 1 {
		s.t.Fatalf("undone %d times", len(undone))
	}
	if n := len(last); n > 0 && ended != perdure.OutcomeAbandoned && undone[0].Before(last[n-1]) {
		s.t.Errorf("undone %v before the end", last[n-1].Sub(undone[0]))
	}
	s.checkRest()
}

// after is how long after a time the deed was undone.
func (s *sagas) after(at time.Time) time.Duration {
	undone := s.seen(&s.undone)
	if len(undone) == 0 {
		s.t.Fatal("it is not undone")
	}
	return undone[0].Sub(at)
}

// An activity that is cancelled, and takes some time to stop, is not undone before it has, warm and cold.
func TestAnUndoWaitsUntilWhatItUndoesHasReturned(t *testing.T) {
	t.Parallel()
	for name, j := range map[string]job{
		"with a result":            {Takes: time.Hour, Longer: 4 * time.Second},
		"with an error":            {Takes: time.Hour, Longer: 4 * time.Second, Fails: true},
		"without heeding it":       {Takes: 12 * time.Second, Ignores: true},
		"at the end of its grace":  {Takes: time.Hour, Longer: 9 * time.Second},
		"when it is told, at once": {Takes: time.Hour},
	} {
		for _, cold := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", cold=", cold), func(t *testing.T) {
				t.Parallel()
				o := simhub.Options{}
				if cold {
					o.CacheBytes = 1
				}
				undoing(t, o, func(_ context.Context, s *sagas) {
					in := s.startAs("a", "saga", deed{Job: j})
					s.meanwhile(2*time.Hour, func() { s.cancelAfter(5*time.Second, in) })
					s.wantUndone(in, perdure.OutcomeReturned)
					s.wantDecidedSeenEnded(in)
				})
			})
		}
	}
}

// wantDecidedSeenEnded fails unless history tells how the deed ended: in order, and when its worker saw the cancel, which is returned.
func (s *sagas) wantDecidedSeenEnded(in provider.Instance) (seen time.Time) {
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
	if decided == nil || ended == nil || ended.Cancel == nil || ended.Cancel.SeenAt == nil || ended.Cancel.Outcome == "" {
		s.t.Fatalf("decided %v, ended %+v", decided, ended)
	}
	if seen = *ended.Cancel.SeenAt; seen.Before(decided.Time) || seen.After(ended.Time) {
		s.t.Errorf("decided %v, seen %v, ended %v", decided.Time, seen, ended.Time)
	}
	return seen
}

// What ignores its cancel is given up by its worker after the grace: then it is undone.
func TestAnUndoWaitsUntilWhatItUndoesIsGivenUp(t *testing.T) {
	t.Parallel()
	undoing(t, simhub.Options{}, func(_ context.Context, s *sagas) {
		in := s.startAs("a", "saga", deed{Job: stubborn})
		var at time.Time
		s.meanwhile(time.Minute, func() { at = s.cancelAfter(5*time.Second, in) })
		s.wantUndone(in, perdure.OutcomeAbandoned)
		if took := s.after(at); took < 10*time.Second || took > 12*time.Second {
			t.Errorf("undone after %v", took)
		}
		s.wantDecidedSeenEnded(in)
	})
}

// What lies in its queue is cancelled before it begins: never_began is said of that alone.
func TestAnUndoOfWhatNeverBegan(t *testing.T) {
	t.Parallel()
	for _, retried := range []time.Duration{0, time.Minute} {
		undoing(t, simhub.Options{}, func(ctx context.Context, s *sagas) {
			in := s.startAs("a", "saga", deed{Every: retried})
			s.turn(0)
			s.cancelIt(in)
			s.turn(0)
			s.serveFor(time.Minute)
			s.wantUndone(in, perdure.OutcomeNeverStarted)
			if n := len(s.seen(&s.begun)); n > 0 {
				t.Errorf("it ran %d times", n)
			}
			if left, err := s.Provider.ReadActivityRecord(ctx, in.ExecutionID, 3); err != nil || left.CancelOutcome != provider.OutcomeNeverStarted {
				t.Errorf("%+v, %v", left, err)
			}
		})
	}
}

// A worker that dies while its activity is in its grace, or before it saw the cancel, is noticed by its lease: the redelivery tells, and when the one
// that died had seen the cancel, if it had.
func TestAnUndoAfterItsWorkerHasDied(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ ran, graced time.Duration }{
		"in the grace":        {5 * time.Second, 3 * time.Second},
		"before it saw it":    {5600 * time.Millisecond, 0}, // between two looks, of four a second
		"after a lease of it": {50 * time.Second, 3 * time.Second},
		"having just begun":   {500 * time.Millisecond, 1200 * time.Millisecond}, // nothing would lease it yet
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var dead atomic.Bool
			// A worker that is dead calls nothing.
			die := func(ctx context.Context, call simaws.Call, next func() error) error {
				if dead.Load() && ctx.Value(deathly{}) != nil {
					return simhub.ErrCrashed
				}
				return next()
			}
			undoing(t, simhub.Options{Intercept: die}, func(ctx context.Context, s *sagas) {
				in := s.startAs("a", "saga", deed{Job: stubborn})
				s.turn(0)
				records := s.receive("sim://default")
				go s.worker().HandleRecords(context.WithValue(ctx, deathly{}, true), records)
				time.Sleep(c.ran)
				s.cancelIt(in)
				s.turn(0)
				time.Sleep(c.graced)
				dead.Store(true)
				died := time.Now()
				s.serveFor(30 * time.Minute)
				s.wantUndone(in, perdure.OutcomeWorkerLost)
				if seen := s.wantDecidedSeenEnded(in); seen.Before(died) != (c.graced > 0) {
					t.Errorf("the cancel was seen %v after its worker died", seen.Sub(died))
				}
				if left, err := s.Provider.ReadActivityRecord(ctx, in.ExecutionID, 3); err != nil || left.CancelOutcome != "" || left.SeenAt.IsZero() != (c.graced == 0) {
					t.Errorf("its record: %+v, %v", left, err)
				}
				if took := s.after(died); took < 15*time.Second || took > time.Minute { // a lease, and what comes back in between may be early once
					t.Errorf("undone %v after its worker died", took)
				}
			})
		})
	}
}

type deathly struct{}

// Between two attempts nothing runs: the turn that gives it up tells the end, whether the next attempt lies in its queue or has a
// schedule, which goes. What comes of either later finds it settled.
func TestAnUndoOfWhatWaitsForItsNextAttempt(t *testing.T) {
	t.Parallel()
	for _, every := range []time.Duration{5 * time.Minute, 14 * time.Minute, time.Hour, 26 * time.Hour} {
		for _, cold := range []bool{false, true} {
			t.Run(fmt.Sprint(every, ", cold=", cold), func(t *testing.T) {
				t.Parallel()
				o := simhub.Options{}
				if cold {
					o.CacheBytes = 1
				}
				undoing(t, o, func(_ context.Context, s *sagas) {
					in := s.startAs("a", "saga", deed{FailsUntil: 100, Every: every})
					var at time.Time
					s.meanwhile(every+every/2+time.Minute, func() { at = s.cancelAfter(every+every/2, in) })
					if took := s.after(at); took > 2*time.Second {
						t.Errorf("undone after %v", took)
					}
					if n := s.Cloud.Schedules.Count(); n > 0 {
						t.Errorf("%d schedules are left", n)
					}
					s.serveFor(3 * every)
					if n := len(s.seen(&s.begun)); n != 2 {
						t.Errorf("%d attempts", n)
					}
					s.wantUndone(in, perdure.OutcomeReturned)
				})
			})
		}
	}
}

// Interleaving: the cancel is decided in the very moments in which the next attempt becomes due, by delay or by its timer. Whichever comes first,
// its end is told, and no code runs after that.
func TestAnUndoOfWhatIsAboutToBeTriedAgain(t *testing.T) {
	t.Parallel()
	for _, every := range []time.Duration{time.Minute, time.Hour} {
		for early := -3 * time.Second; early <= 4*time.Second; early += 250 * time.Millisecond {
			undoing(t, simhub.Options{}, func(_ context.Context, s *sagas) {
				in := s.startAs("a", "saga", deed{FailsUntil: 2, Every: every, Job: job{Takes: time.Hour, Longer: 2 * time.Second}})
				var at time.Time
				s.meanwhile(every+time.Hour, func() { at = s.cancelAfter(every-early, in) })
				s.wantUndone(in, perdure.OutcomeReturned)
				if took := s.after(at); took > 10*time.Second {
					t.Errorf("%v, %v early: undone after %v", every, early, took)
				}
			})
		}
	}
}

// Nobody takes an activity from its queue: its schedule-to-close time bounds the wait for its end, too.
func TestAnUndoOfWhatNobodyTakesIsBounded(t *testing.T) {
	t.Parallel()
	for _, closes := range []time.Duration{10 * time.Minute, 5 * time.Hour} {
		undoing(t, simhub.Options{}, func(_ context.Context, s *sagas) {
			in := s.startAs("a", "saga", deed{Close: closes})
			at := time.Now()
			s.turn(0)
			deaf := s.receive("sim://default") // by somebody who does nothing with it
			if err := s.Provider.AbandonRecords(s.t.Context(), "default", 12*time.Hour, deaf...); err != nil {
				t.Fatal(err)
			}
			s.meanwhile(closes+closes/2, func() { s.cancelAfter(time.Minute, in) })
			if took := s.after(at); took < closes || took > closes+5*time.Second {
				t.Errorf("undone after %v of %v", took, closes)
			}
			s.serveFor(24 * time.Hour)
			s.wantUndone(in, perdure.OutcomeTimedOut)
		})
	}
}

// One that is in its grace when its schedule-to-close time ends is given up before that, and not undone while it may still be waited for.
func TestAGraceEndsWithTheScheduleToCloseTime(t *testing.T) {
	t.Parallel()
	undoing(t, simhub.Options{}, func(_ context.Context, s *sagas) {
		in := s.startAs("a", "saga", deed{Close: 15 * time.Second, Job: stubborn})
		s.meanwhile(time.Hour, func() { s.cancelAfter(10*time.Second, in) })
		s.wantUndone(in, perdure.OutcomeAbandoned)
	})
}

// Interleaving: two copies of the work item. One runs, and is in its grace; the other is delivered meanwhile, and finds that the activity is
// cancelled, or does so when the activity is cancelled later. It tells nothing of an end that is still to come.
func TestACopyDoesNotTellTheEndOfWhatRuns(t *testing.T) {
	t.Parallel()
	for _, late := range []time.Duration{0, time.Second, 4 * time.Second, 7 * time.Second, 12 * time.Second} {
		undoing(t, simhub.Options{}, func(ctx context.Context, s *sagas) {
			in := s.startAs("a", "saga", deed{Job: job{Takes: time.Hour, Longer: 9 * time.Second}})
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
				t.Errorf("a copy that came after %v: it runs %d times at once", late, n)
			}
			s.wantUndone(in, perdure.OutcomeReturned)
		})
	}
}

// Interleaving: the failure of the first attempt is told again while the second is in its grace. It is not the end.
func TestAFailureThatIsToldAgainIsNotTheEnd(t *testing.T) {
	t.Parallel()
	undoing(t, simhub.Options{}, func(_ context.Context, s *sagas) {
		in := s.startAs("a", "saga", deed{FailsUntil: 2, Every: time.Minute, Job: job{Takes: time.Hour, Longer: 9 * time.Second}})
		s.meanwhile(time.Hour, func() {
			time.Sleep(10 * time.Minute) // the queue has forgotten it
			told := s.failure()
			s.cancelAfter(0, in)
			time.Sleep(time.Second)
			s.send(told)
		})
		s.wantUndone(in, perdure.OutcomeReturned)
		if n := len(s.seen(&s.begun)); n != 2 {
			t.Errorf("%d attempts", n)
		}
	})
}

// failure is the message of a failed attempt that was sent last.
func (s *sagas) failure() (told provider.Message) {
	s.t.Helper()
	for _, c := range s.made() {
		send, ok := c.Input.(*sqs.SendMessageBatchInput)
		if !ok || *send.QueueUrl != s.Provider.Config().InboxURL {
			continue
		}
		for i := range send.Entries {
			if m, err := provider.DecodeMessage(*send.Entries[i].MessageBody); err == nil && m.Kind == provider.MessageActivityAttempts {
				told = m
			}
		}
	}
	if len(told.Outcomes) != 1 {
		s.t.Fatalf("%+v", told)
	}
	return told
}

// Interleaving: the orchestrator makes an attempt the current one and dies before it sends it; then the activity is cancelled. The failure
// that is delivered again leads to the end.
func TestAnAttemptThatWasNotSentIsNotWaitedForForEver(t *testing.T) {
	t.Parallel()
	for _, every := range []time.Duration{time.Second, time.Minute, time.Hour} {
		var crashed atomic.Bool
		intercept := func(ctx context.Context, c simaws.Call, next func() error) error {
			in, writes := c.Input.(*dynamodb.TransactWriteItemsInput)
			if writes && len(in.TransactItems) == 2 && in.TransactItems[1].Update != nil && crashed.CompareAndSwap(false, true) {
				if err := next(); err != nil {
					return err
				}
				return simhub.ErrCrashed
			}
			return next()
		}
		undoing(t, simhub.Options{Intercept: intercept, Environments: 2}, func(_ context.Context, s *sagas) {
			in := s.startAs("a", "saga", deed{FailsUntil: 100, Every: every})
			s.meanwhile(2*time.Hour, func() { s.cancelAfter(100*time.Millisecond, in) })
			if !crashed.Load() {
				t.Fatal("nothing has died")
			}
			s.wantUndone(in, perdure.OutcomeReturned)
		})
	}
}

// Interleaving: the cancel is decided between the two looks of a worker that has a work item for the second time: whether history says that
// the activity is over, and whether it is cancelled.
func TestACancelBetweenTwoLooksIsHeard(t *testing.T) {
	t.Parallel()
	s := &sagas{}
	var in provider.Instance
	var done atomic.Bool
	o := simhub.Options{Registry: s.registry()}
	inBubble(t, o, func(ctx context.Context, h *hub) {
		s.hub = h
		in = h.startAs("a", "saga", deed{Job: forever})
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
			if ok && strings.HasPrefix(text(query.ExpressionAttributeValues, ":sk"), "h#") && done.CompareAndSwap(false, true) {
				s.cancelIt(in)
				h.turn(0)
			}
			return next()
		})
		h.serveFor(time.Hour)
		if !done.Load() {
			t.Error("there was no second look")
		}
		s.wantUndone(in, perdure.OutcomeNeverStarted)
	})
}

// A worker that must stop, or has lost its lock, tells nothing of a cancelled activity: its redelivery does.
func TestWhatAWorkerThatStopsLeavesIsTold(t *testing.T) {
	t.Parallel()
	undoing(t, simhub.Options{}, func(ctx context.Context, s *sagas) {
		in := s.startAs("a", "saga", deed{Job: job{Takes: time.Hour, Longer: 5 * time.Second}})
		s.turn(0)
		records := s.receive("sim://default")
		ctx, stop := context.WithCancel(ctx)
		over := make(chan []string)
		go func() {
			over <- s.worker().HandleRecords(ctx, records)
		}()
		time.Sleep(5500 * time.Millisecond)
		stop()
		time.Sleep(100 * time.Millisecond)
		s.cancelIt(in)
		s.turn(0)
		if failed := <-over; len(failed) != 1 {
			t.Errorf("failed %v", failed)
		}
		s.serveFor(time.Hour)
		s.wantUndone(in, perdure.OutcomeWorkerLost)
	})
}

// When the instance ends nothing waits, and of what is outstanding no end is told that nobody waits for.
func TestNothingWaitsWhenTheInstanceEnds(t *testing.T) {
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
				undoing(t, simhub.Options{}, func(_ context.Context, s *sagas) {
					in := s.startAs("a", "saga", deed{Job: stubborn})
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
					if n := s.toldSince(before); n > 0 || len(s.seen(&s.undone)) > 0 {
						t.Errorf("%d ends are told to nobody", n)
					}
					s.checkRest()
				})
			})
		}
	}
}

// toldSince counts the outcomes that were sent.
func (s *sagas) toldSince(call int) (n int) {
	for _, c := range s.made()[call:] {
		if in, ok := c.Input.(*sqs.SendMessageBatchInput); ok && *in.QueueUrl == s.Provider.Config().InboxURL {
			for i := range in.Entries {
				m, _ := provider.DecodeMessage(*in.Entries[i].MessageBody)
				n += len(m.Outcomes)
			}
		}
	}
	return n
}

// Nobody asked to wait: nothing is sent that was not before, nothing read or written, and the deed may end after its undo.
func TestWhatNobodyWaitsForCostsNothingMore(t *testing.T) {
	t.Parallel()
	for _, begun := range []bool{false, true} {
		undoing(t, simhub.Options{}, func(_ context.Context, s *sagas) {
			in := s.startAs("a", "saga", deed{Job: stubborn, Unheard: true})
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
			if n := s.toldSince(before); n != 1 { // that of the undo
				t.Errorf("begun=%v: %d outcomes", begun, n)
			}
			records := 0
			for _, c := range s.made() {
				u, ok := c.Input.(*dynamodb.UpdateItemInput)
				if ok && strings.Contains(*u.UpdateExpression, "token") {
					t.Error("its run is kept")
				}
				if ok && strings.HasPrefix(text(u.Key, "sk"), "a#") {
					records++
				}
			}
			if records != 1 { // how it ended
				t.Errorf("begun=%v: %d writes of its record", begun, records)
			}
			if at := s.seen(&s.undone); len(at) != 1 {
				t.Errorf("undone %d times", len(at))
			}
		})
	}
}

// Interleaving: an activity is called and cancelled in one turn, and the process dies before it sends anything. What is repeated leads to
// the end.
func TestWhatIsCancelledInItsOwnTurnEnds(t *testing.T) {
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
		inBubble(t, simhub.Options{Registry: r, Intercept: intercept, Environments: 2}, func(_ context.Context, h *hub) {
			end := h.finish(h.start("at-once", 0))
			// A worker that died when it had taken the activity might have run it, for all that others know.
			if out := string(end.Output); out != `"requested, never_began"` && out != `"requested, worker_gone"` {
				t.Errorf("crash at call %d: ended with %s %s", n, end.String(), end.Output)
			}
			h.checkRest()
		})
		if calls.Load() < n {
			return
		}
	}
}

// A parent's undo waits until its child is over, which is when that has undone what it did: whatever the child does, and wherever it is
// when the cancel comes.
func TestAParentsUndoWaitsForThatOfItsChild(t *testing.T) {
	t.Parallel()
	for name, d := range map[string]deed{
		"that stops in a while": {Child: true, Job: job{Takes: time.Hour, Longer: 4 * time.Second}},
		"that is given up":      {Child: true, Job: stubborn},
		"that waits to retry":   {Child: true, FailsUntil: 100, Every: time.Hour},
	} {
		for _, cold := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", cold=", cold), func(t *testing.T) {
				t.Parallel()
				o := simhub.Options{}
				if cold {
					o.CacheBytes = 1
				}
				undoing(t, o, func(_ context.Context, s *sagas) {
					in := s.startAs("a", "saga", d)
					s.meanwhile(2*time.Hour, func() { s.cancelAfter(5*time.Second, in) })
					s.wantFamilyUndone(in, d)
				})
			})
		}
	}
}

// wantFamilyUndone fails unless the parent was undone once, after its child.
func (s *sagas) wantFamilyUndone(in provider.Instance, d deed) {
	s.t.Helper()
	undone := s.seen(&s.undone)
	if len(undone) != 2 || !d.Job.Ignores && len(s.seen(&s.ended)) > 0 && undone[0].Before(s.seen(&s.ended)[0]) {
		s.t.Errorf("ended at %v, undone at %v", s.seen(&s.ended), undone)
	}
	if now := s.read(in); string(now.CustomStatus) != `"requested, over"` && string(now.CustomStatus) != `"parent_cancelled, over"` {
		s.t.Errorf("the child ended %s", now.CustomStatus)
	}
	s.checkRest()
}

// A process is killed before and after every call that it makes while a saga, and one with a child, is cancelled: nothing is undone
// before it has ended, all is in the end, and nothing is left.
func TestR23ACrashAtAnyCallWhileASagaIsCancelled(t *testing.T) {
	t.Parallel()
	for name, d := range map[string]deed{
		"an activity":                    {Job: job{Takes: time.Hour, Longer: 2 * time.Second}},
		"an activity that ignores it":    {Job: job{Takes: 20 * time.Second, Ignores: true}},
		"one that waits for its attempt": {FailsUntil: 100, Every: time.Hour},
		"a child":                        {Child: true, Job: job{Takes: time.Hour, Longer: 2 * time.Second}},
		"a failure beside it":            {Fails: true, Job: job{Takes: time.Hour, Longer: 2 * time.Second}},
	} {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", after=", after), func(t *testing.T) {
				t.Parallel()
				for n := int64(1); ; n += shortrun.Step(crashStep) {
					intercept, calls := simhub.CrashAt(n, after)
					undoing(t, simhub.Options{Intercept: intercept, Environments: 2, WorkVisibility: time.Minute}, func(_ context.Context, s *sagas) {
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

// wantInOrder fails unless what was done is undone after it has ended: an undo may be run again, by a process after one that died.
func (s *sagas) wantInOrder(in provider.Instance, d deed, when string) {
	s.t.Helper()
	end, err := s.Provider.ReadTerminalEvent(s.t.Context(), in.ExecutionID)
	if want := map[bool]history.Kind{false: history.OrchestrationCancelled, true: history.OrchestrationFailed}[d.Fails]; err != nil || end.Kind != want {
		s.t.Errorf("%s: it ended with %s, %v", when, end.String(), err)
	}
	undone, ended, least := s.seen(&s.undone), s.seen(&s.ended), 1
	if d.Child {
		least = 2
	}
	if len(undone) < least || len(undone) > least+1 {
		s.t.Errorf("%s: undone %d times", when, len(undone))
	}
	if n := len(ended); n > 0 && len(undone) > 0 && !d.Job.Ignores && undone[0].Before(ended[n-1]) {
		s.t.Errorf("%s: undone %v before the end", when, ended[n-1].Sub(undone[0]))
	}
	if err := s.CheckRest(s.t.Context()); err != nil {
		s.t.Errorf("%s: %v", when, err)
	}
}

// A child that is not there, or over, is no reason to wait for ever.
func TestAnUndoOfAChildThatIsNotThere(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before bool // the cancel is decided before the child's start is delivered
		taken  bool // the child's id is another's
	}{
		"the cancel is as soon as the start": {before: true},
		"its id is another's":                {taken: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &sagas{}
			r := s.registry()
			perdure.AddOrchestration(r, "mother", func(ctx *perdure.OrchestrationContext, _ int) (string, error) {
				f := perdure.CallSubOrchestrationByName[string](ctx, "saga", deed{Job: job{Takes: time.Minute}}, perdure.WithInstanceID("kid"), perdure.WaitForCancellation())
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
				if out := string(end.Output); err != nil || out != `"requested, over"` && (!c.taken || !strings.Contains(out, "already_exists")) {
					t.Errorf("ended with %s %s, %v", end.String(), out, err)
				}
			})
		})
	}
}

// listening is an orchestration that waits for an activity whose end it wants to hear, and tells how it ended. What is broken parts from
// its history.
func (s *sagas) listening(broken bool) *perdure.Registry {
	r := s.registry()
	perdure.AddOrchestration(r, "listens", func(ctx *perdure.OrchestrationContext, d deed) (string, error) {
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

// cancelActivity asks for the activity #3 alone to be cancelled.
func (s *sagas) cancelActivity(in provider.Instance) {
	s.t.Helper()
	s.send(provider.Message{Kind: provider.MessageCancelActivity, InstanceID: in.InstanceID, ActivityID: 3, Text: "no"})
}

// A client cancels the activity alone, by its id, twice: its orchestration hears when it has ended, and goes on.
func TestACancelByAClientIsWaitedFor(t *testing.T) {
	t.Parallel()
	s := &sagas{}
	inBubble(t, simhub.Options{Registry: s.listening(false)}, func(_ context.Context, h *hub) {
		s.hub = h
		in := h.startAs("a", "listens", deed{Job: job{Takes: time.Hour, Longer: 6 * time.Second}})
		s.meanwhile(time.Hour, func() {
			time.Sleep(10 * time.Second)
			s.cancelActivity(in)
			time.Sleep(2 * time.Second)
			s.cancelActivity(in)
		})
		h.wantOutput(in, `"requested, returned"`)
		if ended := s.seen(&s.ended); len(ended) != 1 || h.read(in).UpdatedAt.Before(ended[0]) {
			t.Errorf("it ended at %v, and the instance at %v", ended, h.read(in).UpdatedAt)
		}
		h.checkRest()
	})
}

// A blocked instance takes what comes when it is mended: the cancel, and the end, of what ran or what waited for its next attempt.
func TestABlockedInstanceHearsOfTheEndWhenItIsMended(t *testing.T) {
	t.Parallel()
	for name, d := range map[string]deed{
		"of what runs":                    {Job: job{Takes: 2 * time.Minute}},
		"of what waits for its attempt":   {FailsUntil: 100, Every: time.Hour},
		"of what fails while it is there": {FailsUntil: 100, Every: 30 * time.Second},
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
					t.Fatalf("it is %s", now.Status)
				}
				mended := h.orchestrator(s.listening(false), "mended")
				h.send(provider.Message{Kind: provider.MessageWake, InstanceID: in.InstanceID, ExecutionID: in.ExecutionID})
				for range 5 {
					h.give(mended)
					time.Sleep(time.Minute)
				}
				h.wantOutput(in, `"requested, returned"`)
			})
		})
	}
}
