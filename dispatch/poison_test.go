package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// Interleavings of these tests:
//   - An outage raises the receive count of a healthy record, and then its process crashes once for another reason.
//   - A batch has poison and healthy records. Each crash costs all of them a delivery, and started records have crash
//     markers.
//   - A process crashes twice a second for another reason, with all its records.
//   - The process crashes between the dead letter, the outcome and the delete. Each is repeated, and none is lost.
//   - The code crashes the process during the replay of an uncached instance, before its turn.
//   - SQS moves a record to the dead letters although no code has run for it.
//   - An instance is blocked as poison, and another build or more memory fixes it.

// crashingActivity is an activity that kills its process in each run while alive is false.
type crashingActivity struct {
	ran   atomic.Int64
	alive atomic.Bool
}

func (d *crashingActivity) run(ctx context.Context, n int) (int, error) {
	d.ran.Add(1)
	if !d.alive.Load() {
		simhub.Die(ctx)
	}
	return n, nil
}

// poisonRegistry returns a registry with an activity "deadly" and an orchestration that runs it together with n healthy
// activities and returns its end.
func poisonRegistry(d *crashingActivity) *perdure.Registry {
	r := registry()
	perdure.AddActivity(r, "deadly", d.run)
	perdure.AddOrchestration(r, "poisoned", func(ctx *perdure.OrchestrationContext, n int) (string, error) {
		healthy := make([]*perdure.Future[int], n)
		for i := range n {
			healthy[i] = perdure.CallActivity(ctx, inc, i)
		}
		_, err := perdure.CallActivityByName[int](ctx, "deadly", 1,
			perdure.WithRetry(perdure.RetryPolicy{MaxAttempts: 3})).Await(ctx)
		sum, other := sumOf(ctx, healthy)
		failed, ok := errors.AsType[*perdure.ActivityError](err)
		if other != nil || !ok {
			return "no poison", errors.Join(err, other)
		}
		return fmt.Sprintf("%d, %s %t", sum, failed.Type, failed.NonRetryable), nil
	})
	return r
}

// crashable is an interceptor with which processes can crash.
var crashable = simhub.Crash(func(simaws.Call) (bool, bool) { return false, false })

// dead returns the dead letters of a queue and their reasons.
func (h *hub) dead(url string) (bodies, reasons []string) {
	h.t.Helper()
	for {
		out, err := h.Cloud.Queues.ReceiveMessage(h.t.Context(), &sqs.ReceiveMessageInput{
			QueueUrl: &url, MaxNumberOfMessages: 10, MessageAttributeNames: []string{"All"},
		})
		if err != nil {
			h.t.Fatal(err)
		}
		if len(out.Messages) == 0 {
			return bodies, reasons
		}
		for i := range out.Messages {
			reason := ""
			if a, ok := out.Messages[i].MessageAttributes["error"]; ok {
				reason = *a.StringValue
			}
			bodies, reasons = append(bodies, *out.Messages[i].Body), append(reasons, reason)
		}
	}
}

// wantDeadLetter fails the test unless a queue has one dead letter with a reason that contains why.
func (h *hub) wantDeadLetter(url, why string) {
	h.t.Helper()
	bodies, reasons := h.dead(url)
	if len(bodies) != 1 {
		h.t.Errorf("got %d dead letters in %s, want 1: %v", len(bodies), url, reasons)
	}
	for _, r := range reasons {
		if r == "" || !strings.Contains(r, why) {
			h.t.Errorf("got dead letter in %s with reason %q, want %q", url, r, why)
		}
	}
}

func TestR13_activityKillsItsProcess_fails(t *testing.T) {
	t.Parallel()
	d := &crashingActivity{}
	inBubble(t, simhub.Options{Registry: poisonRegistry(d), Intercept: crashable}, func(_ context.Context, h *hub) {
		end := h.finish(h.start("poisoned", 0))
		if string(end.Output) != `"0, poison true"` {
			t.Errorf("ended with %s, output %s", end.Kind, end.Output)
		}
		if n := d.ran.Load(); n != 13 { // two without a crash marker, one in a batch, and ten alone
			t.Errorf("got %d runs, want 13", n)
		}
		h.wantDeadLetter("sim://default-dead", "poison")
		if left := h.receive("sim://default"); len(left) > 0 {
			t.Error("work item is still in the queue")
		}
	})
}

