package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo"
)

// retryInput is the input of an activity that fails until an attempt, and its retry policy.
type retryInput struct {
	SucceedsAt int           // attempt that succeeds; 0 means none
	Every      time.Duration // interval between attempts
	Most       int           // maximum number of attempts; 0 means no limit
	Takes      time.Duration // duration of an attempt
}

func (s retryInput) policy() perdure.CallOption {
	return perdure.WithRetry(perdure.RetryPolicy{
		InitialInterval: s.Every, MaxInterval: s.Every, BackoffCoefficient: 1, MaxAttempts: s.Most,
	})
}

// retryHub is a hub that records the attempts of its activity "try".
type retryHub struct {
	*hub

	mu   sync.Mutex
	runs []run
}

// run is one run of an activity's code.
type run struct {
	instance string
	activity int64
	attempt  int
	at       time.Time
}

func (r run) String() string { return fmt.Sprintf("%s#%d.%d", r.instance, r.activity, r.attempt) }

func (tr *retryHub) note(ctx context.Context) int {
	a := perdure.ActivityInfoFrom(ctx)
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.runs = append(tr.runs, run{a.InstanceID, a.ActivityID, a.Attempt, time.Now()})
	return a.Attempt
}

// ran returns the runs so far.
func (tr *retryHub) ran() []run {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return append([]run(nil), tr.runs...)
}

// wantRuns fails the test unless exactly the given runs happened, in order.
func (tr *retryHub) wantRuns(want ...string) {
	tr.t.Helper()
	if got := fmt.Sprint(tr.ran()); got != fmt.Sprint(want) {
		tr.t.Errorf("got runs %s, want %s", got, want)
	}
}

// withRetryHub runs a test on a hub with the activity "try", which is activity 3 of the orchestration "tries".
func withRetryHub(t *testing.T, o simhub.Options, test func(ctx context.Context, tr *retryHub)) {
	t.Helper()
	tr := &retryHub{}
	r := registry()
	perdure.AddActivity(r, "try", func(ctx context.Context, s retryInput) (int, error) {
		n := tr.note(ctx)
		time.Sleep(s.Takes)
		if s.SucceedsAt == 0 || n < s.SucceedsAt {
			return 0, fmt.Errorf("attempt %d", n)
		}
		return n, nil
	})
	perdure.AddOrchestration(r, "tries", func(ctx *perdure.OrchestrationContext, s retryInput) (int, error) {
		return perdure.CallActivityByName[int](ctx, "try", s, s.policy()).Await(ctx)
	})
	perdure.AddOrchestration(r, "tries-until", func(ctx *perdure.OrchestrationContext, s retryInput) (int, error) {
		_, err := perdure.Select(ctx, perdure.CallActivityByName[int](ctx, "try", s, s.policy()),
			perdure.WaitForExternalEvent[int](ctx, "add"))
		return len(tr.ran()), err
	})
	perdure.AddOrchestration(r, "tries-in-time", func(ctx *perdure.OrchestrationContext, s retryInput) (int, error) {
		return perdure.CallActivityByName[int](ctx, "try", s, s.policy(),
			perdure.WithScheduleToCloseTimeout(3*s.Every+s.Every/2)).Await(ctx)
	})
	perdure.AddOrchestration(r, "retry-then-new", func(ctx *perdure.OrchestrationContext, s retryInput) (int, error) {
		if _, err := perdure.Select(ctx, perdure.CallActivityByName[int](ctx, "try", s, s.policy()),
			perdure.WaitForExternalEvent[int](ctx, "add")); err != nil {
			return 0, err
		}
		if s.Most > 0 { // the second execution
			return s.Most, nil
		}
		s.Most, s.SucceedsAt = 1, 1
		return perdure.ContinueAsNew[int](ctx, s)
	})
	o.Registry = r
	inBubble(t, o, func(ctx context.Context, h *hub) {
		tr.hub = h
		test(ctx, tr)
	})
}

// retryOf returns the retry state of activity 3.
func (h *hub) retryOf(in provider.Instance) provider.ActivityRetry {
	h.t.Helper()
	r, err := h.Provider.ReadRetry(h.t.Context(), in.ExecutionID, 3)
	if err != nil {
		h.t.Fatal(err)
	}
	return r
}

