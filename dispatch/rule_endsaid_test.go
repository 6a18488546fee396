package dispatch_test

import (
	"context"
	"log/slog"
	"maps"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo"
)

// What is said of how an activity ended whose end is waited for: never_began where no code of it has run, returned where none runs any more.

// limited is an orchestration that waits for an activity whose attempts have three seconds each, and tells how it ended.
func (s *sagas) limited() *perdure.Registry {
	r := s.registry()
	perdure.AddOrchestration(r, "limited", func(ctx *perdure.OrchestrationContext, d deed) (string, error) {
		opts := []perdure.ActivityCallOption{perdure.WaitForCancellation(), perdure.WithStartToCloseTimeout(3 * time.Second)}
		if d.Every > 0 {
			opts = append(opts, perdure.WithRetry(perdure.RetryPolicy{InitialInterval: d.Every, BackoffCoefficient: 1}))
		}
		if d.Close > 0 {
			opts = append(opts, perdure.WithScheduleToCloseTimeout(d.Close))
		}
		_, err := perdure.CallActivityByName[string](ctx, "do", d, opts...).Await(ctx)
		return endOf(err), nil
	})
	return r
}

// withoutQueues is an orchestrator of a deployment that has no work queues any more.
func (s *sagas) withoutQueues(r *perdure.Registry) *dispatch.Orchestrator {
	s.t.Helper()
	where := s.Provider.Config()
	where.WorkQueues = map[string]string{}
	where.DeadLetters = maps.Clone(where.DeadLetters)
	delete(where.DeadLetters, perdure.DefaultQueue)
	p, err := dynamo.New(where, dynamo.Clients{Table: s.Cloud.Table, Queues: s.Cloud.Queues, Schedules: s.Cloud.Schedules})
	if err != nil {
		s.t.Fatal(err)
	}
	o := must(dispatch.NewOrchestrator(r, p, &dispatch.OrchestratorOptions{Logger: slog.New(slog.DiscardHandler)}))
	s.t.Cleanup(o.Close)
	return o
}

// wantWhy fails unless people are told that the activity #3 ended so.
func (s *sagas) wantWhy(in provider.Instance, want client.CancelOutcome) {
	s.t.Helper()
	got, err := client.Collect(client.New(s.Provider).Cancellations(s.t.Context(), in.InstanceID, ""))
	if err != nil || len(got) != 1 || got[0].End != want || got[0].EndedAt.IsZero() {
		s.t.Errorf("%+v, %v: want the end %s", got, err, want)
	}
}

// Interleaving: an activity is cancelled in the moment in which its next attempt is due, and that cannot be sent any more, since its queue was
// taken out of the stack. An attempt has run before: the activity has not never begun.
func TestWhatRanBeforeItsNextAttemptCouldNotBeSentIsNotSaidToHaveNeverBegun(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		job  deed
		ends string
		why  client.CancelOutcome
	}{
		"it had failed":        {deed{FailsUntil: 100, Every: time.Hour}, `"requested, returned"`, client.OutcomeStopped},
		"it had been given up": {deed{Job: stubborn, Every: time.Hour}, `"requested, given_up"`, client.OutcomeAbandoned},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &sagas{}
			inBubble(t, simhub.Options{Registry: s.limited()}, func(ctx context.Context, h *hub) {
				s.hub = h
				in := h.startAs("a", "limited", c.job)
				h.serveFor(10 * time.Second)
				due := time.Hour
				if c.job.Job.Ignores {
					due += 3 * time.Second // when it was given up
				}
				h.serveFor(due - 11*time.Second)
				s.cancelActivity(in)
				h.turn(0)
				later := s.withoutQueues(s.limited())
				for range 20 {
					time.Sleep(time.Second)
					h.Timekeeper.HandleRecords(ctx, h.receive(h.Provider.Config().TimersURL))
					h.give(later)
				}
				h.wantOutput(in, c.ends)
				s.wantWhy(in, c.why)
				time.Sleep(3 * time.Hour)
			})
		})
	}
}