// The process that detects the poison crashes at each of its calls.
func TestR13_crashDuringPoisonHandling_losesNothing(t *testing.T) {
	t.Parallel()
	for _, after := range []bool{false, true} {
		for n := int64(1); n <= 4; n++ { // read, crash marker, dead letter, outcome
			t.Run(fmt.Sprintf("%d/after=%v", n, after), func(t *testing.T) {
				t.Parallel()
				d := &crashingActivity{}
				var calls atomic.Int64
				crash := simhub.Crash(func(c simaws.Call) (bool, bool) {
					hit := d.ran.Load() == 13 && c.Service != "Lambda" && calls.Add(1) == n
					return hit && !after, hit && after
				})
				inBubble(t, simhub.Options{
					Registry: poisonRegistry(d), Intercept: crash,
				}, func(_ context.Context, h *hub) {
					end := h.finish(h.start("poisoned", 0))
					if string(end.Output) != `"0, poison true"` || d.ran.Load() > 14 {
						t.Errorf("ended with %s, output %s after %d deliveries", end.Kind, end.Output, d.ran.Load())
					}
					if bodies, _ := h.dead("sim://default-dead"); len(bodies) == 0 {
						t.Error("got no dead letter, want at least 1")
					}
				})
			})
		}
	}
}

// A poison record costs the other records of its batch two deliveries. Then it runs after them.
func TestR13_poisonRecord_delaysItsBatchBriefly(t *testing.T) {
	t.Parallel()
	d := &crashingActivity{}
	r := poisonRegistry(d)
	inBubble(t, simhub.Options{Registry: r, Intercept: crashable}, func(_ context.Context, h *hub) {
		in := h.start("poisoned", 5)
		end := h.finish(in)
		if string(end.Output) != `"15, poison true"` {
			t.Errorf("ended with %s, output %s", end.Kind, end.Output)
		}
		var neighbors, poison time.Time
		for _, e := range h.events(in) {
			switch e.Kind {
			case history.ActivityCompleted:
				neighbors = e.Time
			case history.ActivityFailed:
				poison = e.Time
			default:
			}
		}
		if took := neighbors.Sub(in.CreatedAt); took > 31*time.Minute+30*time.Second || !poison.After(neighbors) {
			t.Errorf("healthy activities took %v: more than two visibility timeouts and two leases", took)
		}
		h.wantDeadLetter("sim://default-dead", "poison")
	})
}

// An instance whose turn kills its process may affect the other instances of its batch in three deliveries, and run
// before them in the fourth. After that, it has the most crash markers and runs last.
func TestR13_poisonTurn_delaysItsBatchBriefly(t *testing.T) {
	t.Parallel()
	f := &fatal{}
	inBubble(t, simhub.Options{Registry: f.registry(), Intercept: f.crash()}, func(ctx context.Context, h *hub) {
		h.start("fatal", 0)
		if _, err := h.Provider.StartOrchestration(ctx,
			provider.Start{InstanceID: "healthy", Name: "nothing", Input: encoded(t, 1), StartID: "s"}); err != nil {
			t.Fatal(err)
		}
		h.serveFor(6*time.Minute + 10*time.Second)
		if now := h.read(provider.Instance{InstanceID: "healthy"}); now.Status != provider.StatusCompleted {
			t.Errorf("healthy instance: got status %s after four visibility timeouts, want Completed", now.Status)
		}
		if left := h.read(provider.Instance{InstanceID: "i-1"}); left.Status != provider.StatusPending {
			t.Errorf("poison instance: got status %s, want Pending", left.Status)
		}
	})
}

