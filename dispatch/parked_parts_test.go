package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/shortrun"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// smallCommits is a provider whose commits hold few events. A few parked inputs are then consumed in parts, like
// thousands of inputs with the real limit.
type smallCommits struct {
	provider.Provider

	most int // events per turn
	// partSent is set after a part was committed and sent.
	partSent atomic.Bool
}

func (n *smallCommits) AckOrchestrationItem(ctx context.Context, t *provider.Turn) ([]provider.OutputFailure, error) {
	end := t.Events[len(t.Events)-1].Error
	if len(t.Events) > n.most && (end == nil || end.Type != history.TypePayloadTooLarge) {
		return nil, fmt.Errorf("%d events: %w", len(t.Events), provider.ErrTooLarge)
	}
	refused, err := n.Provider.AckOrchestrationItem(ctx, t)
	if err == nil && t.Events[0].ParkedConsumed > 0 {
		n.partSent.Store(true)
	}
	return refused, err
}

// plan is the input of an orchestration that consumes numbered events and has outputs of every kind for each. The
// sender counts from 0.
type plan struct {
	Next, All int // the next number, and the number at which it ends
	Each      int // numbers that one execution consumes; 0 means all
	Leaves    bool
	Fails     bool // also schedule an output that is rejected for each number
}

// planRegistry returns a registry with a sleeper that follows a plan and waits for events of the given name.
func planRegistry(name string) *perdure.Registry {
	r := registry()
	perdure.AddOrchestration(r, "sleeper", func(ctx *perdure.OrchestrationContext, p plan) (int, error) {
		var caused []perdure.Awaitable
		for n := 0; p.Next < p.All && (p.Each == 0 || n < p.Each); n++ {
			got, err := perdure.WaitForExternalEvent[int](ctx, name).Await(ctx)
			if err != nil {
				return 0, err
			}
			if got != p.Next {
				return 0, fmt.Errorf("got event %d, want %d", got, p.Next)
			}
			p.Next++
			if _, err := perdure.StartOrchestration(ctx, "nothing", got); err != nil {
				return 0, err
			}
			if p.Fails {
				if _, err := perdure.DefineActivity[int, int]("inc", perdure.OnQueue("nowhere")).Call(ctx,
					got).Await(ctx); err == nil {
					return 0, errors.New("activity on an unknown queue completed")
				}
			}
			if !p.Leaves {
				caused = append(caused, perdure.CallActivity(ctx, inc, got), perdure.CreateTimer(ctx, time.Minute),
					perdure.CallSubOrchestrationByName[int](ctx, "nothing", got))
			}
		}
		if p.Next < p.All {
			return perdure.ContinueAsNew[int](ctx, p)
		}
		return p.Next, perdure.WhenAll(ctx, caused...)
	})
	return r
}

// parted is a scenario of an instance whose parked inputs are consumed in parts.
type parted struct {
	name      string
	plan      plan
	parked    int  // events that arrive while the instance is blocked
	byEvent   bool // an event causes the first part, not a wake
	instances int
	most      int // events per commit
	end       history.Kind
}

func partedScenarios() []parted {
	return []parted{
		{"a wake", plan{All: 7}, 7, false, 1 + 14, 25, history.OrchestrationCompleted},
		{"an event", plan{All: 8}, 7, true, 1 + 16, 25, history.OrchestrationCompleted},
		{
			"outputs are refused",
			plan{All: 7, Leaves: true, Fails: true},
			7, true, 1 + 7, 6,
			history.OrchestrationCompleted,
		},
		{"ends in a part", plan{All: 5, Leaves: true}, 7, true, 1 + 5, 10, history.OrchestrationCompleted},
		{"is too large by itself", plan{All: 7}, 7, true, 1, 3, history.OrchestrationFailed},
		{
			"continues as new in a part",
			plan{All: 8, Each: 2, Leaves: true},
			7, true, 1 + 8, 5,
			history.OrchestrationCompleted,
		},
		{
			"continues as new in a part, by a wake",
			plan{All: 7, Each: 2, Leaves: true},
			7, false, 1 + 7, 5,
			history.OrchestrationCompleted,
		},
	}
}