// Interleaving: SQS delivers an attempt twice, and both runs fail. One of the two failures causes the next attempt.
func TestR14_attemptsAreDeliveredTwice_oneFailureCausesTheNextAttempt(t *testing.T) {
	t.Parallel()
	const instances, attempts = 40, 6
	for seed := range uint64(5) {
		withRetryHub(t, simhub.Options{}, func(ctx context.Context, tr *retryHub) {
			tr.Cloud.Queues.Disorder("sim://default", simaws.Disorder{Seed: seed, Duplicate: 0.02, Reorder: true})
			var all []provider.Instance
			for i := range instances {
				all = append(all, tr.startAs(fmt.Sprint("i", i), "tries", retryInput{
					SucceedsAt: attempts, Every: time.Minute, Takes: time.Second,
				}))
			}
			tr.serveFor(24 * time.Hour)
			for _, in := range all {
				tr.wantOutput(in, fmt.Sprint(attempts))
			}
			n := len(tr.ran())
			t.Logf("seed %d: %d runs, %d without duplicates", seed, n, instances*attempts)
			if n < instances*attempts || n > instances*attempts*103/100 {
				t.Errorf("seed %d: got %d runs, want %d and at most 3%% more", seed, n, instances*attempts)
			}
			tr.checkIdle()
		})
	}
}

// Deletes fail for a minute, so SQS redelivers processed outcomes and work items.
func TestR14_deletesFailForAMinute_retriesContinue(t *testing.T) {
	t.Parallel()
	const instances, attempts = 40, 20
	withRetryHub(t, simhub.Options{}, func(_ context.Context, tr *retryHub) {
		began := time.Now()
		from, to := began.Add(3*time.Minute), began.Add(4*time.Minute)
		var refused atomic.Int64
		tr.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
			if now := time.Now(); c.Operation == "DeleteMessageBatch" && now.After(from) && now.Before(to) {
				refused.Add(1)
				return errors.New("refused")
			}
			return next()
		})
		var all []provider.Instance
		for i := range instances {
			all = append(all, tr.startAs(fmt.Sprint("i", i), "tries", retryInput{
				SucceedsAt: attempts, Every: 30 * time.Second, Takes: time.Second,
			}))
		}
		tr.serveFor(24 * time.Hour)
		for _, in := range all {
			tr.wantOutput(in, fmt.Sprint(attempts))
		}
		twice := map[string]int{}
		for _, r := range tr.ran() {
			if twice[r.String()]++; twice[r.String()] > 1 && r.at.After(to.Add(time.Minute)) {
				t.Errorf("%s ran %d times, the last time at %v", r, twice[r.String()], r.at.Sub(began))
			}
		}
		t.Logf("%d runs, %d without the minute, in which %d deletes failed",
			len(tr.ran()), instances*attempts, refused.Load())
		if refused.Load() == 0 {
			t.Error("got no failed deletes")
		}
		tr.checkIdle()
	})
}

// endings returns the ways in which activity 3 ends while it waits for its next attempt.
func endings() map[string]func(tr *retryHub, in provider.Instance) {
	return map[string]func(tr *retryHub, in provider.Instance){
		"a cancelled activity": func(tr *retryHub, in provider.Instance) {
			tr.send(provider.Message{Kind: provider.MessageCancelActivity, InstanceID: in.InstanceID, ActivityID: 3})
		},
		"a lost race": func(tr *retryHub, in provider.Instance) { tr.raise(in, "", 1) },
		"a cancelled instance": func(tr *retryHub, in provider.Instance) {
			tr.send(provider.Message{
				Kind: provider.MessageCancel, InstanceID: in.InstanceID, Reason: "requested",
				RequestedBy: history.RequestedByClient,
			})
		},
		"a terminated instance": func(tr *retryHub, in provider.Instance) {
			tr.send(provider.Message{Kind: provider.MessageTerminate, InstanceID: in.InstanceID})
		},
		"a purged instance": func(tr *retryHub, in provider.Instance) {
			if err := tr.Provider.DeleteInstance(tr.t.Context(), in.InstanceID, true); err != nil {
				tr.t.Error(err)
			}
		},
	}
}

