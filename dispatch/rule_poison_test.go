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

// Interleavings that could hurt:
//   - an outage lets the count of a healthy record grow, and its process then dies once for a reason of its own;
//   - a poison record and healthy ones are in one batch: each death costs all a delivery, and those that began bear a mark;
//   - a process dies twice a second of something else, with whatever it has in hand;
//   - the process dies between the copy to the dead letters, the outcome and the delete: each is repeated, none is lost;
//   - the code dies in the replay of a cold instance, before its turn;
//   - a queue moves a record away that no code has ever run for;
//   - an instance is parked as poison, and another build, or more memory, mends it.

// deadly is an activity whose process dies whenever it runs, while alive is false.
type deadly struct {
	ran   atomic.Int64
	alive atomic.Bool
}

func (d *deadly) run(ctx context.Context, n int) (int, error) {
	d.ran.Add(1)
	if !d.alive.Load() {
		simhub.Die(ctx)
	}
	return n, nil
}

// poisonous is a registry with an activity "deadly", an orchestration that calls it, and says how it ended, and one that calls inc
// n times at once beside it.
func poisonous(d *deadly) *perdure.Registry {
	r := registry()
	perdure.AddActivity(r, "deadly", d.run)
	perdure.AddOrchestration(r, "poisoned", func(ctx *perdure.OrchestrationContext, n int) (string, error) {
		healthy := make([]*perdure.Future[int], n)
		for i := range n {
			healthy[i] = perdure.CallActivity(ctx, inc, i)
		}
		_, err := perdure.CallActivityByName[int](ctx, "deadly", 1, perdure.WithRetry(perdure.RetryPolicy{MaxAttempts: 3})).Await(ctx)
		sum, other := sumOf(ctx, healthy)
		failed, ok := errors.AsType[*perdure.ActivityError](err)
		if other != nil || !ok {
			return "no poison", errors.Join(err, other)
		}
		return fmt.Sprintf("%d, %s %t", sum, failed.Type, failed.NonRetryable), nil
	})
	return r
}

// crashable is what lets processes die.
var crashable = simhub.Crash(func(simaws.Call) (bool, bool) { return false, false })

