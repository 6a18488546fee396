package dispatch_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// pausing is what an orchestration does while others pause it.
type pausing struct {
	Events int
	Anew   bool // it continues as new at each event
	Heard  []int
}

// pausesWhile waits for events; meanwhile an activity, a timer and a child of its are under way. It says what it heard, in order.
func pausesWhile(ctx *perdure.OrchestrationContext, p pausing) (string, error) {
	beside := []perdure.Awaitable{
		perdure.CallActivity(ctx, inc, p.Events), perdure.CreateTimer(ctx, time.Minute), perdure.CallSubOrchestrationByName[int](ctx, "nothing", 1),
	}
	for len(p.Heard) < p.Events {
		n, err := perdure.WaitForExternalEvent[int](ctx, "add").Await(ctx)
		if err != nil {
			return "", err
		}
		if p.Heard = append(p.Heard, n); p.Anew && len(p.Heard) < p.Events {
			if err := perdure.WhenAll(ctx, beside...); err != nil {
				return "", err
			}
			return perdure.ContinueAsNew[string](ctx, p)
		}
	}
	return fmt.Sprint("heard ", p.Heard), perdure.WhenAll(ctx, beside...)
}

// pause sends an order to pause, resume one to go on; each with an id.
func (h *hub) pause(in provider.Instance, id string) { h.send(pauseMessage(in, id, "ann")) }

func (h *hub) resume(in provider.Instance, id string) { h.send(resumeMessage(in, id, "bob")) }

func pauseMessage(in provider.Instance, id, by string) provider.Message {
	return provider.Message{
		Kind: provider.MessageExecutionSuspended, InstanceID: in.InstanceID, StartID: in.StartID, EventID: history.PauseIDPrefix + id,
		Text: "to look at it", RequestedBy: by,
	}
}

func resumeMessage(in provider.Instance, id, by string) provider.Message {
	m := pauseMessage(in, id, by)
	m.Kind = provider.MessageExecutionResumed
	return m
}

// wantPaused fails unless the instance is shown as paused, by ann, and nothing waits in its inbox.
func (h *hub) wantPaused(in provider.Instance) provider.Instance {
	h.t.Helper()
	now := h.read(in)
	if now.Status != provider.StatusPaused || now.Paused == nil || now.Paused.By != "ann" || now.Paused.Message != "to look at it" || now.Paused.At.IsZero() {
		h.t.Fatalf("the instance is %s: %+v\n%v", now.Status, now.Paused, h.events(now))
	}
	if left := h.receive(h.Provider.Config().InboxURL); len(left) > 0 {
		h.t.Errorf("%d messages wait in the inbox, such as %s", len(left), left[0].Body)
	}
	return now
}

// wantStatus fails unless the instance has a status, and nobody who has paused it unless it is paused.
func (h *hub) wantStatus(in provider.Instance, want provider.RuntimeStatus) {
	h.t.Helper()
	if now := h.read(in); now.Status != want || (now.Paused != nil) != (want == provider.StatusPaused) {
		h.t.Fatalf("the instance is %s (%+v), want %s\n%v", now.Status, now.Paused, want, h.events(now))
	}
}

// pausedMeanwhile pauses an instance at work, and has it go on when what it waits for has come.
func pausedMeanwhile(h *hub, in provider.Instance) {
	h.serveFor(time.Second)
	h.pause(in, "p1")
	for n := range 3 {
		h.raise(in, fmt.Sprint("e", n), n)
	}
	h.serveFor(time.Hour)
	h.resume(in, "r1")
}

// loseWake deletes what lies in the inbox.
func (h *hub) loseWake() {
	_ = h.Provider.DeleteRecords(h.t.Context(), provider.QueueInbox, h.receive(h.Provider.Config().InboxURL)...)
}

// pausedBeforeItBegins pauses an instance before its first turn.
func pausedBeforeItBegins(h *hub, in provider.Instance) {
	h.loseWake()
	h.send(pauseMessage(in, "p1", "ann"))
	h.serveFor(time.Hour)
	for n := range 3 {
		h.raise(in, fmt.Sprint("e", n), n)
	}
	h.resume(in, "r1")
}