// An outage of reads, writes or queues does not count as a crash, even if it is long.
func TestR13_outageOfTwoHours_poisonsNothing(t *testing.T) {
	t.Parallel()
	down := map[string]func(c simaws.Call) bool{
		"reads":  func(c simaws.Call) bool { return c.Operation == "GetItem" || c.Operation == "Query" },
		"writes": func(c simaws.Call) bool { return c.Operation == "PutItem" || c.Operation == "UpdateItem" },
		"table":  func(c simaws.Call) bool { return c.Service == "DynamoDB" },
		"inbox": func(c simaws.Call) bool {
			in, ok := c.Input.(*sqs.SendMessageBatchInput)
			return ok && *in.QueueUrl == "sim://inbox.fifo"
		},
		"queues": func(c simaws.Call) bool { return c.Operation == "SendMessageBatch" },
	}
	for name, affected := range down {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
				in := h.start("chain", 2)
				if name != "reads" { // otherwise the outage already affects the first turn
					h.turn(0)
				}
				began := time.Now()
				h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
					if time.Since(began) < 2*time.Hour && affected(c) {
						return errors.New("out of service")
					}
					return next()
				})
				if end := h.finish(in); string(end.Output) != "2" {
					t.Errorf("ended with %s, want output 2", end.String())
				}
				h.checkIdle()
				_ = ctx
			})
		})
	}
}

// Interleaving: an outage raises the receive count of a record above the limit. Then its process crashes twice for
// reasons other than its code.
func TestR13_crashesAfterAnOutage_areNotPoison(t *testing.T) {
	t.Parallel()
	d := &crashingActivity{}
	inBubble(t, simhub.Options{Registry: poisonRegistry(d), Intercept: crashable}, func(ctx context.Context, h *hub) {
		in := h.start("poisoned", 0)
		h.turn(0)
		for range 20 {
			_ = h.Provider.AbandonRecords(ctx, "default", 0, h.receive("sim://default")...)
		}
		h.serveFor(45 * time.Second) // two crashes, because the run lease expires after 30 s
		if n := d.ran.Load(); n != 2 {
			t.Fatalf("got %d deaths, want 2", n)
		}
		d.alive.Store(true)
		if end := h.finish(in); string(end.Output) != `"no poison"` {
			t.Errorf("ended with %s, want no poison", end.Output)
		}
	})
}

// A work item that a worker cannot run or report is resent before SQS moves it to the dead letters.
func TestR13_handledFailures_useUpNoDeliveries(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
		in := h.start("chain", 1)
		h.turn(0)
		old := h.worker(perdure.NewRegistry())
		deliveries, most := 0, 0
		for began := time.Now(); time.Since(began) < 12*time.Hour; time.Sleep(time.Second) {
			records := h.receive("sim://default")
			if len(records) == 0 {
				continue
			}
			deliveries++
			most = max(most, records[0].ReceiveCount)
			failed := old.HandleRecords(ctx, records)
			for _, r := range records {
				if len(failed) == 0 {
					_ = h.Provider.DeleteRecords(ctx, "default", r)
				}
			}
		}
		if most > 50 || deliveries < 100 || deliveries > 1000 {
			t.Errorf("got %d deliveries in 12 hours, at most %d of one record", deliveries, most)
		}
		if end := h.finish(in); string(end.Output) != "1" {
			t.Errorf("ended with %s, want output 1", end.String())
		}
		h.checkIdle()
	})
}

// An activity always exceeds its invocation and sends no heartbeat, so it would never end. Its attempt fails with a
// retryable error.
func TestActivity_exceedsEachInvocationWithoutHeartbeat_fails(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{Registry: longJobRegistry()}, func(ctx context.Context, h *hub) {
		in := h.start("long", 0)
		h.turn(0)
		deliveries := h.serveInvocations(ctx, longJobRegistry(), time.Minute)
		if deliveries != 3 {
			t.Errorf("got %d deliveries, want 3", deliveries)
		}
		end := h.finish(in)
		if end.Kind != history.OrchestrationFailed || end.Error.Cause == nil ||
			end.Error.Cause.Type != history.TypeTimeout || end.Error.Cause.NonRetryable {
			t.Errorf("ended with %s %+v, want a retryable timeout", end.Kind, end.Error)
		}
		h.checkIdle()
	})
}

// longJobRegistry returns a registry with an activity that takes longer than an invocation.
func longJobRegistry() *perdure.Registry {
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "long", func(ctx context.Context, _ int) (int, error) {
		<-ctx.Done()
		return 0, context.Cause(ctx)
	})
	perdure.AddOrchestration(r, "long", func(ctx *perdure.OrchestrationContext, n int) (int, error) {
		return perdure.CallActivityByName[int](ctx, "long", n).Await(ctx)
	})
	return r
}

