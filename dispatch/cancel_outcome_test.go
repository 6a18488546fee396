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

// These tests check the reported end of a cancelled activity with WaitForCancellation. It is never_began if no code has
// run, and returned if all code has returned.

// limited returns an orchestration that waits for an activity with a timeout of three seconds per attempt, and returns
// the end of the activity.
func (s *sagas) limited() *perdure.Registry {
	r := s.registry()
	perdure.AddOrchestration(r, "limited", func(ctx *perdure.OrchestrationContext, d spec) (string, error) {
		opts := []perdure.ActivityCallOption{
			perdure.WaitForCancellation(), perdure.WithStartToCloseTimeout(3 * time.Second),
		}
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

// withoutQueues returns an orchestrator of a deployment without work queues.
func (s *sagas) withoutQueues(r *perdure.Registry) *dispatch.Orchestrator {
	s.t.Helper()
	where := s.Provider.Config()
	where.WorkQueues = map[string]string{}
	where.DeadLetters = maps.Clone(where.DeadLetters)
	delete(where.DeadLetters, perdure.DefaultQueue)
	p, err := dynamo.New(where, dynamo.Clients{
		Table: s.Cloud.Table, Queues: s.Cloud.Queues, Schedules: s.Cloud.Schedules,
	})
	if err != nil {
		s.t.Fatal(err)
	}
	o := must(dispatch.NewOrchestrator(r, p, &dispatch.OrchestratorOptions{Logger: slog.New(slog.DiscardHandler)}))
	s.t.Cleanup(o.Close)
	return o
}

// wantCancelOutcome fails the test unless the client reports the outcome want for the only cancelled activity.
func (s *sagas) wantCancelOutcome(in provider.Instance, want client.CancelOutcome) {
	s.t.Helper()
	got, err := client.Collect(client.New(s.Provider).Cancellations(s.t.Context(), in.InstanceID, ""))
	if err != nil || len(got) != 1 || got[0].End != want || got[0].EndedAt.IsZero() {
		s.t.Errorf("got cancellations %+v, %v, want one with outcome %s", got, err, want)
	}
}

// 1. An attempt of an activity has run, and the next attempt is due.
// 2. Its queue is removed from the stack, so the next attempt cannot be sent.
// 3. The activity is cancelled. Its end is not never_began, because an attempt has run.
func TestCancelOutcome_nextAttemptCannotBeSent_isNotNeverStarted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		job  spec
		ends string
		why  client.CancelOutcome
	}{
		"failed attempt": {spec{FailsUntil: 100, Every: time.Hour}, `"requested, returned"`, client.OutcomeStopped},
		"abandoned attempt": {
			spec{Job: ignoresCancel, Every: time.Hour}, `"requested, given_up"`, client.OutcomeAbandoned,
		},
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
					due += 3 * time.Second // when the attempt was abandoned
				}
				h.serveFor(due - 11*time.Second)
				s.cancelActivity(in)
				h.turn(0)
				later := s.withoutQueues(s.limited())
				for range 20 {
					time.Sleep(time.Second)
					h.Renewer.HandleRecords(ctx, h.receive(h.Provider.Config().TimersURL))
					h.passRecords(later)
				}
				h.wantOutput(in, c.ends)
				s.wantCancelOutcome(in, c.why)
				time.Sleep(3 * time.Hour)
			})
		})
	}
}

// 1. An activity runs.
// 2. The message that scheduled the activity is redelivered, after its queue was removed from the stack.
// 3. The activity is cancelled. Its end is not never_began, because the code may have run.
func TestCancelOutcome_queueIsRemoved_isNotNeverStarted(t *testing.T) {
	t.Parallel()
	s := &sagas{}
	inBubble(t, simhub.Options{Registry: s.listening(false)}, func(ctx context.Context, h *hub) {
		s.hub = h
		in := h.startAs("a", "listens", spec{Job: ignoresCancel})
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
		h.passRecords(s.withoutQueues(s.listening(false)))
		if n := len(s.seen(&s.begun)); n != 1 {
			t.Fatalf("got %d runs, want 1", n)
		}
		h.wantOutput(in, `"requested, worker_gone"`)
		s.wantCancelOutcome(in, client.OutcomeWorkerLost)
		time.Sleep(3 * time.Hour)
	})
}

// An attempt is delivered after the schedule-to-close timeout of its activity. The previous attempt ignored its own
// timeout, so its code may still run, and the end is not returned.
func TestCancelOutcome_attemptIsDeliveredTooLate_isGivenUp(t *testing.T) {
	t.Parallel()
	s := &sagas{}
	inBubble(t, simhub.Options{Registry: s.limited()}, func(ctx context.Context, h *hub) {
		s.hub = h
		const closes = 5 * time.Minute
		in := h.startAs("a", "limited", spec{Job: ignoresCancel, Every: time.Minute, Close: closes})
		h.turn(0)
		s.worker().HandleRecords(ctx, h.receive("sim://default"))
		h.turn(0)
		time.Sleep(closes - 3*time.Second - 3*time.Second)
		second := h.receive("sim://default")
		time.Sleep(3*time.Second + 500*time.Millisecond)
		s.cancelActivity(in) // the message waits in the inbox
		s.worker().HandleRecords(ctx, second)
		h.turn(0)
		h.wantOutput(in, `"requested, given_up"`)
		s.wantCancelOutcome(in, client.OutcomeAbandoned)
		time.Sleep(3 * time.Hour)
	})
}

// The second attempt of a cancelled activity returns. The first attempt ignored its timeout, so its code may still run.
func TestCancelOutcome_nextAttemptReturns_isGivenUp(t *testing.T) {
	t.Parallel()
	for name, later := range map[string]job{
		"result":                         {Takes: time.Hour},
		"error":                          {Takes: time.Hour, Fails: true},
		"result before the cancellation": {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &sagas{}
			r := s.limited()
			perdure.AddActivity(r, "do-or", func(ctx context.Context, d spec) (string, error) {
				if perdure.ActivityInfoFrom(ctx).Attempt > 1 {
					d.Job = later
				}
				return s.do(ctx, d)
			})
			perdure.AddOrchestration(r, "twice", func(ctx *perdure.OrchestrationContext, d spec) (string, error) {
				retry := perdure.RetryPolicy{InitialInterval: time.Minute, BackoffCoefficient: 1}
				_, err := perdure.CallActivityByName[string](ctx, "do-or", d, perdure.WaitForCancellation(),
					perdure.WithStartToCloseTimeout(3*time.Second), perdure.WithRetry(retry)).Await(ctx)
				return endOf(err), nil
			})
			inBubble(t, simhub.Options{Registry: r}, func(ctx context.Context, h *hub) {
				s.hub = h
				in := h.startAs("a", "twice", spec{Job: ignoresCancel})
				h.turn(0)
				w := must(dispatch.NewWorker(r, h.Provider,
					&dispatch.WorkerOptions{Logger: slog.New(slog.DiscardHandler)}))
				w.HandleRecords(ctx, h.receive("sim://default"))
				h.turn(0)
				time.Sleep(time.Minute)
				second := make(chan []string)
				records := h.receive("sim://default")
				if len(records) != 1 {
					t.Fatalf("got %d records, want 1", len(records))
				}
				if later.Takes == 0 {
					s.cancelActivity(in) // the message waits in the inbox
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