// An instance was blocked, and parked more inputs than one commit of the fixed code holds. Turns consume the parked
// inputs in parts, and leave the message that caused the turn for later. The process crashes at any call. It crashes
// before a commit, between a commit and its dispatch, during the dispatch, between two parts, or before the message is
// deleted. The outputs of every part are sent.
func TestParkedInputs_consumedInParts_surviveCrashAtAnyCall(t *testing.T) {
	shortrun.Skip(t)
	t.Parallel()
	for _, p := range partedScenarios() {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/after=%v", p.name, after), func(t *testing.T) {
				t.Parallel()
				n := int64(1)
				for crashInParts(t, p, n, after) && !t.Failed() {
					n++
				}
				t.Logf("%d crashes", n-1)
			})
		}
	}
}

func crashInParts(t *testing.T, p parted, n int64, after bool) (crashed bool) {
	t.Helper()
	var fixed atomic.Bool
	var calls atomic.Int64
	o := simhub.Options{Registry: planRegistry("plus"), Intercept: simhub.Crash(func(simaws.Call) (bool, bool) {
		hit := fixed.Load() && calls.Add(1) == n
		return hit && !after, hit && after
	})}
	inBubble(t, o, func(ctx context.Context, h *hub) {
		in := h.parkedFor(p.plan, p.parked)
		old := h.Orchestrators[0]
		h.Orchestrators[0] = h.withSmallCommits(planRegistry("add"), "fixed", p.most)
		fixed.Store(true)
		if p.byEvent {
			h.raise(in, "the last", p.parked)
		} else {
			h.send(provider.Message{Kind: provider.MessageWake, InstanceID: in.InstanceID})
		}
		h.serveFor(2 * time.Hour)
		if end := h.end(in); end.Kind != p.end || end.Error == nil && string(end.Output) != fmt.Sprint(p.plan.All) {
			t.Errorf("crash at call %d: ended with %s, output %s, error %v, want %s, %d",
				n, end.String(), end.Output, end.Error, p.end, p.plan.All)
		}
		if !slices.ContainsFunc(h.stored(in.ExecutionID), func(e history.Event) bool { return e.ParkedConsumed > 0 }) {
			t.Errorf("crash at call %d: no turn consumed only parked inputs", n)
		}
		if err := h.CheckIdle(ctx); err != nil {
			t.Errorf("crash at call %d: %v", n, err)
		}
		h.wantInstances(p.instances)
		old.Close()
	})
	return calls.Load() >= n
}

// parkedFor starts the sleeper with a plan in a working build. The build of the hub then blocks the instance, and
// parkedFor sends numbers to it.
func (h *hub) parkedFor(p plan, numbers int) provider.Instance {
	h.t.Helper()
	in := h.start("sleeper", p)
	h.passRecords(h.orchestrator(planRegistry("add"), "before"))
	h.burst(in, numbers)
	h.serveFor(time.Hour)
	if now := h.read(in); now.Status != provider.StatusBlocked {
		h.t.Fatalf("got status %s, want Blocked", now.Status)
	}
	return in
}

// withSmallCommits returns an orchestrator of a build whose commits hold the given number of events.
func (h *hub) withSmallCommits(r *perdure.Registry, build string, events int) *dispatch.Orchestrator {
	h.t.Helper()
	return h.on(&smallCommits{Provider: h.Provider, most: events}, r, build)
}

