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

// narrow is a provider whose commits hold few events: so a handful of parked inputs is taken in parts, as thousands are else.
type narrow struct {
	provider.Provider

	most int // events of a turn
	// parted: a part was committed and sent.
	parted atomic.Bool
}

func (n *narrow) AckOrchestrationItem(ctx context.Context, t *provider.Turn) ([]provider.OutputFailure, error) {
	end := t.Events[len(t.Events)-1].Error
	if len(t.Events) > n.most && (end == nil || end.Type != history.TypePayloadTooLarge) {
		return nil, fmt.Errorf("%d events: %w", len(t.Events), provider.ErrTooLarge)
	}
	refused, err := n.Provider.AckOrchestrationItem(ctx, t)
	if err == nil && t.Events[0].ParkedConsumed > 0 {
		n.parted.Store(true)
	}
	return refused, err
}

// plan is what an orchestration does with the numbers that come as events: of each it causes something of every kind. Whoever sends
// them counts from 0.
type plan struct {
	Next, All int // the number that is due, and the one that it ends with
	Each      int // how many an execution takes; 0: all
	Leaves    bool
	Fails     bool // of each number something is refused, too
}

// planned is a registry of the sleeper that follows a plan, by events of a name.
func planned(name string) *perdure.Registry {
	r := registry()
	perdure.AddOrchestration(r, "sleeper", func(ctx *perdure.OrchestrationContext, p plan) (int, error) {
		var caused []perdure.Awaitable
		for n := 0; p.Next < p.All && (p.Each == 0 || n < p.Each); n++ {
			got, err := perdure.WaitForExternalEvent[int](ctx, name).Await(ctx)
			if err != nil {
				return 0, err
			}
			if got != p.Next {
				return 0, fmt.Errorf("event %d came where %d was due", got, p.Next)
			}
			p.Next++
			if _, err := perdure.StartOrchestration(ctx, "nothing", got); err != nil {
				return 0, err
			}
			if p.Fails {
				if _, err := perdure.DefineActivity[int, int]("inc", perdure.OnQueue("nowhere")).Call(ctx, got).Await(ctx); err == nil {
					return 0, errors.New("nowhere is somewhere")
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

// parted is a scenario of an instance whose parked inputs are taken in parts.
type parted struct {
	name      string
	plan      plan
	parked    int  // events that come while it is blocked
	byEvent   bool // an event leads to the first part, and not a wake
	instances int
	most      int // events of a commit
	end       history.Kind
}

func partings() []parted {
	return []parted{
		{"a wake", plan{All: 7}, 7, false, 1 + 14, 25, history.OrchestrationCompleted},
		{"an event", plan{All: 8}, 7, true, 1 + 16, 25, history.OrchestrationCompleted},
		{"outputs are refused", plan{All: 7, Leaves: true, Fails: true}, 7, true, 1 + 7, 6, history.OrchestrationCompleted},
		{"ends in a part", plan{All: 5, Leaves: true}, 7, true, 1 + 5, 10, history.OrchestrationCompleted},
		{"is too large by itself", plan{All: 7}, 7, true, 1, 3, history.OrchestrationFailed},
		{"continues as new in a part", plan{All: 8, Each: 2, Leaves: true}, 7, true, 1 + 8, 5, history.OrchestrationCompleted},
		{"continues as new in a part, by a wake", plan{All: 7, Each: 2, Leaves: true}, 7, false, 1 + 7, 5, history.OrchestrationCompleted},
	}
}

// Interleavings: an instance was blocked, and has been sent more than a commit of its mended code holds. Turns take that in parts, and
// leave the message that led to them alone: it is behind what was parked. The process dies before a commit, between a commit and what
// follows from it, half-way through that, between two parts, before the message is deleted. All that every part has caused is sent.
func TestWhatAPartOfTheParkedInputsCausedSurvivesACrashAtAnyCall(t *testing.T) {
	shortrun.Skip(t)
	t.Parallel()
	for _, p := range partings() {
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
	var mended atomic.Bool
	var calls atomic.Int64
	o := simhub.Options{Registry: planned("plus"), Intercept: simhub.Crash(func(simaws.Call) (bool, bool) {
		hit := mended.Load() && calls.Add(1) == n
		return hit && !after, hit && after
	})}
	inBubble(t, o, func(ctx context.Context, h *hub) {
		in := h.parkedFor(p.plan, p.parked)
		old := h.Orchestrators[0]
		h.Orchestrators[0] = h.narrowed(planned("add"), "mended", p.most)
		mended.Store(true)
		if p.byEvent {
			h.raise(in, "the last", p.parked)
		} else {
			h.send(provider.Message{Kind: provider.MessageWake, InstanceID: in.InstanceID})
		}
		h.serveFor(2 * time.Hour)
		if end := h.end(in); end.Kind != p.end || end.Error == nil && string(end.Output) != fmt.Sprint(p.plan.All) {
			t.Errorf("crash at call %d: ended with %s %s %v, want %s, %d", n, end.String(), end.Output, end.Error, p.end, p.plan.All)
		}
		if !slices.ContainsFunc(h.stored(in.ExecutionID), func(e history.Event) bool { return e.ParkedConsumed > 0 }) {
			t.Errorf("crash at call %d: no turn took parked inputs alone", n)
		}
		if err := h.CheckRest(ctx); err != nil {
			t.Errorf("crash at call %d: %v", n, err)
		}
		h.wantInstances(p.instances)
		old.Close()
	})
	return calls.Load() >= n
}

// parkedFor starts the sleeper with a plan, in a build whose code is good, has the hub's own build block it, and sends it numbers.
func (h *hub) parkedFor(p plan, numbers int) provider.Instance {
	h.t.Helper()
	in := h.start("sleeper", p)
	h.give(h.orchestrator(planned("add"), "before"))
	h.burst(in, numbers)
	h.serveFor(time.Hour)
	if now := h.read(in); now.Status != provider.StatusBlocked {
		h.t.Fatalf("it is %s", now.Status)
	}
	return in
}

// narrowed is an environment of a build whose commits hold so many events.
func (h *hub) narrowed(r *perdure.Registry, build string, events int) *dispatch.Orchestrator {
	h.t.Helper()
	return h.on(&narrow{Provider: h.Provider, most: events}, r, build)
}

// on is an environment of a build on a provider.
func (h *hub) on(p provider.Provider, r *perdure.Registry, build string) *dispatch.Orchestrator {
	h.t.Helper()
	o := must(dispatch.NewOrchestrator(r, p, &dispatch.OrchestratorOptions{BuildID: build, TurnTimeout: time.Second, Logger: slog.New(slog.DiscardHandler)}))
	h.t.Cleanup(o.Close)
	if err := o.ReportBuild(h.t.Context()); err != nil {
		h.t.Fatal(err)
	}
	return o
}

// end is how the instance has ended.
func (h *hub) end(in provider.Instance) history.Event {
	h.t.Helper()
	end, err := h.Provider.ReadTerminalEvent(h.t.Context(), h.read(in).ExecutionID)
	if err != nil {
		h.t.Errorf("it is %s, and has not ended: %v", h.read(in).Status, err)
	}
	return end
}

// Interleaving: two environments have the message that leads to the parts. One commits a part, and dies before it sends; the commit of
// the other comes second. That goes on from there, and sends what it finds.
func TestAPartThatAZombieCommittedIsSent(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{Registry: planned("plus")}, func(ctx context.Context, h *hub) {
		in := h.parkedFor(plan{All: 8}, 7)
		h.Orchestrators[0].Close()
		h.Orchestrators[0] = h.narrowed(planned("add"), "mended", 25)
		zombie := h.narrowed(planned("add"), "mended", 25)
		h.raise(in, "the last", 7)
		batch := h.receive(h.Provider.Config().InboxURL)
		dies, done := false, false
		h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
			if dies && c.Operation == "SendMessageBatch" {
				return errors.New("the zombie died between commit and dispatch")
			}
			if c.Operation == "PutItem" && !done {
				dies, done = true, true
				zombie.HandleRecords(ctx, batch)
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
		h.checkRest()
		h.wantInstances(1 + 16)
	})
}

// What comes when an instance has been mended is behind what was parked. Where the code continues as new on that, before it has seen the
// message, the next execution is told: an order to terminate, or to cancel, is not lost.
func TestAnOrderBehindParkedInputsReachesTheNextExecution(t *testing.T) {
	t.Parallel()
	for want, order := range map[history.Kind]provider.Message{
		history.OrchestrationTerminated: {Kind: provider.MessageTerminate},
		history.OrchestrationCancelled:  {Kind: provider.MessageCancel, Reason: "requested", RequestedBy: history.RequestedByClient},
	} {
		for _, events := range []int{5, 1000} { // in parts, and in one turn
			t.Run(fmt.Sprint(want, events), func(t *testing.T) {
				t.Parallel()
				inBubble(t, simhub.Options{Registry: planned("plus")}, func(_ context.Context, h *hub) {
					in := h.parkedFor(plan{All: 100, Each: 2, Leaves: true}, 7)
					h.Orchestrators[0].Close()
					h.Orchestrators[0] = h.narrowed(planned("add"), "mended", events)
					its := order
					its.InstanceID = in.InstanceID
					h.send(its)
					h.serveFor(time.Hour)
					if end := h.end(in); end.Kind != want {
						t.Errorf("ended with %s", end.String())
					}
					if now := h.read(in); now.ExecutionNumber < 2 {
						t.Errorf("in execution %d", now.ExecutionNumber)
					}
				})
			})
		}
	}
}

// Interleaving: a session repeats the dispatch that a redelivered message asks for, and runs a turn that no commit holds. While it reads
// again, somebody else commits all its messages. It counts none of them twice.
func TestR4AMessageIsNotCountedTwiceWhereATurnIsTooLarge(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{Registry: sleeper(4, "add")}, func(ctx context.Context, h *hub) {
		in := h.start("sleeper", 0)
		first := h.receive(h.Provider.Config().InboxURL)
		h.Orchestrators[0].HandleRecords(ctx, first) // dies before its record is deleted
		zombie := h.orchestrator(sleeper(4, "add"), "wide")
		h.Orchestrators[0].Close()
		h.Orchestrators[0] = h.narrowed(sleeper(4, "add"), "narrow", 4)
		for n := range 3 {
			h.raise(in, "", n+1) // without an id, the number is all that tells a repeat
		}
		time.Sleep(2 * time.Minute)
		batch := h.receive(h.Provider.Config().InboxURL)
		reads := 0
		h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
			if c.Operation == "Query" {
				if reads++; reads == 2 {
					h.interfere(nil)
					zombie.HandleRecords(ctx, batch[1:])
				}
			}
			return next()
		})
		h.acknowledge(batch, h.Orchestrators[0].HandleRecords(ctx, batch))
		if h.fault.Load() != nil || len(batch) < 4 {
			t.Fatalf("%d records, %d reads", len(batch), reads)
		}
		h.raise(in, "", 10)
		h.serveFor(time.Hour)
		if end := h.end(in); string(end.Output) != "16" {
			t.Errorf("ended with %s %s", end.String(), end.Output)
		}
	})
}

// breaking is a registry of the sleeper that waits for numbers, as awaits does, and cannot take some.
func breaking(numbers int, at func(number int) bool) *perdure.Registry {
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "sleeper", func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
		for i := range numbers {
			n, err := perdure.WaitForExternalEvent[int](ctx, "add").Await(ctx)
			if err != nil {
				return 0, err
			}
			if n != i {
				return 0, fmt.Errorf("number %d came where %d was due", n, i)
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

// Interleaving: what was parked by the thousand is taken in parts, and the second of them is more than the code can take, still: the
// instance is blocked again. More is parked behind. The build that mends it takes all, once and in order.
func TestAnInstanceThatIsBlockedAgainByASecondPartLosesNothing(t *testing.T) {
	shortrun.Skip(t)
	t.Parallel()
	blockedAgain(t, 2500, 3000, 0, false)
}

// The same with a few, and with a crash at any call since the first mend.
func TestAnInstanceThatIsBlockedAgainByASecondPartSurvivesACrashAtAnyCall(t *testing.T) {
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

// blockedAgain parks numbers, mends the code but for the last of them, once a part is sent, sends more, mends that too, and kills the
// process that makes the n-th call since the first mend. It reports whether there was such a call.
func blockedAgain(t *testing.T, parked, all int, n int64, after bool) (crashed bool) {
	t.Helper()
	var mended atomic.Bool
	var calls atomic.Int64
	never := func(int) bool { return false }
	o := simhub.Options{Registry: sleeper(all, "plus"), Intercept: simhub.Crash(func(simaws.Call) (bool, bool) {
		hit := mended.Load() && calls.Add(1) == n
		return hit && !after, hit && after
	})}
	inBubble(t, o, func(ctx context.Context, h *hub) {
		in := h.block(breaking(all, never))
		h.burst(in, parked)
		h.serveFor(time.Hour)
		half := &narrow{Provider: h.Provider, most: parked * 3 / 2}
		mended.Store(true)
		h.mendWith(in, h.on(half, breaking(all, func(number int) bool { return number == parked-1 && half.parted.Load() }), "half mended"))
		if now := h.read(in); half.parted.Load() && (now.Status != provider.StatusBlocked || now.Diagnosis.Type != history.TypeForeignGoroutine) {
			t.Errorf("crash at call %d: half mended it is %s: %+v", n, now.Status, now.Diagnosis)
		}
		for i := parked; i < all; i++ {
			h.raise(in, fmt.Sprint("e-", i), i)
		}
		h.serveFor(time.Hour)
		h.mendWith(in, h.narrowed(breaking(all, never), "mended", parked*3/2))
		if end := h.end(in); string(end.Output) != fmt.Sprint(all) {
			t.Errorf("crash at call %d: ended with %s %s %v", n, end.String(), end.Output, end.Error)
		}
		events := h.stored(in.ExecutionID)
		first := slices.IndexFunc(events, func(e history.Event) bool { return e.ParkedConsumed > 0 })
		if first < 0 || half.parted.Load() && !slices.ContainsFunc(events[first+1:], func(e history.Event) bool { return e.Kind == history.InputsParked }) {
			t.Errorf("crash at call %d: it was not blocked between two parts", n)
		}
		if err := h.CheckRest(ctx); err != nil {
			t.Errorf("crash at call %d: %v", n, err)
		}
	})
	return calls.Load() >= n && n > 0
}

// mendWith has an environment of another build take the instance, as the watch's wake would.
func (h *hub) mendWith(in provider.Instance, o *dispatch.Orchestrator) {
	h.t.Helper()
	h.Orchestrators[0].Close()
	h.Orchestrators[0] = o
	h.send(provider.Message{Kind: provider.MessageWake, InstanceID: in.InstanceID})
	h.serveFor(time.Hour)
}

// What parts have caused is sent again to make up for a crash, and for nothing else: once the message that led to them is done with, no
// environment that reads the instance sends its activities a second time.
func TestWhatPartsHaveCausedIsNotSentAgainWithoutNeed(t *testing.T) {
	t.Parallel()
	for name, leads := range map[string]provider.Message{
		"a wake":      {Kind: provider.MessageWake},
		"an event":    {Kind: provider.MessageEventRaised, Name: "add", EventID: "the last", Data: history.Payload("7")},
		"a duplicate": {Kind: provider.MessageEventRaised, Name: "add", EventID: "e-3", Data: history.Payload("3")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, simhub.Options{Registry: planned("plus")}, func(_ context.Context, h *hub) {
				in := h.parkedFor(plan{All: 9}, 7)
				leads.InstanceID = in.InstanceID
				h.send(leads)
				h.give(h.narrowed(planned("add"), "mended", 25))
				scheduled := len(h.workItems())
				if want := 7; scheduled < want {
					t.Fatalf("%d activities", scheduled)
				}
				for n := range 3 { // each in a process that has to read, before what was received is visible again
					h.send(provider.Message{Kind: provider.MessageTimerFired, InstanceID: in.InstanceID, ExecutionID: in.ExecutionID, TimerID: 1})
					h.give(h.narrowed(planned("add"), "mended", 25))
					if again := len(h.workItems()); again > 0 {
						t.Errorf("message %d: %d activities were sent again", n+1, again)
					}
					time.Sleep(7 * time.Minute)
				}
			})
		})
	}
}
