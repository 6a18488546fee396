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

// pausing is the input of an orchestration that is paused while it waits.
type pausing struct {
	Events    int
	Continues bool // continue as new after each event
	Received  []int
}

// pausesWhile waits for events while an activity, a timer and a child are open. It returns the events in the order of
// their arrival.
func pausesWhile(ctx *perdure.OrchestrationContext, p pausing) (string, error) {
	beside := []perdure.Awaitable{
		perdure.CallActivity(ctx, inc, p.Events), perdure.CreateTimer(ctx, time.Minute),
		perdure.CallSubOrchestrationByName[int](ctx, "nothing", 1),
	}
	for len(p.Received) < p.Events {
		n, err := perdure.WaitForExternalEvent[int](ctx, "add").Await(ctx)
		if err != nil {
			return "", err
		}
		if p.Received = append(p.Received, n); p.Continues && len(p.Received) < p.Events {
			if err := perdure.WhenAll(ctx, beside...); err != nil {
				return "", err
			}
			return perdure.ContinueAsNew[string](ctx, p)
		}
	}
	return fmt.Sprint("received ", p.Received), perdure.WhenAll(ctx, beside...)
}

// pause and resume send requests with the given ID.
func (h *hub) pause(in provider.Instance, id string) { h.send(pauseMessage(in, id, "ann")) }

func (h *hub) resume(in provider.Instance, id string) { h.send(resumeMessage(in, id, "bob")) }

func pauseMessage(in provider.Instance, id, by string) provider.Message {
	return provider.Message{
		Kind: provider.MessageExecutionSuspended, InstanceID: in.InstanceID, StartID: in.StartID,
		EventID: history.PauseIDPrefix + id,
		Text:    "to look at it", RequestedBy: by,
	}
}

func resumeMessage(in provider.Instance, id, by string) provider.Message {
	m := pauseMessage(in, id, by)
	m.Kind = provider.MessageExecutionResumed
	return m
}

// wantPaused fails the test unless the instance was paused by ann and the inbox is empty.
func (h *hub) wantPaused(in provider.Instance) provider.Instance {
	h.t.Helper()
	now := h.read(in)
	if now.Status != provider.StatusPaused || now.Paused == nil || now.Paused.By != "ann" ||
		now.Paused.Message != "to look at it" || now.Paused.At.IsZero() {
		h.t.Fatalf("got status %s, pause %+v\n%v", now.Status, now.Paused, h.events(now))
	}
	if left := h.receive(h.Provider.Config().InboxURL); len(left) > 0 {
		h.t.Errorf("got %d messages in the inbox, want 0; first: %s", len(left), left[0].Body)
	}
	return now
}

// wantStatus fails the test unless the instance has the status, and has a pause only if it is paused.
func (h *hub) wantStatus(in provider.Instance, want provider.RuntimeStatus) {
	h.t.Helper()
	if now := h.read(in); now.Status != want || (now.Paused != nil) != (want == provider.StatusPaused) {
		h.t.Fatalf("got status %s (pause %+v), want %s\n%v", now.Status, now.Paused, want, h.events(now))
	}
}

// pausedMeanwhile pauses a running instance, and resumes it after its events have arrived.
func pausedMeanwhile(h *hub, in provider.Instance) {
	h.serveFor(time.Second)
	h.pause(in, "p1")
	for n := range 3 {
		h.raise(in, fmt.Sprint("e", n), n)
	}
	h.serveFor(time.Hour)
	h.resume(in, "r1")
}

// emptyInbox deletes all messages in the inbox.
func (h *hub) emptyInbox() {
	_ = h.Provider.DeleteRecords(h.t.Context(), provider.QueueInbox, h.receive(h.Provider.Config().InboxURL)...)
}