// on returns an orchestrator of a build on a provider.
func (h *hub) on(p provider.Provider, r *perdure.Registry, build string) *dispatch.Orchestrator {
	h.t.Helper()
	o := must(dispatch.NewOrchestrator(r, p, &dispatch.OrchestratorOptions{
		BuildID: build, TurnTimeout: time.Second, Logger: slog.New(slog.DiscardHandler),
	}))
	h.t.Cleanup(o.Close)
	if err := o.ReportBuild(h.t.Context()); err != nil {
		h.t.Fatal(err)
	}
	return o
}

// end returns the end event of the instance.
func (h *hub) end(in provider.Instance) history.Event {
	h.t.Helper()
	end, err := h.Provider.ReadTerminalEvent(h.t.Context(), h.read(in).ExecutionID)
	if err != nil {
		h.t.Errorf("got status %s without an end event: %v", h.read(in).Status, err)
	}
	return end
}

// Interleaving:
//  1. Two environments receive the message that causes the parts.
//  2. One environment commits a part and crashes before the dispatch.
//  3. The commit of the other environment conflicts. It continues after the committed part, and sends the outputs of
//     that part.
func TestParkedInputs_processDiesAfterCommittingAPart_anotherSendsItsOutputs(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{Registry: planRegistry("plus")}, func(ctx context.Context, h *hub) {
		in := h.parkedFor(plan{All: 8}, 7)
		h.Orchestrators[0].Close()
		h.Orchestrators[0] = h.withSmallCommits(planRegistry("add"), "fixed", 25)
		stale := h.withSmallCommits(planRegistry("add"), "fixed", 25)
		h.raise(in, "the last", 7)
		batch := h.receive(h.Provider.Config().InboxURL)
		dies, done := false, false
		h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
			if dies && c.Operation == "SendMessageBatch" {
				return errors.New("the zombie crashed between commit and dispatch")
			}
			if c.Operation == "PutItem" && !done {
				dies, done = true, true
				stale.HandleRecords(ctx, batch)
				dies = false
			}
			return next()
		})
		h.acknowledge(batch, h.Orchestrators[0].HandleRecords(ctx, batch))
		h.interfere(nil)
		h.serveFor(time.Hour)
		if end := h.end(in); string(end.Output) != "8" || !done {
			t.Errorf("ended with %s", end.String())
		}
		h.checkIdle()
		h.wantInstances(1 + 16)
	})
}

// A message for a fixed instance is consumed after the parked inputs. If the code continues as new because of the
// parked inputs, the next execution receives the message. A termination or a cancel is not lost.
func TestParkedInputs_orderAfterContinueAsNew_reachesNextExecution(t *testing.T) {
	t.Parallel()
	for want, order := range map[history.Kind]provider.Message{
		history.OrchestrationTerminated: {Kind: provider.MessageTerminate},
		history.OrchestrationCancelled: {
			Kind: provider.MessageCancel, Reason: "requested", RequestedBy: history.RequestedByClient,
		},
	} {
		for _, events := range []int{5, 1000} { // in parts, and in one turn
			t.Run(fmt.Sprint(want, events), func(t *testing.T) {
				t.Parallel()
				inBubble(t, simhub.Options{Registry: planRegistry("plus")}, func(_ context.Context, h *hub) {
					in := h.parkedFor(plan{All: 100, Each: 2, Leaves: true}, 7)
					h.Orchestrators[0].Close()
					h.Orchestrators[0] = h.withSmallCommits(planRegistry("add"), "fixed", events)
					message := order
					message.InstanceID = in.InstanceID
					h.send(message)
					h.serveFor(time.Hour)
					if end := h.end(in); end.Kind != want {
						t.Errorf("ended with %s, want %s", end.String(), want)
					}
					if now := h.read(in); now.ExecutionNumber < 2 {
						t.Errorf("got execution %d, want at least 2", now.ExecutionNumber)
					}
				})
			})
		}
	}
}

