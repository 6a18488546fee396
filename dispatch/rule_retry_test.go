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

// stubbornness is an activity that fails until an attempt, and how it is tried again.
type stubbornness struct {
	SucceedsAt int           // the attempt; 0: none
	Every      time.Duration // the wait between attempts
	Most       int           // attempts; 0: any number
	Takes      time.Duration // each
}

func (s stubbornness) policy() perdure.CallOption {
	return perdure.WithRetry(perdure.RetryPolicy{InitialInterval: s.Every, MaxInterval: s.Every, BackoffCoefficient: 1, MaxAttempts: s.Most})
}

// trial is what has been tried on a hub.
type trial struct {
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

func (tr *trial) note(ctx context.Context) int {
	a := perdure.ActivityInfoFrom(ctx)
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.runs = append(tr.runs, run{a.InstanceID, a.ActivityID, a.Attempt, time.Now()})
	return a.Attempt
}

// ran are the runs so far.
func (tr *trial) ran() []run {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return append([]run(nil), tr.runs...)
}

// wantRuns fails unless there were these runs, in order.
func (tr *trial) wantRuns(want ...string) {
	tr.t.Helper()
	if got := fmt.Sprint(tr.ran()); got != fmt.Sprint(want) {
		tr.t.Errorf("runs %s, want %s", got, want)
	}
}

// trying runs a test on a hub whose activity "try" is stubborn, as #3 of the orchestration "tries".
func trying(t *testing.T, o simhub.Options, test func(ctx context.Context, tr *trial)) {
	t.Helper()
	tr := &trial{}
	r := registry()
	perdure.AddActivity(r, "try", func(ctx context.Context, s stubbornness) (int, error) {
		n := tr.note(ctx)
		time.Sleep(s.Takes)
		if s.SucceedsAt == 0 || n < s.SucceedsAt {
			return 0, fmt.Errorf("attempt %d", n)
		}
		return n, nil
	})
	perdure.AddOrchestration(r, "tries", func(ctx *perdure.OrchestrationContext, s stubbornness) (int, error) {
		return perdure.CallActivityByName[int](ctx, "try", s, s.policy()).Await(ctx)
	})
	perdure.AddOrchestration(r, "tries-until", func(ctx *perdure.OrchestrationContext, s stubbornness) (int, error) {
		_, err := perdure.Select(ctx, perdure.CallActivityByName[int](ctx, "try", s, s.policy()), perdure.WaitForExternalEvent[int](ctx, "add"))
		return len(tr.ran()), err
	})
	perdure.AddOrchestration(r, "tries-in-time", func(ctx *perdure.OrchestrationContext, s stubbornness) (int, error) {
		return perdure.CallActivityByName[int](ctx, "try", s, s.policy(), perdure.WithScheduleToCloseTimeout(3*s.Every+s.Every/2)).Await(ctx)
	})
	perdure.AddOrchestration(r, "tries-anew", func(ctx *perdure.OrchestrationContext, s stubbornness) (int, error) {
		if _, err := perdure.Select(ctx, perdure.CallActivityByName[int](ctx, "try", s, s.policy()), perdure.WaitForExternalEvent[int](ctx, "add")); err != nil {
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

// retryOf is which attempt the activity #3 is at.
func (h *hub) retryOf(in provider.Instance) provider.ActivityRetry {
	h.t.Helper()
	r, err := h.Provider.ReadRetry(h.t.Context(), in.ExecutionID, 3)
	if err != nil {
		h.t.Fatal(err)
	}
	return r
}

// Interleaving: a queue delivers an attempt twice, both run, both fail. One of the two failures leads to the next attempt.
func TestR14TwoPercentDuplicatesMakeNoSecondChain(t *testing.T) {
	t.Parallel()
	const instances, attempts = 40, 6
	for seed := range uint64(5) {
		trying(t, simhub.Options{}, func(ctx context.Context, tr *trial) {
			tr.Cloud.Queues.Disorder("sim://default", simaws.Disorder{Seed: seed, Duplicate: 0.02, Reorder: true})
			var all []provider.Instance
			for i := range instances {
				all = append(all, tr.startAs(fmt.Sprint("i", i), "tries", stubbornness{SucceedsAt: attempts, Every: time.Minute, Takes: time.Second}))
			}
			tr.serveFor(24 * time.Hour)
			for _, in := range all {
				tr.wantOutput(in, fmt.Sprint(attempts))
			}
			n := len(tr.ran())
			t.Logf("seed %d: %d runs, %d without duplicates", seed, n, instances*attempts)
			if n < instances*attempts || n > instances*attempts*103/100 {
				t.Errorf("seed %d: %d runs, want %d and no more than 3%% above", seed, n, instances*attempts)
			}
			tr.checkRest()
		})
	}
}

// Nothing can be deleted for a minute: what was told is delivered again, and so is what told it.
func TestR14AfterAMinuteOfFailedDeletesAllIsAsBefore(t *testing.T) {
	t.Parallel()
	const instances, attempts = 40, 20
	trying(t, simhub.Options{}, func(_ context.Context, tr *trial) {
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
			all = append(all, tr.startAs(fmt.Sprint("i", i), "tries", stubbornness{SucceedsAt: attempts, Every: 30 * time.Second, Takes: time.Second}))
		}
		tr.serveFor(24 * time.Hour)
		for _, in := range all {
			tr.wantOutput(in, fmt.Sprint(attempts))
		}
		twice := map[string]int{}
		for _, r := range tr.ran() {
			if twice[r.String()]++; twice[r.String()] > 1 && r.at.After(to.Add(time.Minute)) {
				t.Errorf("%s ran %d times, the last at %v", r, twice[r.String()], r.at.Sub(began))
			}
		}
		t.Logf("%d runs, %d without the minute, in which %d deletes failed", len(tr.ran()), instances*attempts, refused.Load())
		if refused.Load() == 0 {
			t.Error("no delete has failed")
		}
		tr.checkRest()
	})
}

// waysToGiveUp are the ways in which an activity that waits for its next attempt, #3 of its instance, is given up.
func waysToGiveUp() map[string]func(tr *trial, in provider.Instance) {
	return map[string]func(tr *trial, in provider.Instance){
		"a cancelled activity": func(tr *trial, in provider.Instance) {
			tr.send(provider.Message{Kind: provider.MessageCancelActivity, InstanceID: in.InstanceID, ActivityID: 3})
		},
		"a lost race": func(tr *trial, in provider.Instance) { tr.raise(in, "", 1) },
		"a cancelled instance": func(tr *trial, in provider.Instance) {
			tr.send(provider.Message{Kind: provider.MessageCancel, InstanceID: in.InstanceID, Reason: "requested", RequestedBy: history.RequestedByClient})
		},
		"a terminated instance": func(tr *trial, in provider.Instance) {
			tr.send(provider.Message{Kind: provider.MessageTerminate, InstanceID: in.InstanceID})
		},
		"a purged instance": func(tr *trial, in provider.Instance) {
			if err := tr.Provider.DeleteInstance(tr.t.Context(), in.InstanceID, true); err != nil {
				tr.t.Error(err)
			}
		},
	}
}

// The retry of a policy without limit ends with its instance, and with its activity: nothing else has to be done for it.
func TestR14AChainEndsByItself(t *testing.T) {
	t.Parallel()
	endless := stubbornness{Every: time.Minute}
	for name, end := range waysToGiveUp() {
		for _, wait := range []time.Duration{time.Minute, time.Hour} { // by delay, and by a timer
			t.Run(fmt.Sprint(name, " that waits for ", wait), func(t *testing.T) {
				t.Parallel()
				trying(t, simhub.Options{}, func(_ context.Context, tr *trial) {
					s := endless
					s.Every = wait
					in := tr.startAs("a", "tries-until", s)
					tr.serveFor(3*wait + wait/2)
					end(tr, in)
					tr.serveFor(24 * time.Hour)
					tr.wantRuns("a#3.1", "a#3.2", "a#3.3", "a#3.4")
					tr.checkRest()
					if name == "a purged instance" {
						tr.wantMortal(in.ExecutionID)
					}
				})
			})
		}
	}
}

// Waits beyond what a queue can delay are exact, by schedules and by hops.
func TestR14RetriesOfAnHourAndADayAreExact(t *testing.T) {
	t.Parallel()
	for _, timers := range []string{dynamo.TimersSchedules, dynamo.TimersRequeue} {
		for _, every := range []time.Duration{14 * time.Minute, time.Hour, 26 * time.Hour} {
			t.Run(fmt.Sprint(timers, every), func(t *testing.T) {
				t.Parallel()
				trying(t, simhub.Options{Timers: timers}, func(_ context.Context, tr *trial) {
					in := tr.startAs("a", "tries", stubbornness{SucceedsAt: 4, Every: every})
					tr.serveFor(every + every/2)
					if r := tr.retryOf(in); r.Attempt != 3 || r.At.Sub(in.CreatedAt)-2*every > time.Second || r.Error.Message != "attempt 2" {
						t.Errorf("in between: %+v", r)
					}
					tr.serveFor(5 * every)
					tr.wantRuns("a#3.1", "a#3.2", "a#3.3", "a#3.4")
					tr.wantOutput(in, "4")
					for i, r := range tr.ran() {
						if late := r.at.Sub(in.CreatedAt) - time.Duration(i)*every; late < 0 || late > time.Second {
							t.Errorf("attempt %d was late by %v", i+1, late)
						}
					}
					tr.checkRest()
				})
			})
		}
	}
}

// No turn, no segment, no event: a thousand failures leave a history as it was.
func TestR14FailuresDoNotGrowAHistory(t *testing.T) {
	t.Parallel()
	trying(t, simhub.Options{}, func(_ context.Context, tr *trial) {
		in := tr.startAs("a", "tries", stubbornness{SucceedsAt: 1001, Every: 5 * time.Second})
		tr.serveFor(4998 * time.Second)
		before := tr.events(in)
		if n := len(tr.ran()); n != 1000 || len(before) != 3 {
			t.Errorf("%d runs, history %v", n, before)
		}
		tr.serveFor(time.Minute)
		events := tr.events(in)
		if last := events[len(events)-2]; len(events) != 6 || last.Attempt != 1001 || last.Kind != history.ActivityCompleted {
			t.Errorf("history %v", events)
		}
		tr.checkRest()
	})
}

// What a failure costs a warm instance: one transaction and one send; of the segment that scheduled the activity one read for a thousand.
func TestWhatARetryCosts(t *testing.T) {
	t.Parallel()
	trying(t, simhub.Options{}, func(_ context.Context, tr *trial) {
		tr.startAs("a", "tries", stubbornness{SucceedsAt: 1000, Every: 5 * time.Second})
		tr.serveFor(12 * time.Second) // three runs, the last of which has failed
		tr.Cloud.ResetCounts()
		tr.serveFor(100 * 5 * time.Second)
		c := tr.Cloud.Counts()
		t.Logf("100 failures: %v, %+v", c, tr.Cloud.Capacity())
		if c["DynamoDB.TransactWriteItems"] != 100 || c["SQS.SendMessageBatch"] != 200 || c["DynamoDB.PutItem"]+c["DynamoDB.UpdateItem"] != 0 {
			t.Errorf("100 failures: %v", c)
		}
		// Of the worker: is it cancelled, has it ended, is it the current attempt, what did the last one leave.
		if c["DynamoDB.GetItem"] != 200 || c["DynamoDB.Query"] != 200 {
			t.Errorf("100 failures: %v", c)
		}
	})
}

// failed is a failure as a worker tells it.
func failed(id int64, attempt int, run string, retryAt time.Time) provider.ActivityOutcome {
	o := provider.ActivityOutcome{ActivityID: id, Attempt: attempt, Run: run, Segment: 1, Error: &history.Failure{Type: "E", Message: run}}
	if !retryAt.IsZero() {
		o.RetryAt = &retryAt
	}
	return o
}

// tell tells outcomes of an instance in one message, and lets the orchestrator take it.
func (tr *trial) tell(in provider.Instance, outcomes ...provider.ActivityOutcome) {
	tr.t.Helper()
	tr.send(provider.Message{Kind: provider.MessageActivityAttempts, InstanceID: in.InstanceID, ExecutionID: in.ExecutionID, Segment: 1, Outcomes: outcomes})
	if failed := tr.turn(0); len(failed) > 0 {
		tr.t.Errorf("failed %v", failed)
	}
}

// wantSent fails unless these attempts lie in the work queue, and takes them.
func (tr *trial) wantSent(want ...int) {
	tr.t.Helper()
	got := []int{}
	for _, it := range tr.workItems() {
		got = append(got, it.Attempt)
		_ = tr.Provider.DeleteRecords(tr.t.Context(), "default", it.Record)
	}
	if fmt.Sprint(got) != fmt.Sprint(append([]int{}, want...)) {
		tr.t.Errorf("attempts %v were sent, want %v", got, want)
	}
}

// told runs a test on the instance "a", whose attempts only the test tells of.
func told(t *testing.T, test func(ctx context.Context, tr *trial, in provider.Instance, now time.Time)) {
	t.Helper()
	trying(t, simhub.Options{Environments: 2}, func(ctx context.Context, tr *trial) {
		in := tr.startAs("a", "tries", stubbornness{Every: time.Minute})
		tr.turn(0)
		tr.wantSent(1)
		test(ctx, tr, in, time.Now().UTC())
	})
}

// Which failure counts: that of the current attempt, once. What is told again has the same attempt sent again, if it may not have been.
func TestR14WhichFailureCounts(t *testing.T) {
	t.Parallel()
	none := time.Time{}
	t.Run("one of two runs of an attempt", func(t *testing.T) {
		t.Parallel()
		told(t, func(_ context.Context, tr *trial, in provider.Instance, now time.Time) {
			tr.tell(in, failed(3, 1, "r.1", now), failed(3, 1, "r.2", now.Add(time.Hour)))
			tr.wantSent(2)
			tr.tell(in, failed(3, 1, "r.2", now))
			tr.wantSent()
			if r := tr.retryOf(in); r.Attempt != 2 || r.Run != "r.1" || r.Error.Message != "r.1" {
				t.Errorf("%+v", r)
			}
		})
	})
	t.Run("the last failure of a past attempt does not", func(t *testing.T) {
		t.Parallel()
		told(t, func(_ context.Context, tr *trial, in provider.Instance, now time.Time) {
			tr.tell(in, failed(3, 1, "r.1", now))
			tr.tell(in, failed(3, 1, "r.2", none))
			if events := tr.events(in); len(events) != 3 {
				t.Errorf("%v", events)
			}
			tr.tell(in, failed(3, 2, "s.1", none))
			if events := tr.events(in); events[len(events)-1].Kind != history.OrchestrationFailed || events[len(events)-2].Attempt != 2 {
				t.Errorf("%v", events)
			}
		})
	})
	t.Run("none after the last one in a message", func(t *testing.T) {
		t.Parallel()
		told(t, func(_ context.Context, tr *trial, in provider.Instance, now time.Time) {
			tr.tell(in, failed(3, 1, "r.1", none), failed(3, 1, "r.2", now))
			tr.wantSent()
			if events := tr.events(in); events[len(events)-1].Kind != history.OrchestrationFailed {
				t.Errorf("%v", events)
			}
		})
	})
	t.Run("a success of any attempt settles", func(t *testing.T) {
		t.Parallel()
		told(t, func(_ context.Context, tr *trial, in provider.Instance, now time.Time) {
			tr.tell(in, failed(3, 1, "r.1", now))
			tr.complete(in, 1, 3) // of attempt 1
			tr.turn(0)
			if events := tr.events(in); events[len(events)-1].Kind != history.OrchestrationCompleted {
				t.Errorf("%v", events)
			}
		})
	})
	t.Run("none behind a success of the same batch", func(t *testing.T) {
		t.Parallel()
		told(t, func(_ context.Context, tr *trial, in provider.Instance, now time.Time) {
			tr.complete(in, 1, 3)
			tr.tell(in, failed(3, 1, "r.1", now))
			tr.wantSent()
			if events := tr.events(in); events[len(events)-1].Kind != history.OrchestrationCompleted {
				t.Errorf("%v", events)
			}
		})
	})
	t.Run("an attempt that an earlier release has sent", func(t *testing.T) {
		t.Parallel()
		told(t, func(_ context.Context, tr *trial, in provider.Instance, now time.Time) {
			tr.tell(in, failed(3, 7, "r.1", now))
			tr.wantSent(8)
		})
	})
}

// Interleavings: the process dies after the attempt is the current one and before it is sent; its message is delivered again, to the same
// environment or to another, or it is picked up from the dead letters as another message. The same attempt is sent, when it was due.
func TestR14AFailureThatIsToldAgainSendsTheSameAttempt(t *testing.T) {
	t.Parallel()
	for _, env := range []int{0, 1} {
		for _, how := range []string{"delivered", "picked up"} {
			t.Run(fmt.Sprint(how, " again by ", env), func(t *testing.T) {
				t.Parallel()
				told(t, func(_ context.Context, tr *trial, in provider.Instance, now time.Time) {
					refuse := true
					tr.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
						if send, ok := c.Input.(*sqs.SendMessageBatchInput); ok && refuse && *send.QueueUrl == "sim://default" {
							return errors.New("refused")
						}
						return next()
					})
					at := now.Add(10 * time.Second)
					m := provider.Message{Kind: provider.MessageActivityAttempts, InstanceID: "a", ExecutionID: in.ExecutionID, Segment: 1, Outcomes: []provider.ActivityOutcome{failed(3, 1, "r.1", at)}}
					tr.send(m)
					if failed := tr.turn(0); len(failed) != 1 || tr.retryOf(in).Attempt != 2 {
						t.Fatalf("failed %v, %+v", failed, tr.retryOf(in))
					}
					refuse = false
					time.Sleep(3 * time.Second)
					if how == "picked up" {
						_ = tr.Provider.DeleteRecords(t.Context(), provider.QueueInbox, tr.receive("sim://inbox.fifo")...)
						time.Sleep(10 * time.Minute)
						tr.send(m)
					}
					if failed := tr.turn(env); len(failed) > 0 {
						t.Fatalf("failed %v", failed)
					}
					time.Sleep(10 * time.Second)
					items := tr.workItems()
					if len(items) != 1 || items[0].Attempt != 2 || !items[0].NotBefore.Equal(at.Truncate(time.Millisecond)) {
						t.Errorf("%+v", items)
					}
				})
			})
		}
	}
}

// A message that could not be deleted tells again of an attempt that this process has sent: no copy is.
func TestR14WhatWasSentIsNotSentAgainByTheSameProcess(t *testing.T) {
	t.Parallel()
	told(t, func(_ context.Context, tr *trial, in provider.Instance, now time.Time) {
		for range 3 {
			tr.tell(in, failed(3, 1, "r.1", now))
			time.Sleep(6 * time.Minute) // so that the queue takes the next
		}
		tr.wantSent(2)
	})
}

// Interleaving: an environment that is behind takes a failure for that of an open activity. The fence tells it.
func TestR14AStaleViewRetriesNothing(t *testing.T) {
	t.Parallel()
	told(t, func(_ context.Context, tr *trial, in provider.Instance, now time.Time) {
		tr.complete(in, 1, 3)
		tr.turn(1) // environment 0 is warm, and does not know
		tr.tell(in, failed(3, 1, "r.1", now))
		tr.wantSent()
		if r := tr.retryOf(in); r.Attempt != 0 {
			t.Errorf("%+v", r)
		}
	})
}

// Some of a message's activities are tried again, some settle, one is unknown to every queue: each goes its way, and the turn is one.
func TestR14AMessageOfMixedOutcomes(t *testing.T) {
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
		tr := &trial{hub: h}
		in := tr.startAs("a", "four", 0)
		tr.turn(0)
		tr.wantSent(1, 1, 1, 1)
		now := time.Now().UTC()
		outcomes := []provider.ActivityOutcome{failed(3, 1, "r.1", now), {ActivityID: 4, Attempt: 1, Result: history.Payload("1")}, failed(5, 1, "s.1", now), failed(99, 1, "t.1", now)}
		tr.tell(in, outcomes...)
		tr.wantSent(2, 2)
		if events := tr.events(in); len(events) != 8 || events[7].Kind != history.ActivityCompleted || events[7].SourceEventID != 4 {
			t.Errorf("%v", events)
		}
	})
}