// dead are the dead letters of a queue, and why they are there.
func (h *hub) dead(url string) (bodies, reasons []string) {
	h.t.Helper()
	for {
		out, err := h.Cloud.Queues.ReceiveMessage(h.t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &url, MaxNumberOfMessages: 10, MessageAttributeNames: []string{"All"}})
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

// wantDead fails unless a queue has one dead letter, with a reason that contains why.
func (h *hub) wantDead(url, why string) {
	h.t.Helper()
	bodies, reasons := h.dead(url)
	if len(bodies) != 1 {
		h.t.Errorf("%d dead letters in %s, want one: %v", len(bodies), url, reasons)
	}
	for _, r := range reasons {
		if r == "" || !strings.Contains(r, why) {
			h.t.Errorf("a dead letter of %s is there for %q, want %q", url, r, why)
		}
	}
}

func TestR13AnActivityThatTakesItsProcessDownFails(t *testing.T) {
	t.Parallel()
	d := &deadly{}
	inBubble(t, simhub.Options{Registry: poisonous(d), Intercept: crashable}, func(_ context.Context, h *hub) {
		end := h.finish(h.start("poisoned", 0))
		if string(end.Output) != `"0, poison true"` {
			t.Errorf("ended with %s %s", end.Kind, end.Output)
		}
		if n := d.ran.Load(); n != 13 { // two without a mark, one beside others, and ten alone
			t.Errorf("it ran %d times", n)
		}
		h.wantDead("sim://default-dead", "poison")
		if left := h.receive("sim://default"); len(left) > 0 {
			t.Error("the work item is still there")
		}
	})
}

// Each call of the delivery that finds the poison may be the last of its process.
func TestR13ACrashWhilePoisonIsDealtWithLosesNothing(t *testing.T) {
	t.Parallel()
	for _, after := range []bool{false, true} {
		for n := int64(1); n <= 4; n++ { // read, mark, dead letter, outcome
			t.Run(fmt.Sprintf("%d/after=%v", n, after), func(t *testing.T) {
				t.Parallel()
				d := &deadly{}
				var calls atomic.Int64
				crash := simhub.Crash(func(c simaws.Call) (bool, bool) {
					hit := d.ran.Load() == 13 && c.Service != "Lambda" && calls.Add(1) == n
					return hit && !after, hit && after
				})
				inBubble(t, simhub.Options{Registry: poisonous(d), Intercept: crash}, func(_ context.Context, h *hub) {
					end := h.finish(h.start("poisoned", 0))
					if string(end.Output) != `"0, poison true"` || d.ran.Load() > 14 {
						t.Errorf("ended with %s %s after %d deliveries", end.Kind, end.Output, d.ran.Load())
					}
					if bodies, _ := h.dead("sim://default-dead"); len(bodies) == 0 {
						t.Error("no dead letter")
					}
				})
			})
		}
	}
}

// The neighbours of a poison record lose two deliveries by it. Then it comes after them.
func TestR13APoisonRecordDoesNotTakeItsNeighboursAlong(t *testing.T) {
	t.Parallel()
	d := &deadly{}
	r := poisonous(d)
	inBubble(t, simhub.Options{Registry: r, Intercept: crashable}, func(_ context.Context, h *hub) {
		in := h.start("poisoned", 5)
		end := h.finish(in)
		if string(end.Output) != `"15, poison true"` {
			t.Errorf("ended with %s %s", end.Kind, end.Output)
		}
		var neighbours, poison time.Time
		for _, e := range h.events(in) {
			switch e.Kind {
			case history.ActivityCompleted:
				neighbours = e.Time
			case history.ActivityFailed:
				poison = e.Time
			default:
			}
		}
		if took := neighbours.Sub(in.CreatedAt); took > 31*time.Minute+30*time.Second || !poison.After(neighbours) {
			t.Errorf("the neighbours took %v: more than two visibility timeouts, and two leases", took)
		}
		h.wantDead("sim://default-dead", "poison")
	})
}

// The same of turns: an instance that kills its process may take the others of its batch along in three deliveries, and in the fourth
// stand before them. Then it is the one with the most marks, and comes last.
func TestR13APoisonTurnDoesNotTakeItsNeighboursAlong(t *testing.T) {
	t.Parallel()
	f := &fatal{}
	inBubble(t, simhub.Options{Registry: f.registry(), Intercept: f.crash()}, func(ctx context.Context, h *hub) {
		h.start("fatal", 0)
		if _, err := h.Provider.StartOrchestration(ctx, provider.Start{InstanceID: "healthy", Name: "nothing", Input: encoded(t, 1), StartID: "s"}); err != nil {
			t.Fatal(err)
		}
		h.serveFor(6*time.Minute + 10*time.Second)
		if now := h.read(provider.Instance{InstanceID: "healthy"}); now.Status != provider.StatusCompleted {
			t.Errorf("after four visibility timeouts the neighbour is %s", now.Status)
		}
		if left := h.read(provider.Instance{InstanceID: "i-1"}); left.Status != provider.StatusPending {
			t.Errorf("the other is %s", left.Status)
		}
	})
}

// An outage is no death, however long: neither of reads, nor of writes, nor of queues.
func TestR13AnOutageOfTwoHoursPoisonsNothing(t *testing.T) {
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
				if name != "reads" { // else the first read of the first turn hangs already
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
					t.Errorf("ended with %s", end.String())
				}
				h.checkRest()
				_ = ctx
			})
		})
	}
}

// Interleaving: an outage has raised a record's count beyond the limit; then the process dies, twice, for reasons that are not its
// code's.
func TestR13ADeathAfterAnOutageIsNoPoison(t *testing.T) {
	t.Parallel()
	d := &deadly{}
	inBubble(t, simhub.Options{Registry: poisonous(d), Intercept: crashable}, func(ctx context.Context, h *hub) {
		in := h.start("poisoned", 0)
		h.turn(0)
		for range 20 {
			_ = h.Provider.AbandonRecords(ctx, "default", 0, h.receive("sim://default")...)
		}
		h.serveFor(45 * time.Second) // two deaths: its lease is over after 30 s
		if n := d.ran.Load(); n != 2 {
			t.Fatalf("%d deaths", n)
		}
		d.alive.Store(true)
		if end := h.finish(in); string(end.Output) != `"no poison"` {
			t.Errorf("ended with %s", end.Output)
		}
	})
}