// Interleaving:
//  1. A session repeats the dispatch for a redelivered message, and runs a turn that is too large for a commit.
//  2. While the session reads the history again, a second process commits all its messages.
//  3. The session counts no message twice.
func TestR4_turnTooLargeAndCommittedElsewhere_countsNoMessageTwice(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{Registry: sleeper(4, "add")}, func(ctx context.Context, h *hub) {
		in := h.start("sleeper", 0)
		first := h.receive(h.Provider.Config().InboxURL)
		h.Orchestrators[0].HandleRecords(ctx, first) // the process crashes before it deletes the record
		stale := h.orchestrator(sleeper(4, "add"), "wide")
		h.Orchestrators[0].Close()
		h.Orchestrators[0] = h.withSmallCommits(sleeper(4, "add"), "narrow", 4)
		for n := range 3 {
			h.raise(in, "", n+1) // an event without an ID can be recognized only by its sequence number
		}
		time.Sleep(2 * time.Minute)
		batch := h.receive(h.Provider.Config().InboxURL)
		reads := 0
		h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
			if c.Operation == "Query" {
				if reads++; reads == 2 {
					h.interfere(nil)
					stale.HandleRecords(ctx, batch[1:])
				}
			}
			return next()
		})
		h.acknowledge(batch, h.Orchestrators[0].HandleRecords(ctx, batch))
		if h.fault.Load() != nil || len(batch) < 4 {
			t.Fatalf("got %d records, %d reads", len(batch), reads)
		}
		h.raise(in, "", 10)
		h.serveFor(time.Hour)
		if end := h.end(in); string(end.Output) != "16" {
			t.Errorf("ended with %s, output %s, want 16", end.String(), end.Output)
		}
	})
}

// breakingRegistry returns a registry with a sleeper that waits for numbers, and blocks in a foreign goroutine at some
// numbers.
func breakingRegistry(numbers int, at func(number int) bool) *perdure.Registry {
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "sleeper", func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
		for i := range numbers {
			n, err := perdure.WaitForExternalEvent[int](ctx, "add").Await(ctx)
			if err != nil {
				return 0, err
			}
			if n != i {
				return 0, fmt.Errorf("got number %d, want %d", n, i)
			}
			if at(n) {
				done := make(chan struct{})
				go func() { defer close(done); perdure.WaitForExternalEvent[int](ctx, "add") }()
				<-done
			}
		}
		return numbers, nil
	})
	return r
}

// Thousands of parked inputs are consumed in parts. The code cannot process the second part, so the instance is blocked
// again. More inputs are parked. The next fixed build consumes all inputs once and in order.
func TestParkedInputs_secondPartBlocksAgain_losesNothing(t *testing.T) {
	shortrun.Skip(t)
	t.Parallel()
	blockedAgain(t, 2500, 3000, 0, false)
}

// This test has few inputs, and a crash at any call after the first fix.
func TestParkedInputs_secondPartBlocksAgain_survivesCrashAtAnyCall(t *testing.T) {
	t.Parallel()
	for _, after := range []bool{false, true} {
		t.Run(fmt.Sprintf("after=%v", after), func(t *testing.T) {
			t.Parallel()
			n := int64(1)
			for blockedAgain(t, 10, 12, n, after) && !t.Failed() {
				n++
			}
			t.Logf("%d crashes", n-1)
		})
	}
}