// An instance whose code cannot go on: its activities do, and no failure of theirs is parked while another attempt follows.
func TestR14ABlockedInstancesActivitiesAreTriedAgain(t *testing.T) {
	t.Parallel()
	trying(t, simhub.Options{}, func(ctx context.Context, tr *trial) {
		in := tr.startAs("a", "tries", stubbornness{SucceedsAt: 6, Every: time.Hour})
		tr.turn(0)
		mended := tr.Orchestrators[0]
		tr.Orchestrators[0] = tr.orchestrator(perdure.NewRegistry(), "without")
		tr.raise(in, "", 1)
		tr.serveFor(2*time.Hour + time.Minute)
		tr.wantRuns("a#3.1", "a#3.2", "a#3.3")
		if now := tr.read(in); now.Status != provider.StatusBlocked {
			t.Errorf("it is %s", now.Status)
		}
		tr.serveFor(4 * time.Hour) // with the sixth it succeeds
		events := tr.events(in)
		parked := []history.Event{}
		for _, e := range events {
			parked = append(parked, e.Inputs...)
		}
		if len(parked) != 2 || parked[1].Kind != history.ActivityCompleted || parked[1].Attempt != 6 {
			t.Errorf("parked: %v", parked)
		}
		time.Sleep(time.Second)
		if err := mended.ReportBuild(ctx); err != nil {
			t.Fatal(err)
		}
		tr.Orchestrators[0] = mended
		if _, err := tr.Timekeeper.Sweep(ctx); err != nil {
			t.Fatal(err)
		}
		tr.serveFor(time.Hour)
		tr.wantOutput(in, "6")
		tr.wantRuns("a#3.1", "a#3.2", "a#3.3", "a#3.4", "a#3.5", "a#3.6")
		tr.checkRest()
	})
}