// An unlimited retry ends with its instance or its activity, without further work.
func TestR14_activityEnds_unlimitedRetryEnds(t *testing.T) {
	t.Parallel()
	endless := retryInput{Every: time.Minute}
	for name, end := range endings() {
		for _, wait := range []time.Duration{time.Minute, time.Hour} { // by a message delay, and by a timer
			t.Run(fmt.Sprint(name, " that waits for ", wait), func(t *testing.T) {
				t.Parallel()
				withRetryHub(t, simhub.Options{}, func(_ context.Context, tr *retryHub) {
					s := endless
					s.Every = wait
					in := tr.startAs("a", "tries-until", s)
					tr.serveFor(3*wait + wait/2)
					end(tr, in)
					tr.serveFor(24 * time.Hour)
					tr.wantRuns("a#3.1", "a#3.2", "a#3.3", "a#3.4")
					tr.checkIdle()
					if name == "a purged instance" {
						tr.wantItemsExpire(in.ExecutionID)
					}
				})
			})
		}
	}
}

// Intervals beyond the maximum message delay are exact, by schedules and by requeued timers.
func TestR14_longIntervals_areExact(t *testing.T) {
	t.Parallel()
	for _, timers := range []string{dynamo.TimersSchedules, dynamo.TimersRequeue} {
		for _, every := range []time.Duration{14 * time.Minute, time.Hour, 26 * time.Hour} {
			t.Run(fmt.Sprint(timers, every), func(t *testing.T) {
				t.Parallel()
				withRetryHub(t, simhub.Options{Timers: timers}, func(_ context.Context, tr *retryHub) {
					in := tr.startAs("a", "tries", retryInput{SucceedsAt: 4, Every: every})
					tr.serveFor(every + every/2)
					if r := tr.retryOf(in); r.Attempt != 3 || r.At.Sub(in.CreatedAt)-2*every > time.Second ||
						r.Error.Message != "attempt 2" {
						t.Errorf("between attempts: got retry state %+v", r)
					}
					tr.serveFor(5 * every)
					tr.wantRuns("a#3.1", "a#3.2", "a#3.3", "a#3.4")
					tr.wantOutput(in, "4")
					for i, r := range tr.ran() {
						if late := r.at.Sub(in.CreatedAt) - time.Duration(i)*every; late < 0 || late > time.Second {
							t.Errorf("attempt %d was late by %v", i+1, late)
						}
					}
					tr.checkIdle()
				})
			})
		}
	}
}

// A thousand failures add no turn, segment or event to a history.
func TestR14_failures_doNotGrowHistory(t *testing.T) {
	t.Parallel()
	withRetryHub(t, simhub.Options{}, func(_ context.Context, tr *retryHub) {
		in := tr.startAs("a", "tries", retryInput{SucceedsAt: 1001, Every: 5 * time.Second})
		tr.serveFor(4998 * time.Second)
		before := tr.events(in)
		if n := len(tr.ran()); n != 1000 || len(before) != 3 {
			t.Errorf("got %d runs, history %v", n, before)
		}
		tr.serveFor(time.Minute)
		events := tr.events(in)
		if last := events[len(events)-2]; len(events) != 6 || last.Attempt != 1001 ||
			last.Kind != history.ActivityCompleted {
			t.Errorf("got history %v", events)
		}
		tr.checkIdle()
	})
}

// A failure costs a cached instance one transaction and one send. The segment that scheduled the activity is read once
// per thousand.
func TestR14_retry_costsOneTransactionAndOneSend(t *testing.T) {
	t.Parallel()
	withRetryHub(t, simhub.Options{}, func(_ context.Context, tr *retryHub) {
		tr.startAs("a", "tries", retryInput{SucceedsAt: 1000, Every: 5 * time.Second})
		tr.serveFor(12 * time.Second) // three runs, the last of which has failed
		tr.Cloud.ResetCounts()
		tr.serveFor(100 * 5 * time.Second)
		c := tr.Cloud.Counts()
		t.Logf("100 failures: %v, %+v", c, tr.Cloud.Capacity())
		if c["DynamoDB.TransactWriteItems"] != 100 || c["SQS.SendMessageBatch"] != 200 ||
			c["DynamoDB.PutItem"]+c["DynamoDB.UpdateItem"] != 0 {
			t.Errorf("100 failures: got calls %v", c)
		}
		// The worker reads the cancel record, the end, the current attempt, and the heartbeat details.
		if c["DynamoDB.GetItem"] != 200 || c["DynamoDB.Query"] != 200 {
			t.Errorf("100 failures: got calls %v", c)
		}
	})
}