// blockedAgain tests a partial fix. A process crashes at the n-th call after the first fix. It reports whether there
// was such a call.
//  1. Numbers are parked.
//  2. After a part was sent, the code is fixed for all numbers except the last.
//  3. More numbers are sent, and the code is fixed completely.
func blockedAgain(t *testing.T, parked, all int, n int64, after bool) (crashed bool) {
	t.Helper()
	var fixed atomic.Bool
	var calls atomic.Int64
	never := func(int) bool { return false }
	o := simhub.Options{Registry: sleeper(all, "plus"), Intercept: simhub.Crash(func(simaws.Call) (bool, bool) {
		hit := fixed.Load() && calls.Add(1) == n
		return hit && !after, hit && after
	})}
	inBubble(t, o, func(ctx context.Context, h *hub) {
		in := h.block(breakingRegistry(all, never))
		h.burst(in, parked)
		h.serveFor(time.Hour)
		half := &smallCommits{Provider: h.Provider, most: parked * 3 / 2}
		fixed.Store(true)
		h.deployFix(in, h.on(half, breakingRegistry(all, func(number int) bool {
			return number == parked-1 && half.partSent.Load()
		}), "half fixed"))
		if now := h.read(in); half.partSent.Load() && (now.Status != provider.StatusBlocked ||
			now.Diagnosis.Type != history.TypeForeignGoroutine) {
			t.Errorf("crash at call %d: after the partial fix: got status %s, diagnosis %+v",
				n, now.Status, now.Diagnosis)
		}
		for i := parked; i < all; i++ {
			h.raise(in, fmt.Sprint("e-", i), i)
		}
		h.serveFor(time.Hour)
		h.deployFix(in, h.withSmallCommits(breakingRegistry(all, never), "fixed", parked*3/2))
		if end := h.end(in); string(end.Output) != fmt.Sprint(all) {
			t.Errorf("crash at call %d: ended with %s, output %s, error %v", n, end.String(), end.Output, end.Error)
		}
		events := h.stored(in.ExecutionID)
		first := slices.IndexFunc(events, func(e history.Event) bool { return e.ParkedConsumed > 0 })
		if first < 0 || half.partSent.Load() && !slices.ContainsFunc(events[first+1:], func(e history.Event) bool {
			return e.Kind == history.InputsParked
		}) {
			t.Errorf("crash at call %d: not blocked between two parts", n)
		}
		if err := h.CheckIdle(ctx); err != nil {
			t.Errorf("crash at call %d: %v", n, err)
		}
	})
	return calls.Load() >= n && n > 0
}

// deployFix sends the instance a wake and processes it in an orchestrator of another build, like the sweeper.
func (h *hub) deployFix(in provider.Instance, o *dispatch.Orchestrator) {
	h.t.Helper()
	h.Orchestrators[0].Close()
	h.Orchestrators[0] = o
	h.send(provider.Message{Kind: provider.MessageWake, InstanceID: in.InstanceID})
	h.serveFor(time.Hour)
}

// The outputs of parts are redispatched only after a crash. After the message that caused the parts is acknowledged, no
// process resends the activities.
func TestParkedInputs_partsAcknowledged_areNotRedispatched(t *testing.T) {
	t.Parallel()
	for name, leads := range map[string]provider.Message{
		"a wake": {Kind: provider.MessageWake},
		"an event": {
			Kind: provider.MessageEventRaised, Name: "add", EventID: "the last", Data: history.Payload("7"),
		},
		"a duplicate": {Kind: provider.MessageEventRaised, Name: "add", EventID: "e-3", Data: history.Payload("3")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, simhub.Options{Registry: planRegistry("plus")}, func(_ context.Context, h *hub) {
				in := h.parkedFor(plan{All: 9}, 7)
				leads.InstanceID = in.InstanceID
				h.send(leads)
				h.passRecords(h.withSmallCommits(planRegistry("add"), "fixed", 25))
				scheduled := len(h.workItems())
				if want := 7; scheduled < want {
					t.Fatalf("got %d activities, want at least %d", scheduled, want)
				}
				// each in a process that must read the history, before the received records are visible again
				for n := range 3 {
					h.send(provider.Message{
						Kind: provider.MessageTimerFired, InstanceID: in.InstanceID, ExecutionID: in.ExecutionID,
						TimerID: 1,
					})
					h.passRecords(h.withSmallCommits(planRegistry("add"), "fixed", 25))
					if again := len(h.workItems()); again > 0 {
						t.Errorf("message %d: %d activities were sent again", n+1, again)
					}
					time.Sleep(7 * time.Minute)
				}
			})
		})
	}
}