// Code that cannot go on is not asked about failures: nothing of them is delivered again or parked, and the instance is not blocked for them.
func TestR14RetriesNeedNoCode(t *testing.T) {
	t.Parallel()
	told(t, func(_ context.Context, tr *trial, in provider.Instance, now time.Time) {
		without := tr.orchestrator(perdure.NewRegistry(), "without")
		for attempt := 1; attempt < 5; attempt++ {
			m := provider.Message{Kind: provider.MessageActivityAttempts, InstanceID: "a", ExecutionID: in.ExecutionID, Segment: 1}
			m.Outcomes = append(m.Outcomes, failed(3, attempt, fmt.Sprint("r.", attempt), now), failed(3, attempt, fmt.Sprint("s.", attempt), now))
			tr.send(m)
			if failed := tr.give(without); len(failed) > 0 {
				t.Fatalf("failed %v", failed)
			}
			tr.wantSent(attempt + 1)
		}
		if events := tr.events(in); len(events) != 3 || tr.read(in).Status != provider.StatusRunning {
			t.Errorf("it is %s, %v", tr.read(in).Status, events)
		}
	})
}

// An attempt that waits and the schedule-to-close time of its activity are both schedules, and messages, of one activity.
func TestR14AnAttemptThatWaitsIsNotTheScheduleToCloseTime(t *testing.T) {
	t.Parallel()
	for _, timers := range []string{dynamo.TimersSchedules, dynamo.TimersRequeue} {
		for _, takes := range []time.Duration{time.Second, time.Hour} { // the last attempt is made, or is still made when time is over
			t.Run(fmt.Sprint(timers, takes), func(t *testing.T) {
				t.Parallel()
				trying(t, simhub.Options{Timers: timers}, func(_ context.Context, tr *trial) {
					in := tr.startAs("a", "tries-in-time", stubbornness{Every: time.Hour, Takes: takes})
					end := tr.finish(in)
					want := "[a#3.1 a#3.2 a#3.3 a#3.4]"
					if takes == time.Hour {
						want = "[a#3.1 a#3.2]"
					}
					if got := fmt.Sprint(tr.ran()); got != want || end.Kind != history.OrchestrationFailed {
						t.Errorf("runs %s, want %s, ended with %s", got, want, end.String())
					}
					tr.checkRest()
				})
			})
		}
	}
}