// pausedBeforeStart pauses an instance before its first turn.
func pausedBeforeStart(h *hub, in provider.Instance) {
	h.emptyInbox()
	h.send(pauseMessage(in, "p1", "ann"))
	h.serveFor(time.Hour)
	for n := range 3 {
		h.raise(in, fmt.Sprint("e", n), n)
	}
	h.resume(in, "r1")
}

// Messages for a paused instance are stored in history in the order of their arrival, and no code runs. After a resume,
// one turn consumes them in that order. Scheduled activities, timers and children continue during the pause.
func TestR25_messagesArriveDuringAPause_areConsumedAfterTheResume(t *testing.T) {
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
		want := []string{
			"ActivityCompleted", "ExternalEventRaised", "ExternalEventRaised", "ExternalEventRaised",
			"SubOrchestrationCompleted", "TimerFired",
		}
		if !slices.Equal(parked, want) {
			t.Errorf("got parked inputs %v, want %v", parked, want)
		}
		if n := countKinds(h.events(now), history.TurnStarted); n != 1 {
			t.Errorf("got %d turns, want only the first", n)
		}

		h.resume(in, "r1")
		end := h.finish(in)
		events := h.events(in)
		if string(end.Output) != `"received [0 1 2]"` || countKinds(events, history.TurnStarted) != 2 {
			t.Errorf("ended with %s, output %s: %v", end.String(), end.Output, events)
		}
		i := slices.IndexFunc(events, func(e history.Event) bool { return e.Kind == history.ExecutionResumed })
		if i < 0 || events[i].RequestedBy != "bob" || events[i].Message != "to look at it" ||
			events[i+1].Kind != history.TurnStarted {
			t.Errorf("history lacks the requester or the turn of the resume: %v", events)
		}
		h.checkIdle()
	})
}

// A request arrives in each state of the instance. The first of several pauses counts, and one resume ends it. A resume
// of an instance that is not paused has no effect. A later copy of a pause in a separate message also has no effect.
func TestR25_pausesAndResumes_anyOrder_endInTheExpectedStatus(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		orders string // p: pause, r: resume, P: a copy of the first pause; a blank starts another batch
		want   provider.RuntimeStatus
		events int // pause and resume events in history
	}{
		"paused":                               {"p", provider.StatusPaused, 1},
		"paused twice":                         {"p pp", provider.StatusPaused, 1},
		"paused twice in a batch":              {"pp", provider.StatusPaused, 1},
		"paused and resumed in a batch":        {"pr", provider.StatusRunning, 2},
		"resumed":                              {"r", provider.StatusRunning, 0},
		"resumed, then paused":                 {"rp", provider.StatusPaused, 1},
		"paused twice, resumed":                {"p pp r", provider.StatusRunning, 2},
		"resumed twice":                        {"p rr r", provider.StatusRunning, 2},
		"a copy of the pause after the resume": {"p r P", provider.StatusRunning, 2},
		"a copy of the pause in the batch of the resume": {"prP", provider.StatusRunning, 2},
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
							time.Sleep(6 * time.Minute) // SQS no longer stores the deduplication ID of the first pause
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
				if n := countKinds(events, history.ExecutionSuspended) + countKinds(events,
					history.ExecutionResumed); n != c.events {
					t.Errorf("got %d pauses and resumes in history, want %d: %v", n, c.events, events)
				}
				if c.want == provider.StatusPaused {
					h.resume(in, "last")
				}
				h.raise(in, "", 7)
				if end := h.finish(in); string(end.Output) != `"received [7]"` {
					t.Errorf("ended with %s, output %s", end.String(), end.Output)
				}
				h.checkIdle()
			})
		})
	}
}