// What arrives for a paused instance is in history, in the order of its arrival, and no code runs. When it goes on its code takes it in that
// order, in a turn of its own. What it has scheduled went on meanwhile.
func TestR25WhatArrivesForAPausedInstanceIsTakenWhenItGoesOn(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{Environments: 2}, func(_ context.Context, h *hub) {
		in := h.start("pauses", pausing{Events: 3})
		h.turn(0)
		h.pause(in, "p1")
		h.turn(0)
		h.wantStatus(in, provider.StatusPaused)
		for n := range 3 {
			h.raise(in, "", n)
		}
		h.serveFor(time.Hour)
		now := h.wantPaused(in)

		var parked []string
		for _, e := range h.events(now) {
			for _, input := range e.Inputs {
				parked = append(parked, string(input.Kind))
			}
		}
		slices.Sort(parked)
		want := []string{"ActivityCompleted", "ExternalEventRaised", "ExternalEventRaised", "ExternalEventRaised", "SubOrchestrationCompleted", "TimerFired"}
		if !slices.Equal(parked, want) {
			t.Errorf("%v are parked, want %v", parked, want)
		}
		if n := countKinds(h.events(now), history.TurnStarted); n != 1 {
			t.Errorf("%d turns have run, want the first alone", n)
		}

		h.resume(in, "r1")
		end := h.finish(in)
		events := h.events(in)
		if string(end.Output) != `"heard [0 1 2]"` || countKinds(events, history.TurnStarted) != 2 {
			t.Errorf("ended with %s %s: %v", end.String(), end.Output, events)
		}
		i := slices.IndexFunc(events, func(e history.Event) bool { return e.Kind == history.ExecutionResumed })
		if i < 0 || events[i].RequestedBy != "bob" || events[i].Message != "to look at it" || events[i+1].Kind != history.TurnStarted {
			t.Errorf("history does not say who has it go on: %v", events)
		}
		h.checkRest()
	})
}

// Interleavings: an order finds the instance in each state. Of several pauses the first counts, and one order to go on ends it; that of an instance
// which is not paused changes nothing, nor does a copy of a pause that comes after it, as a message of its own.
func TestR25OrdersInAnyOrder(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		orders string // p: pause, r: resume, P: a copy of the first pause; a blank begins another batch
		want   provider.RuntimeStatus
		events int // of these two kinds
	}{
		"paused":                                {"p", provider.StatusPaused, 1},
		"paused twice":                          {"p pp", provider.StatusPaused, 1},
		"paused twice in a batch":               {"pp", provider.StatusPaused, 1},
		"paused and resumed in a batch":         {"pr", provider.StatusRunning, 2},
		"resumed":                               {"r", provider.StatusRunning, 0},
		"resumed, then paused":                  {"rp", provider.StatusPaused, 1},
		"paused twice, resumed":                 {"p pp r", provider.StatusRunning, 2},
		"resumed twice":                         {"p rr r", provider.StatusRunning, 2},
		"a copy of the pause after the resume":  {"p r P", provider.StatusRunning, 2},
		"a copy of the pause in that batch":     {"prP", provider.StatusRunning, 2},
		"paused again":                          {"p r p", provider.StatusPaused, 3},
		"a copy of the pause in the next pause": {"p r p P r", provider.StatusRunning, 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
				in := h.start("pauses", pausing{Events: 1})
				h.turn(0)
				sent := 0
				for batch := range strings.FieldsSeq(c.orders) {
					for _, order := range batch {
						switch order {
						case 'p':
							h.pause(in, fmt.Sprint("p", sent))
						case 'P':
							time.Sleep(6 * time.Minute) // the queue has forgotten the first
							h.pause(in, "p0")
						default:
							h.resume(in, fmt.Sprint("r", sent))
						}
						sent++
					}
					for len(h.turn(0)) > 0 {
						t.Fatal("a message failed")
					}
				}
				h.wantStatus(in, c.want)
				events := h.events(in)
				if n := countKinds(events, history.ExecutionSuspended) + countKinds(events, history.ExecutionResumed); n != c.events {
					t.Errorf("history has %d orders, want %d: %v", n, c.events, events)
				}
				if c.want == provider.StatusPaused {
					h.resume(in, "last")
				}
				h.raise(in, "", 7)
				if end := h.finish(in); string(end.Output) != `"heard [7]"` {
					t.Errorf("ended with %s %s", end.String(), end.Output)
				}
				h.checkRest()
			})
		})
	}
}