// What a worker cannot run, or cannot tell, is sent anew before its queue gives it up.
func TestR13AHandledFailureUsesUpNoDeliveries(t *testing.T) {
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
			t.Errorf("%d deliveries in 12 hours, the most of one record %d", deliveries, most)
		}
		if end := h.finish(in); string(end.Output) != "1" {
			t.Errorf("ended with %s", end.String())
		}
		h.checkRest()
	})
}

// An activity that runs into the end of its invocation each time, and leaves nothing to go on from, would do so for ever: its attempt
// fails, in a way that may be tried again.
func TestAnActivityThatNeverFitsItsInvocationFails(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{Registry: poisonousJob()}, func(ctx context.Context, h *hub) {
		in := h.start("long", 0)
		h.turn(0)
		deliveries := h.serveInvocations(ctx, poisonousJob(), time.Minute)
		if deliveries != 3 {
			t.Errorf("%d deliveries", deliveries)
		}
		end := h.finish(in)
		if end.Kind != history.OrchestrationFailed || end.Error.Cause == nil || end.Error.Cause.Type != history.TypeTimeout || end.Error.Cause.NonRetryable {
			t.Errorf("ended with %s %+v", end.Kind, end.Error)
		}
		h.checkRest()
	})
}

// poisonousJob is a registry with an activity that takes longer than an invocation.
func poisonousJob() *perdure.Registry {
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

// serveInvocations gives what is visible in the work queue to a worker, an invocation of so long each, until nothing is left, and counts
// the deliveries.
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

// fatal is an orchestration whose turn takes the process down after an event, while alive is false.
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

// crash kills the process of a turn that has reached the fatal line: at its commit, the first call after it.
func (f *fatal) crash() simaws.Interceptor {
	return simhub.Crash(func(c simaws.Call) (bool, bool) {
		in, put := c.Input.(*dynamodb.PutItemInput)
		return put && strings.HasPrefix(text(in.Item, "sk"), "h#") && f.dies.Swap(false), false
	})
}

// A function of few seconds never has five left: what is to run alone does all the same, with most of an invocation before it.
func TestR13SuspectsRunInAFunctionOfFewSeconds(t *testing.T) {
	t.Parallel()
	f := &fatal{}
	inBubble(t, simhub.Options{Registry: f.registry(), Intercept: f.crash(), InvocationLimit: 3 * time.Second}, func(_ context.Context, h *hub) {
		in := h.start("fatal", 0)
		h.serveFor(2 * time.Hour)
		if now := h.read(in); now.Status != provider.StatusBlocked || now.Diagnosis == nil || now.Diagnosis.Type != history.TypePoison {
			t.Errorf("the instance is %s %+v after %d runs", now.Status, now.Diagnosis, f.ran.Load())
		}
	})
}

func TestR13ATurnThatTakesItsProcessDownBlocksItsInstance(t *testing.T) {
	t.Parallel()
	for name, cache := range map[string]int{"warm": 0, "cold": -1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &fatal{}
			inBubble(t, simhub.Options{Registry: f.registry(), Intercept: f.crash(), CacheBytes: cache}, func(ctx context.Context, h *hub) {
				in := h.start("fatal", 1)
				h.serveFor(time.Minute)
				h.raise(in, "e", 1)
				h.serveFor(2 * time.Hour)
				now := h.read(in)
				if now.Status != provider.StatusBlocked || now.Diagnosis == nil || now.Diagnosis.Type != history.TypePoison || f.ran.Load() != 13 {
					t.Fatalf("after %d deliveries it is %s: %+v", f.ran.Load(), now.Status, now.Diagnosis)
				}
				h.wantDead("sim://inbox-dead.fifo", "poison")
				if woken, err := h.Timekeeper.Sweep(ctx); woken != 0 || err != nil {
					t.Errorf("no other build has reported, and the watch woke %d, %v", woken, err)
				}
				f.alive.Store(true)
				h.resumes(ctx, in, f)
			})
		})
	}
}