// failed returns a failed outcome in the form in which a worker sends it.
func failed(id int64, attempt int, run string, retryAt time.Time) provider.ActivityOutcome {
	o := provider.ActivityOutcome{
		ActivityID: id, Attempt: attempt, Run: run, Segment: 1, Error: &history.Failure{Type: "E", Message: run},
	}
	if !retryAt.IsZero() {
		o.RetryAt = &retryAt
	}
	return o
}

// sendOutcomes sends outcomes of an instance in one message, and runs the orchestrator.
func (tr *retryHub) sendOutcomes(in provider.Instance, outcomes ...provider.ActivityOutcome) {
	tr.t.Helper()
	tr.send(provider.Message{
		Kind: provider.MessageActivityAttempts, InstanceID: in.InstanceID, ExecutionID: in.ExecutionID, Segment: 1,
		Outcomes: outcomes,
	})
	if failed := tr.turn(0); len(failed) > 0 {
		tr.t.Errorf("got failed records %v", failed)
	}
}

// wantSent fails the test unless exactly the given attempts are in the work queue, and deletes them.
func (tr *retryHub) wantSent(want ...int) {
	tr.t.Helper()
	got := []int{}
	for _, it := range tr.workItems() {
		got = append(got, it.Attempt)
		_ = tr.Provider.DeleteRecords(tr.t.Context(), "default", it.Record)
	}
	if fmt.Sprint(got) != fmt.Sprint(append([]int{}, want...)) {
		tr.t.Errorf("got attempts %v in the queue, want %v", got, want)
	}
}

// withoutWorker runs a test on the instance "a", whose outcomes only the test sends.
func withoutWorker(t *testing.T, test func(ctx context.Context, tr *retryHub, in provider.Instance, now time.Time)) {
	t.Helper()
	withRetryHub(t, simhub.Options{Environments: 2}, func(ctx context.Context, tr *retryHub) {
		in := tr.startAs("a", "tries", retryInput{Every: time.Minute})
		tr.turn(0)
		tr.wantSent(1)
		test(ctx, tr, in, time.Now().UTC())
	})
}

// Only the first failure of the current attempt counts. A repeated failure resends the same attempt, unless it was
// certainly sent.
func TestR14_severalFailures_onlyFirstOfCurrentAttemptCounts(t *testing.T) {
	t.Parallel()
	none := time.Time{}
	t.Run("one of two runs of an attempt", func(t *testing.T) {
		t.Parallel()
		withoutWorker(t, func(_ context.Context, tr *retryHub, in provider.Instance, now time.Time) {
			tr.sendOutcomes(in, failed(3, 1, "r.1", now), failed(3, 1, "r.2", now.Add(time.Hour)))
			tr.wantSent(2)
			tr.sendOutcomes(in, failed(3, 1, "r.2", now))
			tr.wantSent()
			if r := tr.retryOf(in); r.Attempt != 2 || r.Run != "r.1" || r.Error.Message != "r.1" {
				t.Errorf("got retry state %+v, want attempt 2 after r.1", r)
			}
		})
	})
	t.Run("last failure of an earlier attempt does not count", func(t *testing.T) {
		t.Parallel()
		withoutWorker(t, func(_ context.Context, tr *retryHub, in provider.Instance, now time.Time) {
			tr.sendOutcomes(in, failed(3, 1, "r.1", now))
			tr.sendOutcomes(in, failed(3, 1, "r.2", none))
			if events := tr.events(in); len(events) != 3 {
				t.Errorf("got history %v", events)
			}
			tr.sendOutcomes(in, failed(3, 2, "s.1", none))
			if events := tr.events(in); events[len(events)-1].Kind != history.OrchestrationFailed ||
				events[len(events)-2].Attempt != 2 {
				t.Errorf("got history %v", events)
			}
		})
	})
	t.Run("no retry after the last attempt in a message", func(t *testing.T) {
		t.Parallel()
		withoutWorker(t, func(_ context.Context, tr *retryHub, in provider.Instance, now time.Time) {
			tr.sendOutcomes(in, failed(3, 1, "r.1", none), failed(3, 1, "r.2", now))
			tr.wantSent()
			if events := tr.events(in); events[len(events)-1].Kind != history.OrchestrationFailed {
				t.Errorf("got history %v", events)
			}
		})
	})
	t.Run("a success of any attempt settles", func(t *testing.T) {
		t.Parallel()
		withoutWorker(t, func(_ context.Context, tr *retryHub, in provider.Instance, now time.Time) {
			tr.sendOutcomes(in, failed(3, 1, "r.1", now))
			tr.complete(in, 1, 3) // completes attempt 1
			tr.turn(0)
			if events := tr.events(in); events[len(events)-1].Kind != history.OrchestrationCompleted {
				t.Errorf("got history %v", events)
			}
		})
	})
	t.Run("no retry after a success of the same batch", func(t *testing.T) {
		t.Parallel()
		withoutWorker(t, func(_ context.Context, tr *retryHub, in provider.Instance, now time.Time) {
			tr.complete(in, 1, 3)
			tr.sendOutcomes(in, failed(3, 1, "r.1", now))
			tr.wantSent()
			if events := tr.events(in); events[len(events)-1].Kind != history.OrchestrationCompleted {
				t.Errorf("got history %v", events)
			}
		})
	})
	t.Run("an attempt that an earlier release has sent", func(t *testing.T) {
		t.Parallel()
		withoutWorker(t, func(_ context.Context, tr *retryHub, in provider.Instance, now time.Time) {
			tr.sendOutcomes(in, failed(3, 7, "r.1", now))
			tr.wantSent(8)
		})
	})
}