// Interleaving: an event and a pause are in one batch, and the code continues as new on the event. The pause holds for the next execution,
// before its first turn; a copy of it that comes when the instance has gone on and continued as new once more changes nothing.
func TestR25APauseHoldsForTheNextExecution(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{Registry: versions("1")}, func(_ context.Context, h *hub) {
		in := h.start("which", 3)
		h.turn(0)
		h.raise(in, "e1", 1)
		h.pause(in, "p1")
		h.turn(0)
		now := h.wantPaused(in)
		if now.ExecutionNumber != 2 || countKinds(h.events(now), history.TurnStarted) != 0 {
			t.Fatalf("execution %d is paused: %v", now.ExecutionNumber, h.events(now))
		}
		h.resume(in, "r1")
		h.turn(0)
		h.wantStatus(in, provider.StatusRunning)
		h.raise(in, "e2", 1)
		h.turn(0)
		time.Sleep(6 * time.Minute)
		h.pause(in, "p1")
		h.turn(0)
		if now := h.read(in); now.ExecutionNumber != 3 || now.Status != provider.StatusRunning {
			t.Fatalf("execution %d is %s", now.ExecutionNumber, now.Status)
		}
		h.raise(in, "e3", 1)
		h.finish(in)
		h.checkRest()
	})
}

// Interleavings: a pause comes before the first turn, of an instance that is to begin later too, whose timer fires meanwhile or later. Nothing of it
// runs before it goes on, nor before it is to begin.
func TestR25AnInstanceIsPausedBeforeItBegins(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		after, goesOn time.Duration
	}{
		"at once":                       {0, time.Hour},
		"its time comes meanwhile":      {10 * time.Minute, time.Hour},
		"its time comes later":          {2 * time.Hour, time.Hour},
		"before its wake":               {0, 0},
		"its time comes as it goes on":  {time.Hour, time.Hour},
		"its time comes just after":     {time.Hour + 2*time.Second, time.Hour},
		"its time comes in the hops":    {40 * time.Minute, time.Hour},
		"its time comes in some months": {100 * 24 * time.Hour, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, simhub.Options{Environments: 2}, func(ctx context.Context, h *hub) {
				s := provider.Start{InstanceID: "i-1", Name: "chain", Input: encoded(t, 2), StartID: "start-1"}
				begins := time.Now()
				if c.after > 0 {
					s.StartAt = begins.Add(c.after)
					begins = s.StartAt
				}
				in := must(h.Provider.StartOrchestration(ctx, s))
				h.loseWake()
				h.pause(in, "p1")
				h.serveFor(c.goesOn + time.Second)
				if c.goesOn > 0 {
					h.wantPaused(in)
				}
				resumed := time.Now()
				h.resume(in, "r1")
				if resumed.Before(begins) {
					h.serveFor(time.Second / 2)
					h.wantStatus(in, provider.StatusPending)
				}
				h.serveFor(101 * 24 * time.Hour)
				h.wantStatus(in, provider.StatusCompleted)
				events := h.events(in)
				i := slices.IndexFunc(events, func(e history.Event) bool { return e.Kind == history.ActivityScheduled })
				if events[i].Time.Before(begins.Truncate(time.Millisecond)) || events[i].Time.Before(resumed) {
					t.Errorf("it was to begin at %v, went on at %v, and began at %v", begins, resumed, events[i].Time)
				}
				h.checkRest()
			})
		})
	}
}