// The same of the first turn of an execution that continues as new: it is the message of the turn before that leads to it, and is
// shown to people, though nothing that it brought is parked.
func TestR13APoisonTurnAfterContinueAsNewIsInTheDeadLetters(t *testing.T) {
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
		if now := h.read(in); now.Status != provider.StatusBlocked || now.Diagnosis == nil || now.Diagnosis.Type != history.TypePoison {
			t.Fatalf("it is %s: %+v", now.Status, now.Diagnosis)
		}
		h.wantDead("sim://inbox-dead.fifo", "poison")
		f.alive.Store(true)
		time.Sleep(time.Second)
		mended := h.orchestrator(r, "mended")
		if woken, err := h.Timekeeper.Sweep(ctx); woken != 1 || err != nil {
			t.Errorf("the watch woke %d, %v", woken, err)
		}
		h.give(mended)
		if end, err := h.Provider.ReadTerminalEvent(ctx, h.read(in).ExecutionID); err != nil || string(end.Output) != "7" {
			t.Errorf("ended with %s %s, %v", end.Kind, end.Output, err)
		}
	})
}

// Interleaving: nobody dies, but each delivery loses the answer to its mark, or the call that takes it away fails at first, and then
// fails for a reason that is not its code's. A process that lives leaves no mark.
func TestR13AMarkOfAProcessThatLivesIsTakenAway(t *testing.T) {
	t.Parallel()
	for _, lost := range []string{"mark", "unmark"} {
		t.Run(lost, func(t *testing.T) {
			t.Parallel()
			inBubble(t, simhub.Options{MaxAttempts: 1, SendAnewAfter: -1}, func(_ context.Context, h *hub) {
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
					t.Errorf("after %d failures it ended with %s %s", failures, end.String(), end.Output)
				}
				h.checkRest()
			})
		})
	}
}

// resumes lets a build report in which a blocked instance can go on, and wants it to: with what was parked.
func (h *hub) resumes(ctx context.Context, in provider.Instance, f *fatal) {
	h.t.Helper()
	time.Sleep(time.Second)
	mended := h.orchestrator(f.registry(), "mended")
	if woken, err := h.Timekeeper.Sweep(ctx); woken != 1 || err != nil {
		h.t.Errorf("the watch woke %d, %v", woken, err)
	}
	h.give(mended)
	end, err := h.Provider.ReadTerminalEvent(ctx, in.ExecutionID)
	if err != nil || string(end.Output) != "7" {
		h.t.Errorf("ended with %s %s, %v", end.Kind, end.Output, err)
	}
	h.events(in)
}

// The code dies in the replay already, before the turn has anything to do.
func TestR13AReplayThatTakesItsProcessDownBlocksItsInstance(t *testing.T) {
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
			t.Fatalf("it is %s: %+v", now.Status, now.Diagnosis)
		}
		if n := replays.Load(); n != 13 {
			t.Errorf("replayed in %d deliveries", n)
		}
		f.alive.Store(true)
		time.Sleep(time.Second)
		mended := h.orchestrator(r, "mended")
		if woken, err := h.Timekeeper.Sweep(ctx); woken != 1 || err != nil {
			t.Errorf("the watch woke %d, %v", woken, err)
		}
		h.give(mended)
		if end, err := h.Provider.ReadTerminalEvent(ctx, in.ExecutionID); err != nil || string(end.Output) != "7" {
			t.Errorf("ended with %s %s, %v", end.Kind, end.Output, err)
		}
	})
}

// blockedAsPoison is an instance of which a turn has killed its process until it was blocked.
func (h *hub) blockedAsPoison() provider.Instance {
	h.t.Helper()
	in := h.start("fatal", 1)
	h.serveFor(time.Minute)
	h.raise(in, "e", 1)
	h.serveFor(2 * time.Hour)
	return in
}