// Interleaving: one batch has what makes the instance continue as new, and a failure of the execution before. Its next attempt, which is due
// when that is over, does not run.
func TestR14AFailureBehindAContinueAsNew(t *testing.T) {
	t.Parallel()
	for _, first := range []string{"the event", "the failure"} {
		t.Run(first+" first", func(t *testing.T) {
			t.Parallel()
			trying(t, simhub.Options{}, func(_ context.Context, tr *trial) {
				in := tr.startAs("a", "tries-anew", stubbornness{Every: time.Minute})
				tr.serveFor(30 * time.Second)
				failure := provider.Message{Kind: provider.MessageActivityAttempts, InstanceID: "a", ExecutionID: in.ExecutionID, Segment: 1, Outcomes: []provider.ActivityOutcome{failed(3, 2, "r.1", time.Now().Add(2*time.Second))}}
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
						t.Errorf("%s ran", r)
					}
				}
				tr.serveFor(time.Hour)
				if tr.checkRest(); tr.read(in).ExecutionID == in.ExecutionID || len(tr.ran()) != 2 {
					t.Errorf("it has not continued as new, or %v ran", tr.ran())
				}
			})
		})
	}
}

// The queue of an activity is gone by its second attempt: it has failed, and its orchestration hears of it (R9).
func TestR14AnAttemptThatCanNeverBeSentFailsTheActivity(t *testing.T) {
	t.Parallel()
	trying(t, simhub.Options{}, func(ctx context.Context, tr *trial) {
		in := tr.startAs("a", "tries", stubbornness{Every: time.Second})
		tr.turn(0)
		where := tr.Provider.Config()
		where.WorkQueues = map[string]string{}
		without, err := dynamo.New(where, dynamo.Clients{Table: tr.Cloud.Table, Queues: tr.Cloud.Queues, Schedules: tr.Cloud.Schedules})
		if err != nil {
			t.Fatal(err)
		}
		p := tr.Provider
		tr.Provider = without
		o := tr.orchestrator(registryOf(tr), "test")
		tr.Provider = p
		tr.send(provider.Message{Kind: provider.MessageActivityAttempts, InstanceID: "a", ExecutionID: in.ExecutionID, Segment: 1, Outcomes: []provider.ActivityOutcome{failed(3, 1, "r.1", time.Now())}})
		if failed := o.HandleRecords(ctx, tr.receive("sim://inbox.fifo")); len(failed) > 0 {
			t.Errorf("failed %v", failed)
		}
		events := tr.events(in)
		if len(events) != 6 || events[4].Kind != history.OutputFailed || events[5].Kind != history.OrchestrationFailed {
			t.Errorf("%v", events)
		}
	})
}