// A cancel of a paused instance is kept, and its code unwinds when it goes on. An order to terminate ends it at once, and a purge deletes it: what it
// has outstanding is cancelled, though its code is not there.
func TestR25APausedInstanceIsEnded(t *testing.T) {
	t.Parallel()
	paused := func(t *testing.T, then func(ctx context.Context, h *hub, in provider.Instance)) {
		t.Helper()
		inBubble(t, simhub.Options{Environments: 2}, func(ctx context.Context, h *hub) {
			in := h.start("timer", 100*time.Hour)
			h.turn(0)
			h.pause(in, "p1")
			h.turn(0)
			h.raise(in, "", 1)
			h.turn(0)
			h.wantPaused(in)
			then(ctx, h, in)
			h.serveFor(101 * time.Hour)
			h.checkRest()
		})
	}
	t.Run("cancel", func(t *testing.T) {
		t.Parallel()
		paused(t, func(_ context.Context, h *hub, in provider.Instance) {
			h.send(provider.Message{Kind: provider.MessageCancel, InstanceID: "i-1", Reason: "requested", RequestedBy: "client"})
			h.serveFor(time.Minute)
			h.wantPaused(in)
			h.resume(in, "r1")
			h.serveFor(time.Minute)
			h.wantStatus(in, provider.StatusCancelled)
		})
	})
	t.Run("terminate", func(t *testing.T) {
		t.Parallel()
		paused(t, func(_ context.Context, h *hub, in provider.Instance) {
			h.send(provider.Message{Kind: provider.MessageTerminate, InstanceID: "i-1", Text: "enough", RequestedBy: "ann"})
			h.turn(1)
			h.wantStatus(in, provider.StatusTerminated)
			if n := countKinds(h.events(in), history.TimerCancelled); n != 1 {
				t.Errorf("%d timers were cancelled, want 1", n)
			}
		})
	})
	t.Run("terminate behind a resume", func(t *testing.T) {
		t.Parallel()
		paused(t, func(_ context.Context, h *hub, in provider.Instance) {
			h.resume(in, "r1")
			h.send(provider.Message{Kind: provider.MessageTerminate, InstanceID: "i-1"})
			h.turn(1)
			h.wantStatus(in, provider.StatusTerminated)
		})
	})
	t.Run("purge", func(t *testing.T) {
		t.Parallel()
		paused(t, func(ctx context.Context, h *hub, in provider.Instance) {
			if err := h.Provider.DeleteInstance(ctx, in.InstanceID, true); err != nil {
				t.Error(err)
			}
			h.pause(in, "p2")
			h.resume(in, "r2")
		})
	})
}

// An instance that is over takes no order.
func TestR25WhatIsOverIsNotPaused(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		in := h.start("nothing", 1)
		h.pause(provider.Instance{InstanceID: in.InstanceID, StartID: "another"}, "p0")
		h.turn(0)
		h.pause(in, "p1")
		h.resume(in, "r1")
		h.pause(provider.Instance{InstanceID: "nobody", StartID: "s"}, "p2")
		if failed := h.turn(0); len(failed) > 0 {
			t.Errorf("%d messages failed", len(failed))
		}
		h.wantStatus(in, provider.StatusCompleted)
		h.checkRest()
	})
}

// Attempts of activities go on while their instance is paused, by their policy: no code of the orchestration is needed (R14).
func TestR25AttemptsGoOnWhileTheirInstanceIsPaused(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{Environments: 2}, func(_ context.Context, h *hub) {
		in := h.start("retries", 4)
		h.turn(0)
		h.pause(in, "p1")
		h.turn(0)
		h.serveFor(24 * time.Hour)
		now := h.wantPaused(in)
		last := h.events(now)[len(h.events(now))-1]
		if last.Kind != history.InputsParked || len(last.Inputs) != 1 || last.Inputs[0].Kind != history.ActivityCompleted || last.Inputs[0].Attempt != 4 {
			t.Errorf("parked is %+v", last)
		}
		h.resume(in, "r1")
		if end := h.finish(in); string(end.Output) != "4" {
			t.Errorf("ended with %s %s", end.String(), end.Output)
		}
		h.checkRest()
	})
}

// Interleavings: a paused instance is blocked as well, since it was before, or a build without its code is deployed meanwhile. No build is asked to
// try it while it is paused. When it goes on it is blocked in the build that cannot, and goes on in one that can.
func TestR25APausedInstanceIsBlockedToo(t *testing.T) {
	t.Parallel()
	for _, blockedFirst := range []bool{true, false} {
		t.Run(fmt.Sprintf("blocked first=%t", blockedFirst), func(t *testing.T) {
			t.Parallel()
			inBubble(t, simhub.Options{Registry: sleeper(3, "add")}, func(ctx context.Context, h *hub) {
				in := h.start("sleeper", 0)
				h.turn(0)
				broken := h.orchestrator(sleeper(3, "plus"), "broken")
				tries := func(n int) {
					for range n {
						time.Sleep(10 * time.Minute)
						h.give(broken)
					}
				}
				if blockedFirst {
					h.raise(in, "", 1)
					tries(3)
					h.wantStatus(in, provider.StatusBlocked)
				}
				h.pause(in, "p1")
				h.give(broken)
				h.wantPaused(in)
				if !blockedFirst {
					h.raise(in, "", 1)
				}
				h.raise(in, "", 2)
				h.give(broken)
				h.wantPaused(in)
				other := h.orchestrator(sleeper(3, "minus"), "other")
				if woken, err := h.Timekeeper.Sweep(ctx); woken != 0 || err != nil {
					t.Errorf("the watch woke %d, %v", woken, err)
				}

				h.resume(in, "r1")
				tries(3)
				h.wantStatus(in, provider.StatusBlocked)
				time.Sleep(time.Second)
				mended := h.orchestrator(sleeper(3, "add"), "mended")
				if woken, err := h.Timekeeper.Sweep(ctx); woken != 1 || err != nil {
					t.Errorf("the watch woke %d, %v", woken, err)
				}
				h.give(mended)
				h.wantStatus(in, provider.StatusRunning)
				h.raise(in, "", 4)
				h.give(mended)
				if end, err := h.Provider.ReadTerminalEvent(ctx, in.ExecutionID); err != nil || string(end.Output) != "7" {
					t.Errorf("ended with %s %s, %v", end.Kind, end.Output, err)
				}
				other.Close()
				h.events(in)
			})
		})
	}
}