// serveInvocations passes the visible records of the work queue to a worker until none is left. Each invocation has the
// given length. The result is the number of deliveries.
func (h *hub) serveInvocations(ctx context.Context, r *perdure.Registry, long time.Duration) (deliveries int) {
	h.t.Helper()
	w := h.worker(r)
	for idle := 0; idle < 30 && deliveries < 100; time.Sleep(15 * time.Second) {
		records := h.receive("sim://default")
		if len(records) == 0 {
			idle++
			continue
		}
		idle = 0
		deliveries++
		invocation, stop := context.WithTimeout(ctx, long)
		w.HandleRecords(invocation, records)
		stop()
	}
	return deliveries
}

// fatal is an orchestration whose turn kills the process after an event while alive is false.
type fatal struct {
	alive, dies atomic.Bool
	ran         atomic.Int64
}

func (f *fatal) registry() *perdure.Registry {
	r := registry()
	perdure.AddOrchestration(r, "fatal", func(ctx *perdure.OrchestrationContext, n int) (int, error) {
		if n > 0 {
			if _, err := perdure.WaitForExternalEvent[int](ctx, "add").Await(ctx); err != nil {
				return 0, err
			}
		}
		f.ran.Add(1)
		f.dies.Store(!f.alive.Load())
		return 7, nil
	})
	return r
}

// crash kills the process of a fatal turn at its commit, the first call after the turn.
func (f *fatal) crash() simaws.Interceptor {
	return simhub.Crash(func(c simaws.Call) (bool, bool) {
		in, put := c.Input.(*dynamodb.PutItemInput)
		return put && strings.HasPrefix(text(in.Item, "sk"), "h#") && f.dies.Swap(false), false
	})
}

// A function with a short timeout never has five seconds left. Suspects still run alone, with most of an invocation
// available.
func TestR13_shortFunctionTimeout_suspectsStillRun(t *testing.T) {
	t.Parallel()
	f := &fatal{}
	inBubble(t, simhub.Options{
		Registry: f.registry(), Intercept: f.crash(), InvocationLimit: 3 * time.Second,
	}, func(_ context.Context, h *hub) {
		in := h.start("fatal", 0)
		h.serveFor(2 * time.Hour)
		if now := h.read(in); now.Status != provider.StatusBlocked || now.Diagnosis == nil ||
			now.Diagnosis.Type != history.TypePoison {
			t.Errorf("got status %s, diagnosis %+v after %d runs, want Blocked as poison",
				now.Status, now.Diagnosis, f.ran.Load())
		}
	})
}

func TestR13_turnKillsItsProcess_blocksItsInstance(t *testing.T) {
	t.Parallel()
	for name, cache := range map[string]int{"warm": 0, "cold": -1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &fatal{}
			inBubble(t, simhub.Options{
				Registry: f.registry(), Intercept: f.crash(), CacheBytes: cache,
			}, func(ctx context.Context, h *hub) {
				in := h.start("fatal", 1)
				h.serveFor(time.Minute)
				h.raise(in, "e", 1)
				h.serveFor(2 * time.Hour)
				now := h.read(in)
				if now.Status != provider.StatusBlocked || now.Diagnosis == nil ||
					now.Diagnosis.Type != history.TypePoison || f.ran.Load() != 13 {
					t.Fatalf("after %d deliveries: got status %s, diagnosis %+v, want Blocked as poison",
						f.ran.Load(), now.Status, now.Diagnosis)
				}
				h.wantDeadLetter("sim://inbox-dead.fifo", "poison")
				if woken, err := h.Renewer.Sweep(ctx); woken != 0 || err != nil {
					t.Errorf("got %d wakes, error %v, want 0 without a new build", woken, err)
				}
				f.alive.Store(true)
				h.resumes(ctx, in, f)
			})
		})
	}
}