// registryOf knows "tries", which only schedules.
func registryOf(tr *trial) *perdure.Registry {
	r := registry()
	perdure.AddActivity(r, "try", func(ctx context.Context, _ stubbornness) (int, error) { return tr.note(ctx), nil })
	perdure.AddOrchestration(r, "tries", func(ctx *perdure.OrchestrationContext, s stubbornness) (int, error) {
		return perdure.CallActivityByName[int](ctx, "try", s, s.policy()).Await(ctx)
	})
	return r
}

// Interleaving: a process that was frozen writes the retry of an instance that is deleted meanwhile. Nothing is left of it.
func TestR14NothingIsWrittenForADeletedInstance(t *testing.T) {
	t.Parallel()
	told(t, func(ctx context.Context, tr *trial, in provider.Instance, now time.Time) {
		frozen, melted := make(chan struct{}), make(chan struct{})
		tr.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
			if w, ok := c.Input.(*dynamodb.TransactWriteItemsInput); ok && w.TransactItems[0].ConditionCheck != nil && frozen != nil {
				close(frozen)
				frozen = nil
				<-melted
			}
			return next()
		})
		began := frozen
		tr.send(provider.Message{Kind: provider.MessageActivityAttempts, InstanceID: "a", ExecutionID: in.ExecutionID, Segment: 1, Outcomes: []provider.ActivityOutcome{failed(3, 1, "r.1", now)}})
		over := make(chan bool)
		go func() {
			tr.turn(0)
			close(over)
		}()
		<-began
		if err := tr.Provider.DeleteInstance(ctx, "a", true); err != nil {
			t.Fatal(err)
		}
		close(melted)
		<-over
		tr.wantSent()
		tr.wantMortal(in.ExecutionID)
	})
}