// Interleavings: the process crashes after it has stored the next attempt and before it sends it. SQS redelivers the
// message to the same or another environment, or the sweeper recovers it from the dead letters as another message. The
// same attempt is sent with its original due time.
func TestR14_failureRedelivered_sendsTheSameAttempt(t *testing.T) {
	t.Parallel()
	for _, env := range []int{0, 1} {
		for _, how := range []string{"redelivered", "recovered"} {
			t.Run(fmt.Sprint(how, " to ", env), func(t *testing.T) {
				t.Parallel()
				withoutWorker(t, func(_ context.Context, tr *retryHub, in provider.Instance, now time.Time) {
					refuse := true
					tr.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
						if send, ok := c.Input.(*sqs.SendMessageBatchInput); ok && refuse &&
							*send.QueueUrl == "sim://default" {
							return errors.New("refused")
						}
						return next()
					})
					at := now.Add(10 * time.Second)
					m := provider.Message{
						Kind: provider.MessageActivityAttempts, InstanceID: "a", ExecutionID: in.ExecutionID,
						Segment: 1, Outcomes: []provider.ActivityOutcome{failed(3, 1, "r.1", at)},
					}
					tr.send(m)
					if failed := tr.turn(0); len(failed) != 1 || tr.retryOf(in).Attempt != 2 {
						t.Fatalf("got failed records %v, retry state %+v", failed, tr.retryOf(in))
					}
					refuse = false
					time.Sleep(3 * time.Second)
					if how == "recovered" {
						_ = tr.Provider.DeleteRecords(t.Context(), provider.QueueInbox,
							tr.receive("sim://inbox.fifo")...)
						time.Sleep(10 * time.Minute)
						tr.send(m)
					}
					if failed := tr.turn(env); len(failed) > 0 {
						t.Fatalf("got failed records %v", failed)
					}
					time.Sleep(10 * time.Second)
					items := tr.workItems()
					if len(items) != 1 || items[0].Attempt != 2 ||
						!items[0].NotBefore.Equal(at.Truncate(time.Millisecond)) {
						t.Errorf("got work items %+v, want attempt 2 when it was due", items)
					}
				})
			})
		}
	}
}

// A message that could not be deleted refers to an attempt that this process has sent. The process sends no copy.
func TestR14_failureRedeliveredToSameProcess_sendsNoCopy(t *testing.T) {
	t.Parallel()
	withoutWorker(t, func(_ context.Context, tr *retryHub, in provider.Instance, now time.Time) {
		for range 3 {
			tr.sendOutcomes(in, failed(3, 1, "r.1", now))
			time.Sleep(6 * time.Minute) // beyond the deduplication interval of SQS
		}
		tr.wantSent(2)
	})
}