// More memory is no new build: each message that comes to an instance which is blocked as poison has one try, and no more.
func TestR13AMessageToABlockedInstanceHasOneTry(t *testing.T) {
	t.Parallel()
	f := &fatal{}
	inBubble(t, simhub.Options{Registry: f.registry(), Intercept: f.crash()}, func(_ context.Context, h *hub) {
		in := h.blockedAsPoison()
		h.raise(in, "f", 2)
		h.serveFor(time.Hour)
		if n := f.ran.Load(); n != 14 || h.read(in).Status != provider.StatusBlocked {
			t.Errorf("it ran %d times, and is %s", n, h.read(in).Status)
		}
		f.alive.Store(true)
		h.raise(in, "g", 3)
		if end := h.finish(in); string(end.Output) != "7" || h.read(in).Status != provider.StatusCompleted {
			t.Errorf("ended with %s", end.String())
		}
	})
}

func TestR13ABlockedInstanceCanBeTerminatedWithoutItsCode(t *testing.T) {
	t.Parallel()
	f := &fatal{}
	inBubble(t, simhub.Options{Registry: f.registry(), Intercept: f.crash()}, func(_ context.Context, h *hub) {
		in := h.blockedAsPoison()
		h.send(provider.Message{Kind: provider.MessageTerminate, InstanceID: in.InstanceID, Text: "enough"})
		if end := h.finish(in); end.Kind != history.OrchestrationTerminated {
			t.Errorf("ended with %s", end.Kind)
		}
	})
}

// A history that cannot be read takes no turn, ever: at the limit the instance is shown as blocked, and what came for it is in the
// dead letters. Once it can be read, a wake brings it back.
func TestR13AHistoryThatCannotBeReadBlocksItsInstance(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{Registry: sleeper(1, "add"), CacheBytes: -1}, func(ctx context.Context, h *hub) {
		in := h.start("sleeper", 0)
		h.turn(0)
		sound := h.item("x#"+in.ExecutionID, "h#0000000001")
		h.damage(sound)
		h.raise(in, "e", 5)
		h.serveFor(10 * time.Minute)
		if now := h.read(in); now.Status != provider.StatusRunning {
			t.Errorf("below the limit it is %s", now.Status)
		}
		h.serveFor(time.Hour)
		now := h.read(in)
		if now.Status != provider.StatusBlocked || now.Diagnosis == nil || now.Diagnosis.Type != history.TypeCorrupt || !strings.Contains(now.Diagnosis.Message, "h#0000000001") {
			t.Fatalf("it is %s: %+v", now.Status, now.Diagnosis)
		}
		h.wantDead("sim://inbox-dead.fifo", "h#0000000001")
		if _, err := h.Cloud.Table.PutItem(ctx, &dynamodb.PutItemInput{TableName: aTable(), Item: sound}); err != nil {
			t.Fatal(err)
		}
		later := h.orchestrator(sleeper(1, "add"), "later")
		if woken, err := h.Timekeeper.Sweep(ctx); woken != 1 || err != nil {
			t.Errorf("the watch woke %d, %v", woken, err)
		}
		h.give(later)
		if now := h.read(in); now.Status != provider.StatusRunning || now.Diagnosis != nil {
			t.Errorf("mended, it is %s: %+v", now.Status, now.Diagnosis)
		}
		h.raise(in, "f", 6)
		h.give(later)
		if end, err := h.Provider.ReadTerminalEvent(ctx, in.ExecutionID); err != nil || string(end.Output) != "6" {
			t.Errorf("ended with %s %s, %v", end.Kind, end.Output, err)
		}
	})
}

// A queue gives up what it has delivered a hundred times, and tells nobody, though no code has ever run: the watch picks it up.
func TestR13WhatAQueueMovedAwayIsPickedUp(t *testing.T) {
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
				if _, err := h.Timekeeper.Sweep(ctx); err != nil {
					t.Fatal(err)
				}
				time.Sleep(2 * time.Minute)
				if _, err := h.Timekeeper.Sweep(ctx); err != nil { // what was picked up is left alone
					t.Fatal(err)
				}
				if end := h.finish(in); end.Kind != history.OrchestrationCompleted || c.want != "" && string(end.Output) != c.want {
					t.Errorf("ended with %s %s", end.Kind, end.Output)
				}
				h.wantDead(h.Provider.Config().DeadLetters[name], "picked up")
			})
		})
	}
}