// Interleaving:
//  1. An event and a pause arrive in one batch, and the code continues as new because of the event.
//  2. The pause applies to the next execution before its first turn.
//  3. The instance is resumed and continues as new again. A copy of the pause arrives and changes nothing.
func TestR25_pauseArrivesWithContinueAsNew_appliesToTheNextExecution(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{Registry: versions("1")}, func(_ context.Context, h *hub) {
		in := h.start("which", 3)
		h.turn(0)
		h.raise(in, "e1", 1)
		h.pause(in, "p1")
		h.turn(0)
		now := h.wantPaused(in)
		if now.ExecutionNumber != 2 || countKinds(h.events(now), history.TurnStarted) != 0 {
			t.Fatalf("got execution %d paused: %v", now.ExecutionNumber, h.events(now))
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
			t.Fatalf("got execution %d with status %s, want execution 3 Running", now.ExecutionNumber, now.Status)
		}
		h.raise(in, "e3", 1)
		h.finish(in)
		h.checkIdle()
	})
}

// A pause arrives before the first turn. The start may be delayed, and its timer may fire during the pause or later. No
// code runs before the resume, or before the start time.
func TestR25_pauseBeforeFirstTurn_startsAfterResumeAndDelay(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		after, resumeAt time.Duration
	}{
		"at once":                     {0, time.Hour},
		"start time during the pause": {10 * time.Minute, time.Hour},
		"start time after the pause":  {2 * time.Hour, time.Hour},
		"before the wake":             {0, 0},
		"start time at the resume":    {time.Hour, time.Hour},
		"start time just after":       {time.Hour + 2*time.Second, time.Hour},
		"start time between hops":     {40 * time.Minute, time.Hour},
		"start time in some months":   {100 * 24 * time.Hour, time.Hour},
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
				h.emptyInbox()
				h.pause(in, "p1")
				h.serveFor(c.resumeAt + time.Second)
				if c.resumeAt > 0 {
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
					t.Errorf("start time %v, resumed at %v; started at %v", begins, resumed, events[i].Time)
				}
				h.checkIdle()
			})
		})
	}
}

// A paused instance stores a cancel, and its code unwinds after the resume. A termination ends the instance at once,
// and a purge deletes it. Both cancel outstanding timers without running code.
func TestR25_pausedInstance_canBeCancelledTerminatedAndPurged(t *testing.T) {
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
			h.checkIdle()
		})
	}
	t.Run("cancel", func(t *testing.T) {
		t.Parallel()
		paused(t, func(_ context.Context, h *hub, in provider.Instance) {
			h.send(provider.Message{
				Kind: provider.MessageCancel, InstanceID: "i-1", Reason: "requested", RequestedBy: "client",
			})
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
			h.send(provider.Message{
				Kind: provider.MessageTerminate, InstanceID: "i-1", Text: "enough", RequestedBy: "ann",
			})
			h.turn(1)
			h.wantStatus(in, provider.StatusTerminated)
			if n := countKinds(h.events(in), history.TimerCancelled); n != 1 {
				t.Errorf("got %d cancelled timers, want 1", n)
			}
		})
	})
	t.Run("terminate after a resume", func(t *testing.T) {
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

// An ended instance ignores requests to pause or resume.
func TestR25_endedInstance_ignoresPause(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		in := h.start("nothing", 1)
		h.pause(provider.Instance{InstanceID: in.InstanceID, StartID: "another"}, "p0")
		h.turn(0)
		h.pause(in, "p1")
		h.resume(in, "r1")
		h.pause(provider.Instance{InstanceID: "missing", StartID: "s"}, "p2")
		if failed := h.turn(0); len(failed) > 0 {
			t.Errorf("got %d failed messages, want 0", len(failed))
		}
		h.wantStatus(in, provider.StatusCompleted)
		h.checkIdle()
	})
}