// A paused instance is not pending, though it has had no turn: the watch lets it be, and counts it as nothing that needs people.
func TestR25TheWatchLetsAPausedInstanceBe(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
		in := h.start("pauses", pausing{Events: 1})
		h.loseWake()
		time.Sleep(10 * time.Minute)
		h.pause(in, "p1")
		if woken, err := h.Timekeeper.Sweep(ctx); woken != 1 || err != nil { // no history says yet that it is paused
			t.Errorf("the watch woke %d, %v", woken, err)
		}
		h.turn(0)
		h.wantPaused(in)
		for range 5 {
			if woken, err := h.Timekeeper.Sweep(ctx); woken != 0 || err != nil {
				t.Errorf("the watch woke %d, %v", woken, err)
			}
			time.Sleep(time.Hour)
		}
		a, err := h.Provider.CountAttention(ctx)
		if err != nil || a.Blocked != 0 || !a.OldestPending.IsZero() {
			t.Errorf("attention: %+v, %v", a, err)
		}
		page, err := h.Provider.ListInstances(ctx, provider.ListQuery{Status: provider.StatusPaused})
		if err != nil || len(page.Instances) != 1 || page.Instances[0].Paused == nil {
			t.Errorf("listed as paused: %+v, %v", page.Instances, err)
		}
	})
}

// A status that could not be written is written later: that an instance is paused, and that it goes on.
func TestR25TheStatusOfAPauseIsWrittenLater(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		in := h.start("timer", 100*time.Hour)
		h.turn(0)
		for _, c := range []struct {
			order func(provider.Instance, string)
			want  provider.RuntimeStatus
		}{{h.pause, provider.StatusPaused}, {h.resume, provider.StatusRunning}} {
			h.interfere(func(_ context.Context, call simaws.Call, next func() error) error {
				if call.Operation == "DynamoDB.UpdateItem" || call.Operation == "UpdateItem" {
					return simhub.ErrFailed
				}
				return next()
			})
			before := h.read(in).Status
			c.order(in, string(c.want))
			h.turns()
			if now := h.read(in).Status; now != before {
				t.Errorf("the status is %s though it could not be written", now)
			}
			h.interfere(nil)
			h.serveFor(5 * time.Minute)
			h.wantStatus(in, c.want)
		}
	})
}

// A reconciliation finds a paused instance, whose queues are empty: it stays paused, what it had under way is sent again, and it goes on when it is
// resumed. One whose resume was lost before the turn that follows has that turn.
func TestR25AReconciliationLeavesAPauseAsItIs(t *testing.T) {
	t.Parallel()
	for _, resumedBefore := range []bool{false, true} {
		t.Run(fmt.Sprintf("resumed before=%t", resumedBefore), func(t *testing.T) {
			t.Parallel()
			inBubble(t, simhub.Options{Environments: 2}, func(ctx context.Context, h *hub) {
				in := h.start("fan", 3)
				h.turn(0)
				h.pause(in, "p1")
				h.complete(in, 1, 3)
				h.turn(0)
				h.wantPaused(in)
				if resumedBefore {
					h.resume(in, "r1")
					dead := false
					h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
						if dead {
							return simhub.ErrFailed
						}
						dead = c.Operation == "PutItem"
						return next()
					})
					if failed := h.turn(0); len(failed) != 1 {
						t.Fatalf("%d messages failed, want the resume", len(failed))
					}
					h.interfere(nil)
				}
				time.Sleep(10 * time.Minute)
				h.loseWake()
				_ = h.Provider.DeleteRecords(ctx, "default", h.receive(h.Provider.Config().WorkQueues["default"])...)

				if _, err := h.Provider.ReconcileInstance(ctx, in.InstanceID, provider.ReconcileOptions{Run: "run-1"}); err != nil {
					t.Fatal(err)
				}
				h.serveFor(time.Hour)
				if !resumedBefore {
					h.wantPaused(in)
					h.resume(in, "r1")
				}
				if end := h.finish(in); string(end.Output) != "6" {
					t.Errorf("ended with %s %s", end.String(), end.Output)
				}
				h.checkRest()
			})
		})
	}
}