// The first turn of an execution that continued as new kills its process. The message of the previous turn causes it,
// and becomes a dead letter although none of its inputs are parked.
func TestR13_poisonTurnAfterContinueAsNew_becomesDeadLetter(t *testing.T) {
	t.Parallel()
	f := &fatal{}
	r := f.registry()
	perdure.AddOrchestration(r, "fatal-next", func(ctx *perdure.OrchestrationContext, n int) (int, error) {
		if n > 0 {
			return perdure.ContinueAsNew[int](ctx, n-1)
		}
		f.dies.Store(!f.alive.Load())
		return 7, nil
	})
	inBubble(t, simhub.Options{Registry: r, Intercept: f.crash()}, func(ctx context.Context, h *hub) {
		in := h.start("fatal-next", 1)
		h.serveFor(2 * time.Hour)
		if now := h.read(in); now.Status != provider.StatusBlocked || now.Diagnosis == nil ||
			now.Diagnosis.Type != history.TypePoison {
			t.Fatalf("got status %s, diagnosis %+v, want Blocked as poison", now.Status, now.Diagnosis)
		}
		h.wantDeadLetter("sim://inbox-dead.fifo", "poison")
		f.alive.Store(true)
		time.Sleep(time.Second)
		fixed := h.orchestrator(r, "fixed")
		if woken, err := h.Renewer.Sweep(ctx); woken != 1 || err != nil {
			t.Errorf("got %d wakes, error %v, want 1", woken, err)
		}
		h.passRecords(fixed)
		if end, err := h.Provider.ReadTerminalEvent(ctx, h.read(in).ExecutionID); err != nil ||
			string(end.Output) != "7" {
			t.Errorf("ended with %s, output %s, error %v, want 7", end.Kind, end.Output, err)
		}
	})
}

// Interleaving: no process crashes. In each delivery, the response to the crash marker is lost or its removal fails at
// first, and then a call fails for another reason. A live process leaves no crash marker.
func TestR13_processSurvives_crashMarkerIsRemoved(t *testing.T) {
	t.Parallel()
	for _, lost := range []string{"mark", "unmark"} {
		t.Run(lost, func(t *testing.T) {
			t.Parallel()
			inBubble(t, simhub.Options{MaxAttempts: 1, ResendAfterDeliveries: -1}, func(_ context.Context, h *hub) {
				in := h.start("chain", 1)
				failures, marked := 0, false
				h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
					up, update := c.Input.(*dynamodb.UpdateItemInput)
					switch {
					case failures == 40:
						return next()
					case update && strings.HasPrefix(text(up.Key, "sk"), "p#"):
						marks := strings.Contains(*up.UpdateExpression, "ADD")
						fails := (lost == "mark") == marks && (marks || marked)
						marked = marks
						if !fails {
							return next()
						}
						failures++
						if marks {
							_ = next()
						}
						return errors.New("lost")
					case c.Operation == "SendMessageBatch", c.Operation == "PutItem":
						failures++
						return errors.New("out of service")
					}
					return next()
				})
				if end := h.finish(in); string(end.Output) != "1" || failures != 40 {
					t.Errorf("after %d failures: ended with %s, output %s, want 1", failures, end.String(), end.Output)
				}
				h.checkIdle()
			})
		})
	}
}

// resumes reports a build that fixes a blocked instance, and fails the test unless the instance continues with its
// parked inputs.
func (h *hub) resumes(ctx context.Context, in provider.Instance, f *fatal) {
	h.t.Helper()
	time.Sleep(time.Second)
	fixed := h.orchestrator(f.registry(), "fixed")
	if woken, err := h.Renewer.Sweep(ctx); woken != 1 || err != nil {
		h.t.Errorf("got %d wakes, error %v, want 1", woken, err)
	}
	h.passRecords(fixed)
	end, err := h.Provider.ReadTerminalEvent(ctx, in.ExecutionID)
	if err != nil || string(end.Output) != "7" {
		h.t.Errorf("ended with %s, output %s, error %v, want 7", end.Kind, end.Output, err)
	}
	h.events(in)
}