// Attempts of activities continue according to their retry policy while the instance is paused, because they need no
// code of the orchestration (R14).
func TestR25_pausedInstance_retriesContinue(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{Environments: 2}, func(_ context.Context, h *hub) {
		in := h.start("retries", 4)
		h.turn(0)
		h.pause(in, "p1")
		h.turn(0)
		h.serveFor(24 * time.Hour)
		now := h.wantPaused(in)
		last := h.events(now)[len(h.events(now))-1]
		if last.Kind != history.InputsParked || len(last.Inputs) != 1 ||
			last.Inputs[0].Kind != history.ActivityCompleted || last.Inputs[0].Attempt != 4 {
			t.Errorf("last event: got %+v, want the parked completion of attempt 4", last)
		}
		h.resume(in, "r1")
		if end := h.finish(in); string(end.Output) != "4" {
			t.Errorf("ended with %s, output %s, want 4", end.String(), end.Output)
		}
		h.checkIdle()
	})
}

// A paused instance is also blocked, because it was blocked before the pause, or because a build without its code was
// deployed during the pause. No build tries the instance while it is paused. After the resume, the instance is blocked
// in a build that cannot process it, and continues in a build that can.
func TestR25_pausedInstance_isBlockedOnlyAfterResume(t *testing.T) {
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
						h.passRecords(broken)
					}
				}
				if blockedFirst {
					h.raise(in, "", 1)
					tries(3)
					h.wantStatus(in, provider.StatusBlocked)
				}
				h.pause(in, "p1")
				h.passRecords(broken)
				h.wantPaused(in)
				if !blockedFirst {
					h.raise(in, "", 1)
				}
				h.raise(in, "", 2)
				h.passRecords(broken)
				h.wantPaused(in)
				other := h.orchestrator(sleeper(3, "minus"), "other")
				if woken, err := h.Renewer.Sweep(ctx); woken != 0 || err != nil {
					t.Errorf("got %d wakes, error %v, want 0", woken, err)
				}

				h.resume(in, "r1")
				tries(3)
				h.wantStatus(in, provider.StatusBlocked)
				time.Sleep(time.Second)
				fixed := h.orchestrator(sleeper(3, "add"), "fixed")
				if woken, err := h.Renewer.Sweep(ctx); woken != 1 || err != nil {
					t.Errorf("got %d wakes, error %v, want 1", woken, err)
				}
				h.passRecords(fixed)
				h.wantStatus(in, provider.StatusRunning)
				h.raise(in, "", 4)
				h.passRecords(fixed)
				if end, err := h.Provider.ReadTerminalEvent(ctx, in.ExecutionID); err != nil ||
					string(end.Output) != "7" {
					t.Errorf("ended with %s, output %s, error %v, want 7", end.Kind, end.Output, err)
				}
				other.Close()
				h.events(in)
			})
		})
	}
}

// A paused instance is not pending, even without a first turn. The sweeper sends no wake, and does not count the
// instance as one that needs attention.
func TestR25_pausedInstance_sweeperSendsNoWake(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
		in := h.start("pauses", pausing{Events: 1})
		h.emptyInbox()
		time.Sleep(10 * time.Minute)
		h.pause(in, "p1")
		if woken, err := h.Renewer.Sweep(ctx); woken != 1 || err != nil { // the pause is not in history yet
			t.Errorf("got %d wakes, error %v, want 1", woken, err)
		}
		h.turn(0)
		h.wantPaused(in)
		for range 5 {
			if woken, err := h.Renewer.Sweep(ctx); woken != 0 || err != nil {
				t.Errorf("got %d wakes, error %v, want 0", woken, err)
			}
			time.Sleep(time.Hour)
		}
		a, err := h.Provider.CountAttention(ctx)
		if err != nil || a.Blocked != 0 || !a.OldestPending.IsZero() {
			t.Errorf("got attention %+v, error %v, want none", a, err)
		}
		page, err := h.Provider.ListInstances(ctx, provider.ListQuery{Status: provider.StatusPaused})
		if err != nil || len(page.Instances) != 1 || page.Instances[0].Paused == nil {
			t.Errorf("got paused instances %+v, error %v, want 1", page.Instances, err)
		}
	})
}