// Interleaving: the message that led to an activity comes again, and meanwhile its queue was taken out of the stack. Nobody knows whether it has
// begun by then: it had.
func TestWhatWasSentBeforeItsQueueWentIsNotSaidToHaveNeverBegun(t *testing.T) {
	t.Parallel()
	s := &sagas{}
	inBubble(t, simhub.Options{Registry: s.listening(false)}, func(ctx context.Context, h *hub) {
		s.hub = h
		in := h.startAs("a", "listens", deed{Job: stubborn})
		undeleted := func() {
			records := h.receive(h.Provider.Config().InboxURL)
			if failed := h.Orchestrators[0].HandleRecords(ctx, records); len(failed) > 0 {
				t.Fatal(failed)
			}
			if err := h.Provider.AbandonRecords(ctx, provider.QueueInbox, 0, records...); err != nil {
				t.Fatal(err)
			}
		}
		undeleted()
		go s.worker().HandleRecords(ctx, h.receive("sim://default"))
		time.Sleep(5 * time.Second)
		s.cancelActivity(in)
		undeleted()
		h.give(s.withoutQueues(s.listening(false)))
		if n := len(s.seen(&s.begun)); n != 1 {
			t.Fatalf("it began %d times", n)
		}
		h.wantOutput(in, `"requested, worker_gone"`)
		s.wantWhy(in, client.OutcomeWorkerLost)
		time.Sleep(3 * time.Hour)
	})
}

// An attempt is delivered when the schedule-to-close time of its activity is over already; the one before it did not heed the end of its own time,
// and may still run.
func TestWhatWasGivenUpBeforeItsTimeWasOverIsNotSaidToHaveReturned(t *testing.T) {
	t.Parallel()
	s := &sagas{}
	inBubble(t, simhub.Options{Registry: s.limited()}, func(ctx context.Context, h *hub) {
		s.hub = h
		const closes = 5 * time.Minute
		in := h.startAs("a", "limited", deed{Job: stubborn, Every: time.Minute, Close: closes})
		h.turn(0)
		s.worker().HandleRecords(ctx, h.receive("sim://default"))
		h.turn(0)
		time.Sleep(closes - 3*time.Second - 3*time.Second)
		second := h.receive("sim://default")
		time.Sleep(3*time.Second + 500*time.Millisecond)
		s.cancelActivity(in) // lies in the inbox
		s.worker().HandleRecords(ctx, second)
		h.turn(0)
		h.wantOutput(in, `"requested, given_up"`)
		s.wantWhy(in, client.OutcomeAbandoned)
		time.Sleep(3 * time.Hour)
	})
}

// The second attempt of an activity returns, whatever it comes to, when that is cancelled; the first did not heed the end of its time, and may still run.
func TestWhatWasGivenUpMayStillRunWhateverTheNextAttemptComesTo(t *testing.T) {
	t.Parallel()
	for name, later := range map[string]job{
		"a result":                   {Takes: time.Hour},
		"an error":                   {Takes: time.Hour, Fails: true},
		"a result before it is told": {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &sagas{}
			r := s.limited()
			perdure.AddActivity(r, "do-or", func(ctx context.Context, d deed) (string, error) {
				if perdure.ActivityInfoFrom(ctx).Attempt > 1 {
					d.Job = later
				}
				return s.do(ctx, d)
			})
			perdure.AddOrchestration(r, "twice", func(ctx *perdure.OrchestrationContext, d deed) (string, error) {
				_, err := perdure.CallActivityByName[string](ctx, "do-or", d, perdure.WaitForCancellation(), perdure.WithStartToCloseTimeout(3*time.Second),
					perdure.WithRetry(perdure.RetryPolicy{InitialInterval: time.Minute, BackoffCoefficient: 1})).Await(ctx)
				return endOf(err), nil
			})
			inBubble(t, simhub.Options{Registry: r}, func(ctx context.Context, h *hub) {
				s.hub = h
				in := h.startAs("a", "twice", deed{Job: stubborn})
				h.turn(0)
				w := must(dispatch.NewWorker(r, h.Provider, &dispatch.WorkerOptions{Logger: slog.New(slog.DiscardHandler)}))
				w.HandleRecords(ctx, h.receive("sim://default"))
				h.turn(0)
				time.Sleep(time.Minute)
				second := make(chan []string)
				records := h.receive("sim://default")
				if len(records) != 1 {
					t.Fatalf("%d records", len(records))
				}
				if later.Takes == 0 {
					s.cancelActivity(in) // lies in the inbox
				}
				go func() { second <- w.HandleRecords(ctx, records) }()
				time.Sleep(time.Second)
				if later.Takes > 0 {
					s.cancelActivity(in)
					h.turn(0)
				}
				<-second
				h.turn(0)
				h.wantOutput(in, `"requested, given_up"`)
				time.Sleep(3 * time.Hour)
			})
		})
	}
}