// The code crashes the process during the replay, before its turn.
func TestR13_replayKillsItsProcess_blocksItsInstance(t *testing.T) {
	t.Parallel()
	f := &fatal{}
	f.alive.Store(true)
	replays := &atomic.Int64{}
	r := registry()
	perdure.AddOrchestration(r, "fatal", func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
		if ctx.IsReplaying() && !f.alive.Load() {
			replays.Add(1)
			f.dies.Store(true)
		}
		_, err := perdure.WaitForExternalEvent[int](ctx, "add").Await(ctx)
		return 7, err
	})
	inBubble(t, simhub.Options{Registry: r, Intercept: f.crash(), CacheBytes: -1}, func(ctx context.Context, h *hub) {
		in := h.start("fatal", 1)
		h.serveFor(time.Minute)
		f.alive.Store(false)
		h.raise(in, "e", 1)
		h.serveFor(2 * time.Hour)
		if now := h.read(in); now.Status != provider.StatusBlocked || now.Diagnosis.Type != history.TypePoison {
			t.Fatalf("got status %s, diagnosis %+v, want Blocked as poison", now.Status, now.Diagnosis)
		}
		if n := replays.Load(); n != 13 {
			t.Errorf("got replays in %d deliveries, want 13", n)
		}
		f.alive.Store(true)
		time.Sleep(time.Second)
		fixed := h.orchestrator(r, "fixed")
		if woken, err := h.Renewer.Sweep(ctx); woken != 1 || err != nil {
			t.Errorf("got %d wakes, error %v, want 1", woken, err)
		}
		h.passRecords(fixed)
		if end, err := h.Provider.ReadTerminalEvent(ctx, in.ExecutionID); err != nil || string(end.Output) != "7" {
			t.Errorf("ended with %s, output %s, error %v, want 7", end.Kind, end.Output, err)
		}
	})
}

// blockedAsPoison returns an instance whose turn killed its process until the instance was blocked.
func (h *hub) blockedAsPoison() provider.Instance {
	h.t.Helper()
	in := h.start("fatal", 1)
	h.serveFor(time.Minute)
	h.raise(in, "e", 1)
	h.serveFor(2 * time.Hour)
	return in
}

// More memory is not a new build. Each message for an instance that is blocked as poison causes one attempt.
func TestR13_messageForInstanceBlockedAsPoison_causesOneRun(t *testing.T) {
	t.Parallel()
	f := &fatal{}
	inBubble(t, simhub.Options{Registry: f.registry(), Intercept: f.crash()}, func(_ context.Context, h *hub) {
		in := h.blockedAsPoison()
		h.raise(in, "f", 2)
		h.serveFor(time.Hour)
		if n := f.ran.Load(); n != 14 || h.read(in).Status != provider.StatusBlocked {
			t.Errorf("got %d runs, status %s, want 14 and Blocked", n, h.read(in).Status)
		}
		f.alive.Store(true)
		h.raise(in, "g", 3)
		if end := h.finish(in); string(end.Output) != "7" || h.read(in).Status != provider.StatusCompleted {
			t.Errorf("ended with %s, want output 7", end.String())
		}
	})
}

func TestR13_blockedAsPoison_canBeTerminated(t *testing.T) {
	t.Parallel()
	f := &fatal{}
	inBubble(t, simhub.Options{Registry: f.registry(), Intercept: f.crash()}, func(_ context.Context, h *hub) {
		in := h.blockedAsPoison()
		h.send(provider.Message{Kind: provider.MessageTerminate, InstanceID: in.InstanceID, Text: "enough"})
		if end := h.finish(in); end.Kind != history.OrchestrationTerminated {
			t.Errorf("ended with %s, want terminated", end.Kind)
		}
	})
}

// An unreadable history never has a turn. At the delivery limit, the instance is blocked, and its messages become dead
// letters. Once the history is readable, a wake continues the instance.
func TestR13_unreadableHistory_blocksItsInstance(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{Registry: sleeper(1, "add"), CacheBytes: -1}, func(ctx context.Context, h *hub) {
		in := h.start("sleeper", 0)
		h.turn(0)
		sound := h.item("x#"+in.ExecutionID, "h#0000000001")
		h.damage(sound)
		h.raise(in, "e", 5)
		h.serveFor(10 * time.Minute)
		if now := h.read(in); now.Status != provider.StatusRunning {
			t.Errorf("below the limit: got status %s, want Running", now.Status)
		}
		h.serveFor(time.Hour)
		now := h.read(in)
		if now.Status != provider.StatusBlocked || now.Diagnosis == nil || now.Diagnosis.Type != history.TypeCorrupt ||
			!strings.Contains(now.Diagnosis.Message, "h#0000000001") {
			t.Fatalf("got status %s, diagnosis %+v, want Blocked as corrupt", now.Status, now.Diagnosis)
		}
		h.wantDeadLetter("sim://inbox-dead.fifo", "h#0000000001")
		if _, err := h.Cloud.Table.PutItem(ctx, &dynamodb.PutItemInput{TableName: aTable(), Item: sound}); err != nil {
			t.Fatal(err)
		}
		later := h.orchestrator(sleeper(1, "add"), "later")
		if woken, err := h.Renewer.Sweep(ctx); woken != 1 || err != nil {
			t.Errorf("got %d wakes, error %v, want 1", woken, err)
		}
		h.passRecords(later)
		if now := h.read(in); now.Status != provider.StatusRunning || now.Diagnosis != nil {
			t.Errorf("after the repair: got status %s, diagnosis %+v, want Running", now.Status, now.Diagnosis)
		}
		h.raise(in, "f", 6)
		h.passRecords(later)
		if end, err := h.Provider.ReadTerminalEvent(ctx, in.ExecutionID); err != nil || string(end.Output) != "6" {
			t.Errorf("ended with %s, output %s, error %v, want 6", end.Kind, end.Output, err)
		}
	})
}