// exhaust delivers what is in a queue until the queue moves it to its dead letters.
func (h *hub) exhaust(ctx context.Context, queue, url string) {
	h.t.Helper()
	for n := 0; ; n++ {
		records := h.receive(url)
		switch {
		case len(records) == 0 && n > 0:
			return
		case len(records) != 1 || n == 100:
			h.t.Fatalf("%d records in the %d. delivery", len(records), n+1)
		}
		if err := h.Provider.AbandonRecords(ctx, queue, 0, records...); err != nil {
			h.t.Fatal(err)
		}
	}
}

// The watch dies at each call of a look: nothing is lost, and nothing done twice.
func TestR13ACrashOfTheWatchLosesNothing(t *testing.T) {
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
						return errors.New("the process has died")
					})
					if _, err := h.Timekeeper.Sweep(ctx); err == nil {
						t.Error("the look says nothing of it")
					}
					h.interfere(nil)
					time.Sleep(2 * time.Minute)
					if _, err := h.Timekeeper.Sweep(ctx); err != nil {
						t.Fatal(err)
					}
					if end := h.finish(in); string(end.Output) != "1" {
						t.Errorf("ended with %s %s", end.Kind, end.Output)
					}
					h.wantDead("sim://inbox-dead.fifo", "picked up")
				})
			})
		}
	}
}

// The first two deliveries cost nothing: see TestWhatAChainOfTenCosts. From the third on it is a write, and where the record goes back
// one more.
func TestWhatWatchingCosts(t *testing.T) {
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
			t.Errorf("%d updates, want the mark", n)
		}
		if end := h.finish(in); string(end.Output) != "1" {
			t.Errorf("ended with %s", end.String())
		}
	})
}

func aTable() *string {
	name := "perdure"
	return &name
}

// damage spoils a segment.
func (h *hub) damage(segment map[string]ddbtypes.AttributeValue) {
	h.t.Helper()
	spoiled := maps.Clone(segment)
	spoiled["events"] = &ddbtypes.AttributeValueMemberS{Value: "no events"}
	if _, err := h.Cloud.Table.PutItem(h.t.Context(), &dynamodb.PutItemInput{TableName: aTable(), Item: spoiled}); err != nil {
		h.t.Fatal(err)
	}
}

// What is done with is deleted before an instance begins that may take the process down.
func TestR13FinishedRecordsAreDeletedBeforeOneThatRunsAlone(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
		doubtful := h.start("nothing", 1)
		for n := range 3 {
			records := h.receive("sim://inbox.fifo")
			if n == 2 { // in this one it dies
				if _, err := h.Provider.PutCrashMarker(ctx, provider.Attempt{ExecutionID: doubtful.ExecutionID, Record: records[0]}); err != nil {
					t.Fatal(err)
				}
			}
			_ = h.Provider.AbandonRecords(ctx, provider.QueueInbox, 0, records...)
		}
		if _, err := h.Provider.StartOrchestration(ctx, provider.Start{InstanceID: "healthy", Name: "nothing", Input: encoded(t, 1), StartID: "s"}); err != nil {
			t.Fatal(err)
		}
		var deleted, begun atomic.Bool
		h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
			if c.Operation == "DeleteMessageBatch" {
				deleted.Store(true)
			}
			if p, ok := c.Input.(*dynamodb.PutItemInput); ok && text(p.Item, "pk") == "x#"+doubtful.ExecutionID && begun.CompareAndSwap(false, true) {
				if !deleted.Load() {
					t.Error("it begins, and the records of the others are still there")
				}
			}
			return next()
		})
		if failed := h.turn(0); len(failed) > 0 || !begun.Load() {
			t.Errorf("failed %v, begun: %v", failed, begun.Load())
		}
	})
}

// A warm instance replays nothing: its turn is watched all the same, and the mark goes when it is done, or has failed in a way that
// its code had no part in.
func TestR13AWarmTurnIsWatched(t *testing.T) {
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
		if ops := strings.Join(h.operations(from), " "); !strings.Contains(ops, "UpdateItem PutItem") || strings.Count(ops, "UpdateItem") != 1 {
			t.Errorf("a mark and the commit are expected: %s", ops)
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
				t.Fatalf("failed %v", failed)
			}
			time.Sleep(10 * time.Minute)
		}
		h.interfere(nil)
		if end := h.finish(in); string(end.Output) != "3" {
			t.Errorf("ended with %s", end.String())
		}
	})
}