// Interleaving: in a stale environment, the activity of a failure is still open. The condition of its write fails.
func TestR14_staleCache_retriesNothing(t *testing.T) {
	t.Parallel()
	withoutWorker(t, func(_ context.Context, tr *retryHub, in provider.Instance, now time.Time) {
		tr.complete(in, 1, 3)
		tr.turn(1) // environment 0 has a stale cache
		tr.sendOutcomes(in, failed(3, 1, "r.1", now))
		tr.wantSent()
		if r := tr.retryOf(in); r.Attempt != 0 {
			t.Errorf("got retry state %+v, want none", r)
		}
	})
}

// One message has outcomes of retried activities, a settled activity and an unknown activity. One turn processes all of
// them.
func TestR14_messageWithMixedOutcomes_handlesEach(t *testing.T) {
	t.Parallel()
	r := registry()
	perdure.AddOrchestration(r, "four", func(ctx *perdure.OrchestrationContext, _ int) (string, error) {
		policy := perdure.WithRetry(perdure.RetryPolicy{})
		var all []perdure.Awaitable
		for i := range 4 {
			all = append(all, perdure.CallActivityByName[int](ctx, "flaky", i, policy))
		}
		return "done", perdure.WhenAll(ctx, all...)
	})
	inBubble(t, simhub.Options{Registry: r}, func(_ context.Context, h *hub) {
		tr := &retryHub{hub: h}
		in := tr.startAs("a", "four", 0)
		tr.turn(0)
		tr.wantSent(1, 1, 1, 1)
		now := time.Now().UTC()
		outcomes := []provider.ActivityOutcome{
			failed(3, 1, "r.1", now),
			{ActivityID: 4, Attempt: 1, Result: history.Payload("1")},
			failed(5, 1, "s.1", now), failed(99, 1, "t.1", now),
		}
		tr.sendOutcomes(in, outcomes...)
		tr.wantSent(2, 2)
		if events := tr.events(in); len(events) != 8 || events[7].Kind != history.ActivityCompleted ||
			events[7].SourceEventID != 4 {
			t.Errorf("got history %v, want the completion of activity 4 last", events)
		}
	})
}

// The activities of an instance whose code is blocked are retried. A failure is not parked if another attempt follows.
func TestR14_blockedInstance_activitiesAreRetried(t *testing.T) {
	t.Parallel()
	withRetryHub(t, simhub.Options{}, func(ctx context.Context, tr *retryHub) {
		in := tr.startAs("a", "tries", retryInput{SucceedsAt: 6, Every: time.Hour})
		tr.turn(0)
		fixed := tr.Orchestrators[0]
		tr.Orchestrators[0] = tr.orchestrator(perdure.NewRegistry(), "without")
		tr.raise(in, "", 1)
		tr.serveFor(2*time.Hour + time.Minute)
		tr.wantRuns("a#3.1", "a#3.2", "a#3.3")
		if now := tr.read(in); now.Status != provider.StatusBlocked {
			t.Errorf("got status %s, want Blocked", now.Status)
		}
		tr.serveFor(4 * time.Hour) // the sixth attempt succeeds
		events := tr.events(in)
		parked := []history.Event{}
		for _, e := range events {
			parked = append(parked, e.Inputs...)
		}
		if len(parked) != 2 || parked[1].Kind != history.ActivityCompleted || parked[1].Attempt != 6 {
			t.Errorf("got parked inputs %v, want the event and the completion", parked)
		}
		time.Sleep(time.Second)
		if err := fixed.ReportBuild(ctx); err != nil {
			t.Fatal(err)
		}
		tr.Orchestrators[0] = fixed
		if _, err := tr.Renewer.Sweep(ctx); err != nil {
			t.Fatal(err)
		}
		tr.serveFor(time.Hour)
		tr.wantOutput(in, "6")
		tr.wantRuns("a#3.1", "a#3.2", "a#3.3", "a#3.4", "a#3.5", "a#3.6")
		tr.checkIdle()
	})
}