// SQS moves a record to the dead letters after a hundred deliveries, although no code has run. The sweeper recovers it.
func TestR13_deadLetterOfQueue_isRecovered(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		orchestration string
		input         any
		turns         int
		url, want     string
	}{
		provider.QueueInbox:  {"chain", 1, 0, "sim://inbox.fifo", "1"},
		"default":            {"chain", 1, 1, "sim://default", "1"},
		provider.QueueTimers: {"timer", time.Second, 1, "sim://timers", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
				in := h.start(c.orchestration, c.input)
				for range c.turns {
					h.turn(0)
				}
				time.Sleep(2 * time.Second)
				h.exhaust(ctx, name, c.url)
				if _, err := h.Renewer.Sweep(ctx); err != nil {
					t.Fatal(err)
				}
				time.Sleep(2 * time.Minute)
				if _, err := h.Renewer.Sweep(ctx); err != nil { // the sweeper ignores the recovered copy
					t.Fatal(err)
				}
				if end := h.finish(in); end.Kind != history.OrchestrationCompleted ||
					c.want != "" && string(end.Output) != c.want {
					t.Errorf("ended with %s, output %s", end.Kind, end.Output)
				}
				h.wantDeadLetter(h.Provider.Config().DeadLetters[name], "picked up")
			})
		})
	}
}

// exhaust receives the record of a queue until SQS moves it to the dead letters.
func (h *hub) exhaust(ctx context.Context, queue, url string) {
	h.t.Helper()
	for n := 0; ; n++ {
		records := h.receive(url)
		switch {
		case len(records) == 0 && n > 0:
			return
		case len(records) != 1 || n == 100:
			h.t.Fatalf("got %d records in delivery %d, want 1", len(records), n+1)
		}
		if err := h.Provider.AbandonRecords(ctx, queue, 0, records...); err != nil {
			h.t.Fatal(err)
		}
	}
}

// The sweeper crashes at each call of a sweep. Nothing is lost, and nothing happens twice.
func TestR13_sweeperDiesAtAnyCall_losesNothing(t *testing.T) {
	t.Parallel()
	for _, after := range []bool{false, true} {
		for n := 1; n <= 3; n++ { // send, copy, delete
			t.Run(fmt.Sprintf("%d/after=%v", n, after), func(t *testing.T) {
				t.Parallel()
				inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
					in := h.start("chain", 1)
					h.exhaust(ctx, provider.QueueInbox, "sim://inbox.fifo")
					calls := 0
					h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
						if c.Operation != "SendMessageBatch" && c.Operation != "DeleteMessageBatch" {
							return next()
						}
						if calls++; calls < n {
							return next()
						}
						if calls == n && after {
							_ = next()
						}
						return errors.New("the process has crashed")
					})
					if _, err := h.Renewer.Sweep(ctx); err == nil {
						t.Error("sweep did not report the failure")
					}
					h.interfere(nil)
					time.Sleep(2 * time.Minute)
					if _, err := h.Renewer.Sweep(ctx); err != nil {
						t.Fatal(err)
					}
					if end := h.finish(in); string(end.Output) != "1" {
						t.Errorf("ended with %s, output %s, want 1", end.Kind, end.Output)
					}
					h.wantDeadLetter("sim://inbox-dead.fifo", "picked up")
				})
			})
		}
	}
}