// A process dies before and after every single call, and loses the answer of every one, while four activities are tried three times:
// each succeeds, and no attempt runs more than twice.
func TestR14ACrashAtAnyCallOfARetry(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]func(n int64) (simaws.Interceptor, func() int64){
		"dies before": func(n int64) (simaws.Interceptor, func() int64) { i, c := simhub.CrashAt(n, false); return i, c.Load },
		"dies after":  func(n int64) (simaws.Interceptor, func() int64) { i, c := simhub.CrashAt(n, true); return i, c.Load },
		"fails":       func(n int64) (simaws.Interceptor, func() int64) { i, c := simhub.FailAt(n, false); return i, c.Load },
		"is lost":     func(n int64) (simaws.Interceptor, func() int64) { i, c := simhub.FailAt(n, true); return i, c.Load },
	} {
		for _, every := range []time.Duration{time.Minute, time.Hour} {
			t.Run(fmt.Sprint(name, " ", every), func(t *testing.T) {
				t.Parallel()
				for n, more := int64(1), true; more; n++ {
					intercept, calls := fault(n)
					trying(t, simhub.Options{Environments: 2, Intercept: intercept}, func(_ context.Context, tr *trial) {
						in := tr.startAs("a", "tries", stubbornness{SucceedsAt: 3, Every: every})
						tr.serveFor(12 * time.Hour)
						tr.wantOutput(in, "3")
						times := map[string]int{}
						for _, r := range tr.ran() {
							if times[r.String()]++; times[r.String()] > 2 {
								t.Errorf("call %d: %s ran %d times", n, r, times[r.String()])
							}
						}
						if err := tr.CheckRest(t.Context()); err != nil {
							t.Errorf("call %d: %v", n, err)
						}
					})
					more = calls() >= n && !t.Failed()
				}
			})
		}
	}
}