// A retry needs no code. In a build without the code, no failure is redelivered or parked, and the instance is not
// blocked.
func TestR14_buildWithoutCode_retriesContinue(t *testing.T) {
	t.Parallel()
	withoutWorker(t, func(_ context.Context, tr *retryHub, in provider.Instance, now time.Time) {
		without := tr.orchestrator(perdure.NewRegistry(), "without")
		for attempt := 1; attempt < 5; attempt++ {
			m := provider.Message{
				Kind: provider.MessageActivityAttempts, InstanceID: "a", ExecutionID: in.ExecutionID, Segment: 1,
			}
			m.Outcomes = append(m.Outcomes, failed(3, attempt, fmt.Sprint("r.", attempt), now),
				failed(3, attempt, fmt.Sprint("s.", attempt), now))
			tr.send(m)
			if failed := tr.passRecords(without); len(failed) > 0 {
				t.Fatalf("got failed records %v", failed)
			}
			tr.wantSent(attempt + 1)
		}
		if events := tr.events(in); len(events) != 3 || tr.read(in).Status != provider.StatusRunning {
			t.Errorf("got status %s, history %v", tr.read(in).Status, events)
		}
	})
}

// A waiting attempt and the schedule-to-close timeout are both schedules and messages of one activity.
func TestR14_waitingAttemptAndScheduleToClose_haveSeparateTimers(t *testing.T) {
	t.Parallel()
	for _, timers := range []string{dynamo.TimersSchedules, dynamo.TimersRequeue} {
		// the last attempt has ended, or is running, when the timeout expires
		for _, takes := range []time.Duration{time.Second, time.Hour} {
			t.Run(fmt.Sprint(timers, takes), func(t *testing.T) {
				t.Parallel()
				withRetryHub(t, simhub.Options{Timers: timers}, func(_ context.Context, tr *retryHub) {
					in := tr.startAs("a", "tries-in-time", retryInput{Every: time.Hour, Takes: takes})
					end := tr.finish(in)
					want := "[a#3.1 a#3.2 a#3.3 a#3.4]"
					if takes == time.Hour {
						want = "[a#3.1 a#3.2]"
					}
					if got := fmt.Sprint(tr.ran()); got != want || end.Kind != history.OrchestrationFailed {
						t.Errorf("got runs %s, want %s; ended with %s", got, want, end.String())
					}
					tr.checkIdle()
				})
			})
		}
	}
}

// Interleaving: one batch has the event that makes the instance continue as new, and a failure of the earlier
// execution. The next attempt of the earlier execution does not run.
func TestR14_failureOfPastExecution_isNotRetried(t *testing.T) {
	t.Parallel()
	for _, first := range []string{"the event", "the failure"} {
		t.Run(first+" first", func(t *testing.T) {
			t.Parallel()
			withRetryHub(t, simhub.Options{}, func(_ context.Context, tr *retryHub) {
				in := tr.startAs("a", "retry-then-new", retryInput{Every: time.Minute})
				tr.serveFor(30 * time.Second)
				failure := provider.Message{
					Kind: provider.MessageActivityAttempts, InstanceID: "a", ExecutionID: in.ExecutionID, Segment: 1,
					Outcomes: []provider.ActivityOutcome{failed(3, 2, "r.1", time.Now().Add(2*time.Second))},
				}
				if first == "the failure" {
					tr.send(failure)
				}
				tr.raise(in, "", 1)
				if first == "the event" {
					tr.send(failure)
				}
				tr.serveFor(10 * time.Second)
				for _, r := range tr.ran()[1:] {
					if r.attempt != 1 {
						t.Errorf("attempt %s ran, want only first attempts", r)
					}
				}
				tr.serveFor(time.Hour)
				if tr.checkIdle(); tr.read(in).ExecutionID == in.ExecutionID || len(tr.ran()) != 2 {
					t.Errorf("instance did not continue as new, or runs were %v", tr.ran())
				}
			})
		})
	}
}

// The queue of an activity no longer exists at its second attempt. The activity fails, and its orchestration receives
// the failure (R9).
func TestR14_queueIsGone_activityFails(t *testing.T) {
	t.Parallel()
	withRetryHub(t, simhub.Options{}, func(ctx context.Context, tr *retryHub) {
		in := tr.startAs("a", "tries", retryInput{Every: time.Second})
		tr.turn(0)
		where := tr.Provider.Config()
		where.WorkQueues = map[string]string{}
		without, err := dynamo.New(where, dynamo.Clients{
			Table: tr.Cloud.Table, Queues: tr.Cloud.Queues, Schedules: tr.Cloud.Schedules,
		})
		if err != nil {
			t.Fatal(err)
		}
		p := tr.Provider
		tr.Provider = without
		o := tr.orchestrator(registryOf(tr), "test")
		tr.Provider = p
		tr.send(provider.Message{
			Kind: provider.MessageActivityAttempts, InstanceID: "a", ExecutionID: in.ExecutionID, Segment: 1,
			Outcomes: []provider.ActivityOutcome{failed(3, 1, "r.1", time.Now())},
		})
		if failed := o.HandleRecords(ctx, tr.receive("sim://inbox.fifo")); len(failed) > 0 {
			t.Errorf("got failed records %v", failed)
		}
		events := tr.events(in)
		if len(events) != 6 || events[4].Kind != history.OutputFailed || events[5].Kind != history.OrchestrationFailed {
			t.Errorf("got history %v", events)
		}
	})
}