// The first two deliveries cost nothing (TestCost_chainOfTen). Each later delivery costs one write, and one more if the
// record is released.
func TestCrashMarker_fromThirdDelivery_costsOneWrite(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
		in := h.start("chain", 1)
		h.turn(0)
		for range 10 {
			_ = h.Provider.AbandonRecords(ctx, "default", 0, h.receive("sim://default")...)
		}
		h.Cloud.ResetCounts()
		must(dispatch.NewWorker(registry(), h.Provider, nil)).HandleRecords(ctx, h.receive("sim://default"))
		if n := h.Cloud.Counts()["DynamoDB.UpdateItem"]; n != 1 {
			t.Errorf("got %d updates, want 1 for the crash marker", n)
		}
		if end := h.finish(in); string(end.Output) != "1" {
			t.Errorf("ended with %s, want output 1", end.String())
		}
	})
}

func aTable() *string {
	name := "perdure"
	return &name
}

// damage overwrites a segment with unreadable events.
func (h *hub) damage(segment map[string]ddbtypes.AttributeValue) {
	h.t.Helper()
	damaged := maps.Clone(segment)
	damaged["events"] = &ddbtypes.AttributeValueMemberS{Value: "no events"}
	if _, err := h.Cloud.Table.PutItem(h.t.Context(),
		&dynamodb.PutItemInput{TableName: aTable(), Item: damaged}); err != nil {
		h.t.Fatal(err)
	}
}

// Finished records are deleted before an instance runs that may kill the process.
func TestR13_suspectRunsAlone_finishedRecordsAreDeletedBefore(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
		suspect := h.start("nothing", 1)
		for n := range 3 {
			records := h.receive("sim://inbox.fifo")
			if n == 2 { // the process crashes in this delivery
				if _, err := h.Provider.PutCrashMarker(ctx, provider.Delivery{
					ExecutionID: suspect.ExecutionID,
					Record:      records[0],
				}); err != nil {
					t.Fatal(err)
				}
			}
			_ = h.Provider.AbandonRecords(ctx, provider.QueueInbox, 0, records...)
		}
		if _, err := h.Provider.StartOrchestration(ctx,
			provider.Start{InstanceID: "healthy", Name: "nothing", Input: encoded(t, 1), StartID: "s"}); err != nil {
			t.Fatal(err)
		}
		var deleted, begun atomic.Bool
		h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
			if c.Operation == "DeleteMessageBatch" {
				deleted.Store(true)
			}
			if p, ok := c.Input.(*dynamodb.PutItemInput); ok && text(p.Item, "pk") == "x#"+suspect.ExecutionID &&
				begun.CompareAndSwap(false, true) {
				if !deleted.Load() {
					t.Error("the suspect starts before the records of the others are deleted")
				}
			}
			return next()
		})
		if failed := h.turn(0); len(failed) > 0 || !begun.Load() {
			t.Errorf("got failed records %v, suspect started: %v", failed, begun.Load())
		}
	})
}

// A cached instance replays nothing, but its turn also has a crash marker. The marker is removed after the turn, or
// after a failure that its code did not cause.
func TestR13_warmTurn_hasCrashMarker(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{Registry: sleeper(2, "add")}, func(ctx context.Context, h *hub) {
		in := h.start("sleeper", 0)
		h.turn(0)
		h.raise(in, "e", 1)
		for range 10 {
			_ = h.Provider.AbandonRecords(ctx, provider.QueueInbox, 0, h.receive("sim://inbox.fifo")...)
		}
		from := len(h.made())
		h.turn(0)
		if ops := strings.Join(h.operations(from), " "); !strings.Contains(ops, "UpdateItem PutItem") ||
			strings.Count(ops, "UpdateItem") != 1 {
			t.Errorf("got calls %s, want a crash marker and the commit", ops)
		}
		h.raise(in, "f", 2)
		for range 10 {
			_ = h.Provider.AbandonRecords(ctx, provider.QueueInbox, 0, h.receive("sim://inbox.fifo")...)
		}
		h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
			if c.Operation == "PutItem" {
				return errors.New("out of service")
			}
			return next()
		})
		for range 5 {
			if failed := h.turn(0); len(failed) != 1 {
				t.Fatalf("got failed records %v, want 1", failed)
			}
			time.Sleep(10 * time.Minute)
		}
		h.interfere(nil)
		if end := h.finish(in); string(end.Output) != "3" {
			t.Errorf("ended with %s, want output 3", end.String())
		}
	})
}