// The status of a pause or a resume that could not be written is written later.
func TestR25_statusWriteFails_isWrittenLater(t *testing.T) {
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
				t.Errorf("got status %s although the write failed", now)
			}
			h.interfere(nil)
			h.serveFor(5 * time.Minute)
			h.wantStatus(in, c.want)
		}
	})
}

// A reconciliation finds a paused instance with empty queues. The instance stays paused, its open outputs are resent,
// and it continues after a resume. If the resume was lost before its turn, the reconciliation causes that turn.
func TestR25_reconciliation_keepsThePause(t *testing.T) {
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
						t.Fatalf("got %d failed messages, want the resume", len(failed))
					}
					h.interfere(nil)
				}
				time.Sleep(10 * time.Minute)
				h.emptyInbox()
				_ = h.Provider.DeleteRecords(ctx, "default", h.receive(h.Provider.Config().WorkQueues["default"])...)

				if _, err := h.Provider.ReconcileInstance(ctx, in.InstanceID,
					provider.ReconcileOptions{Run: "run-1"}); err != nil {
					t.Fatal(err)
				}
				h.serveFor(time.Hour)
				if !resumedBefore {
					h.wantPaused(in)
					h.resume(in, "r1")
				}
				if end := h.finish(in); string(end.Output) != "6" {
					t.Errorf("ended with %s, output %s, want 6", end.String(), end.Output)
				}
				h.checkIdle()
			})
		})
	}
}

// Every message is sent twice, the second time with another deduplication ID. This includes pauses and resumes.
func TestR25_everyMessageSentTwice_changesNothing(t *testing.T) {
	t.Parallel()
	for _, anew := range []bool{false, true} {
		inBubble(t, simhub.Options{Environments: 2}, func(ctx context.Context, h *hub) {
			h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
				in, ok := c.Input.(*sqs.SendMessageBatchInput)
				if !ok || aws.ToString(in.QueueUrl) != h.Provider.Config().InboxURL ||
					strings.HasPrefix(aws.ToString(in.Entries[0].MessageDeduplicationId), "again") {
					return next()
				}
				err := next()
				twice := &sqs.SendMessageBatchInput{QueueUrl: in.QueueUrl, Entries: slices.Clone(in.Entries)}
				for i := range twice.Entries {
					twice.Entries[i].MessageDeduplicationId = aws.String("again" +
						aws.ToString(twice.Entries[i].MessageDeduplicationId))
				}
				if _, sent := h.Cloud.Queues.SendMessageBatch(ctx, twice); sent != nil {
					t.Error(sent)
				}
				return err
			})
			in := h.start("pauses", pausing{Events: 3, Continues: anew})
			pausedMeanwhile(h, in)
			if end := h.finish(in); string(end.Output) != `"received [0 1 2]"` {
				t.Errorf("ended with %s, output %s", end.String(), end.Output)
			}
			h.checkIdle()
		})
	}
}

// The children of a paused parent continue. A paused child receives its parent's cancel after it is resumed, and the
// parent waits for its end.
func TestR25_parentAndChild_arePausedSeparately(t *testing.T) {
	t.Parallel()
	r := registry()
	perdure.AddOrchestration(r, "guardian", func(ctx *perdure.OrchestrationContext, d time.Duration) (string, error) {
		limited, cancel := perdure.WithTimeout(ctx, d)
		defer cancel()
		_, err := perdure.CallSubOrchestrationByName[time.Time](limited, "timer", time.Hour,
			perdure.WithInstanceID("c"), perdure.WaitForCancellation()).Await(ctx)
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
				t.Errorf("ended with %s, output %s, want done", end.String(), end.Output)
			}
			h.checkIdle()
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
				t.Errorf("ended with %s, output %s, want cancelled", end.String(), end.Output)
			}
			h.checkIdle()
		})
	})
}

// countKinds counts the events of a kind.
func countKinds(events []history.Event, kind history.Kind) (n int) {
	for i := range events {
		if events[i].Kind == kind {
			n++
		}
	}
	return n
}