// registryOf returns a registry with "tries" whose activity always succeeds.
func registryOf(tr *retryHub) *perdure.Registry {
	r := registry()
	perdure.AddActivity(r, "try", func(ctx context.Context, _ retryInput) (int, error) { return tr.note(ctx), nil })
	perdure.AddOrchestration(r, "tries", func(ctx *perdure.OrchestrationContext, s retryInput) (int, error) {
		return perdure.CallActivityByName[int](ctx, "try", s, s.policy()).Await(ctx)
	})
	return r
}

// Interleaving: a frozen process writes the retry state of an instance that has since been deleted. The write leaves no
// item.
func TestR14_instanceDeletedDuringRetry_leavesNothing(t *testing.T) {
	t.Parallel()
	withoutWorker(t, func(ctx context.Context, tr *retryHub, in provider.Instance, now time.Time) {
		frozen, resumed := make(chan struct{}), make(chan struct{})
		tr.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
			if w, ok := c.Input.(*dynamodb.TransactWriteItemsInput); ok && w.TransactItems[0].ConditionCheck != nil &&
				frozen != nil {
				close(frozen)
				frozen = nil
				<-resumed
			}
			return next()
		})
		began := frozen
		tr.send(provider.Message{
			Kind: provider.MessageActivityAttempts, InstanceID: "a", ExecutionID: in.ExecutionID, Segment: 1,
			Outcomes: []provider.ActivityOutcome{failed(3, 1, "r.1", now)},
		})
		done := make(chan bool)
		go func() {
			tr.turn(0)
			close(done)
		}()
		<-began
		if err := tr.Provider.DeleteInstance(ctx, "a", true); err != nil {
			t.Fatal(err)
		}
		close(resumed)
		<-done
		tr.wantSent()
		tr.wantItemsExpire(in.ExecutionID)
	})
}

// A process crashes before or after any call, or a call fails or its response is lost, while an activity has three
// attempts. The activity succeeds, and no attempt runs more than twice.
func TestR14_faultAtAnyCallOfARetry_activitySucceeds(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]func(n int64) (simaws.Interceptor, func() int64){
		"crash before": func(n int64) (simaws.Interceptor, func() int64) {
			i, c := simhub.CrashAt(n, false)
			return i, c.Load
		},
		"crash after": func(n int64) (simaws.Interceptor, func() int64) {
			i, c := simhub.CrashAt(n, true)
			return i, c.Load
		},
		"fails": func(n int64) (simaws.Interceptor, func() int64) {
			i, c := simhub.FailAt(n, false)
			return i, c.Load
		},
		"response lost": func(n int64) (simaws.Interceptor, func() int64) {
			i, c := simhub.FailAt(n, true)
			return i, c.Load
		},
	} {
		for _, every := range []time.Duration{time.Minute, time.Hour} {
			t.Run(fmt.Sprint(name, " ", every), func(t *testing.T) {
				t.Parallel()
				for n, more := int64(1), true; more; n++ {
					intercept, calls := fault(n)
					withRetryHub(t, simhub.Options{
						Environments: 2, Intercept: intercept,
					}, func(_ context.Context, tr *retryHub) {
						in := tr.startAs("a", "tries", retryInput{SucceedsAt: 3, Every: every})
						tr.serveFor(12 * time.Hour)
						tr.wantOutput(in, "3")
						times := map[string]int{}
						for _, r := range tr.ran() {
							if times[r.String()]++; times[r.String()] > 2 {
								t.Errorf("call %d: %s ran %d times", n, r, times[r.String()])
							}
						}
						if err := tr.CheckIdle(t.Context()); err != nil {
							t.Errorf("call %d: %v", n, err)
						}
					})
					more = calls() >= n && !t.Failed()
				}
			})
		}
	}
}