// Every message that is sent comes twice, the second time as one of its own: pauses and resumes too.
func TestR25EveryMessageTwice(t *testing.T) {
	t.Parallel()
	for _, anew := range []bool{false, true} {
		inBubble(t, simhub.Options{Environments: 2}, func(ctx context.Context, h *hub) {
			h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
				in, ok := c.Input.(*sqs.SendMessageBatchInput)
				if !ok || aws.ToString(in.QueueUrl) != h.Provider.Config().InboxURL || strings.HasPrefix(aws.ToString(in.Entries[0].MessageDeduplicationId), "again") {
					return next()
				}
				err := next()
				twice := &sqs.SendMessageBatchInput{QueueUrl: in.QueueUrl, Entries: slices.Clone(in.Entries)}
				for i := range twice.Entries {
					twice.Entries[i].MessageDeduplicationId = aws.String("again" + aws.ToString(twice.Entries[i].MessageDeduplicationId))
				}
				if _, sent := h.Cloud.Queues.SendMessageBatch(ctx, twice); sent != nil {
					t.Error(sent)
				}
				return err
			})
			in := h.start("pauses", pausing{Events: 3, Anew: anew})
			pausedMeanwhile(h, in)
			if end := h.finish(in); string(end.Output) != `"heard [0 1 2]"` {
				t.Errorf("ended with %s %s", end.String(), end.Output)
			}
			h.checkRest()
		})
	}
}

// The children of a paused parent go on. A paused child hears that its parent cancels it when it has gone on, and its parent waits for its end.
func TestR25AFamilyIsPausedOneByOne(t *testing.T) {
	t.Parallel()
	r := registry()
	perdure.AddOrchestration(r, "guardian", func(ctx *perdure.OrchestrationContext, d time.Duration) (string, error) {
		limited, cancel := perdure.WithTimeout(ctx, d)
		defer cancel()
		_, err := perdure.CallSubOrchestrationByName[time.Time](limited, "timer", time.Hour, perdure.WithInstanceID("c"), perdure.WaitForCancellation()).Await(ctx)
		return map[bool]string{true: "done", false: "cancelled"}[err == nil], nil
	})
	child := provider.Instance{InstanceID: "c"}
	t.Run("parent", func(t *testing.T) {
		t.Parallel()
		inBubble(t, simhub.Options{Environments: 2, Registry: r}, func(_ context.Context, h *hub) {
			in := h.start("guardian", 2*time.Hour)
			h.serveFor(time.Second)
			h.pause(in, "p1")
			h.serveFor(90 * time.Minute)
			h.wantPaused(in)
			h.wantStatus(child, provider.StatusCompleted)
			h.resume(in, "r1")
			if end := h.finish(in); string(end.Output) != `"done"` {
				t.Errorf("ended with %s %s", end.String(), end.Output)
			}
			h.checkRest()
		})
	})
	t.Run("child", func(t *testing.T) {
		t.Parallel()
		inBubble(t, simhub.Options{Environments: 2, Registry: r}, func(_ context.Context, h *hub) {
			in := h.start("guardian", time.Minute)
			h.serveFor(time.Second)
			h.pause(h.read(child), "p1")
			h.serveFor(30 * time.Minute)
			h.wantPaused(child)
			h.wantStatus(in, provider.StatusRunning)
			h.resume(h.read(child), "r1")
			h.serveFor(time.Second)
			h.wantStatus(child, provider.StatusCancelled)
			if end := h.finish(in); string(end.Output) != `"cancelled"` {
				t.Errorf("ended with %s %s", end.String(), end.Output)
			}
			h.checkRest()
		})
	})
}

// countKinds counts the events of a kind in a history.
func countKinds(events []history.Event, kind history.Kind) (n int) {
	for i := range events {
		if events[i].Kind == kind {
			n++
		}
	}
	return n
}
