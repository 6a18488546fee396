package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/shortrun"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// These tests cover R30 (docs/internals/rules.md).

// restarter returns a client that restarts instances of the hub.
func (h *hub) restarter() *client.Client { return client.New(h.Provider, client.WithClock(time.Now)) }

// restart restarts an ended instance from an event.
func (h *hub) restart(id, as string, from int64) provider.Instance {
	h.t.Helper()
	now, err := h.restarter().Restart(h.t.Context(), id, client.FromEvent(from), client.WithInstanceID(as))
	if err != nil {
		h.t.Fatal(err)
	}
	return must(h.Provider.ReadInstance(h.t.Context(), now))
}

// Every orchestration can be restarted from each event after which its code waited, and has the same end. Only open
// tasks run again.
func TestR30_restartFromAnyEvent_endsAsBefore(t *testing.T) {
	t.Parallel()
	for _, s := range scenarios() {
		if slices.Contains([]string{
			"sends-to-ended", "starts-receiver", "exchange", "sender", "taken", "calls", "calls-ended",
		}, s.name) {
			continue // the result depends on another instance, which has ended
		}
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
				in := h.start(s.name, s.input)
				if s.meanwhile != nil {
					s.meanwhile(h, in)
				}
				want := h.finish(in)
				old := must(h.Provider.ReadInstance(ctx, in.InstanceID))
				past := h.events(old)
				restarts := 0
				for i := range past {
					if history.CheckRestartPoint(past, past[i].ID) != nil {
						continue
					}
					restarts++
					again := h.restart(in.InstanceID, fmt.Sprint("from-", past[i].ID), past[i].ID)
					h.repeatClient(s, again, past[:i+1])
					end := h.finish(again)
					if s.want != "" && (end.Kind != want.Kind || string(end.Output) != string(want.Output)) {
						t.Errorf("restarted from event %d: ended with %s, output %s, want %s",
							past[i].ID, end.String(), end.Output, want.Output)
					}
					h.wantCopied(again, past[:i+1])
				}
				if restarts == 0 {
					t.Error("got no restart point")
				}
				h.checkIdle()
			})
		})
	}
}

// repeatClient sends the client's messages of the scenario to a restarted instance, unless they precede the restart
// point.
func (h *hub) repeatClient(s scenario, in provider.Instance, past []history.Event) {
	h.t.Helper()
	switch s.name {
	case "pauses":
		for n := range 3 {
			h.raise(in, fmt.Sprint("e", n), n)
		}
	case "updates": // updates and events before the restart point are recognized by their IDs
		updatedMeanwhile(h, in)
	case "hands-over":
		segment, activityID := int64(1), int64(4) // after the start and the restart
		if len(past) >= 3 {
			segment, activityID = 0, 3 // copied
		}
		completeLater(h, in, segment, activityID)
	}
}

// wantCopied fails the test unless an instance has copied all past events. A trailing input is parked for its first
// turn.
func (h *hub) wantCopied(in provider.Instance, past []history.Event) {
	h.t.Helper()
	events := h.events(must(h.Provider.ReadInstance(h.t.Context(), in.InstanceID)))
	at := slices.IndexFunc(events, func(e history.Event) bool {
		return e.Kind == history.ExecutionRestarted && e.ExecutionID == in.ExecutionID
	})
	if at < 0 {
		h.t.Fatalf("got none of %d events with the restart", len(events))
	}
	from := events[at].Parent
	if from == nil || from.EventID != int64(len(past)) || events[0].StartID != in.StartID {
		h.t.Errorf("got restart origin %+v", from)
	}
	kept := append(slices.Clone(events[:at]), events[at].Inputs...)
	if len(kept) != len(past) {
		h.t.Fatalf("got %d copied events, want %d", len(kept), len(past))
	}
	for i := range past {
		if kept[i].Kind != past[i].Kind || kept[i].SourceEventID != past[i].SourceEventID ||
			!kept[i].Time.Equal(past[i].Time) {
			h.t.Errorf("event %s was copied as %s", past[i].String(), kept[i].String())
		}
	}
}

// A function crashes before or after its n-th call, for every n, while a restarted instance continues. Its open tasks
// are sent, and its end is the same.
func TestR30_crashAtAnyCallOfARestart_endsAsBefore(t *testing.T) {
	t.Parallel()
	for _, s := range scenarios() {
		if !slices.Contains([]string{"fan", "timer", "retries", "children", "failing-child", "detaches", "again"},
			s.name) {
			continue
		}
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/after=%v", s.name, after), func(t *testing.T) {
				t.Parallel()
				for n := int64(1); crashRestartAt(t, s, n, after); n += shortrun.Step(crashStep) {
				}
			})
		}
	}
}

// crashRestartAt restarts a scenario after its first turn, with a crash at the n-th later call of a function. It
// reports whether there was such a call.
func crashRestartAt(t *testing.T, s scenario, n int64, after bool) (crashed bool) {
	t.Helper()
	intercept, calls := simhub.CrashAt(n, after)
	begun := false
	o := simhub.Options{Environments: 2, Intercept: func(ctx context.Context, c simaws.Call, next func() error) error {
		if !begun {
			return next()
		}
		return intercept(ctx, c, next)
	}}
	inBubble(t, o, func(ctx context.Context, h *hub) {
		in := h.start(s.name, s.input)
		want := h.finish(in)
		past := h.events(must(h.Provider.ReadInstance(ctx, in.InstanceID)))
		from := cutAt(past, 3)
		begun = true
		again := h.restart(in.InstanceID, "again", from)
		if end := h.finish(again); end.Kind != want.Kind || s.want != "" && string(end.Output) != string(want.Output) {
			t.Errorf("crash at call %d: ended with %s, output %s, want %s", n, end.String(), end.Output, want.Output)
		}
		h.wantCopied(again, past[:from])
		if err := h.CheckIdle(ctx); err != nil {
			t.Errorf("crash at call %d: %v", n, err)
		}
	})
	return calls.Load() >= n
}

// cutAt returns the first restart point at or after event from, or the first event if there is none.
func cutAt(past []history.Event, from int64) int64 {
	for ; from < int64(len(past)); from++ {
		if history.CheckRestartPoint(past, from) == nil {
			return from
		}
	}
	return 1
}

// chores records the calls of an activity.
type chores struct {
	mu   sync.Mutex
	done []string
	fail bool
}

func (c *chores) do(_ context.Context, what string) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.done = append(c.done, what)
	if c.fail && what == "ship" {
		return "", perdure.NonRetryable(errors.New("the carrier is closed"))
	}
	return what, nil
}

func (c *chores) take() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	done := c.done
	c.done = nil
	slices.Sort(done)
	return done
}

func (c *chores) repair() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fail = false
}

// order reserves, starts a detached orchestration, ships and bills concurrently, and returns its identity and random
// numbers before and after.
func order(ctx *perdure.OrchestrationContext, _ int) (string, error) {
	numbers := ctx.Rand()
	outputs := []string{ctx.InstanceID(), fmt.Sprint(numbers.IntN(1000)), ctx.NewUUID()}
	if _, err := perdure.CallActivityByName[string](ctx, "do", "reserve").Await(ctx); err != nil {
		return "", err
	}
	if _, err := perdure.StartOrchestration(ctx, "nothing", 1); err != nil {
		return "", err
	}
	bill := perdure.CallActivityByName[string](ctx, "do", "bill "+ctx.InstanceID(),
		perdure.WithScheduleToCloseTimeout(time.Minute))
	child := perdure.CallSubOrchestrationByName[int](ctx, "sleeps", 1)
	reminder := perdure.CreateTimer(ctx, time.Hour)
	if _, err := perdure.CallActivityByName[string](ctx, "do", "ship").Await(ctx); err != nil {
		return "", err
	}
	outputs = append(outputs, ctx.InstanceID(), fmt.Sprint(numbers.IntN(1000)), ctx.NewUUID())
	if err := perdure.WhenAll(ctx, bill, child, reminder); err != nil {
		return "", err
	}
	return strings.Join(outputs, ","), nil
}

func choresRegistry(c *chores) *perdure.Registry {
	r := registry()
	perdure.AddActivity(r, "do", c.do)
	perdure.AddOrchestration(r, "order", order)
	perdure.AddOrchestration(r, "sleeps", func(ctx *perdure.OrchestrationContext, n int) (int, error) {
		return n, perdure.Sleep(ctx, time.Minute)
	})
	return r
}

// A restart runs open tasks again, regardless of their later outcome and age, but not settled tasks. Before the restart
// point, the code reads its old identity.
func TestR30_restart_runsOnlyOpenTasksAgain(t *testing.T) {
	t.Parallel()
	c := &chores{fail: true}
	inBubble(t, simhub.Options{Registry: choresRegistry(c)}, func(ctx context.Context, h *hub) {
		in := h.start("order", 1)
		if end := h.finish(in); end.Kind != history.OrchestrationFailed {
			t.Fatalf("ended with %s, want failed", end.String())
		}
		c.take()
		c.repair()
		past := h.events(in)
		ship := slices.IndexFunc(past, func(e history.Event) bool {
			return e.Kind == history.ActivityScheduled && string(e.Input) == `"ship"`
		})
		instances := len(must(h.Provider.ListInstances(ctx, provider.ListQuery{})).Instances)
		time.Sleep(40 * 24 * time.Hour) // longer than starts are deduplicated

		again := h.restart(in.InstanceID, "again", past[ship].ID)
		h.serveFor(time.Second)
		if did := c.take(); !slices.Equal(did, []string{"bill i-1", "ship"}) {
			t.Errorf("got activities %q, want the bill and ship", did)
		}
		end := h.finish(again)
		if end.Kind != history.OrchestrationCompleted {
			t.Fatalf("ended with %s: %+v, want completed", end.String(), end.Error)
		}
		outputs := strings.Split(strings.Trim(string(end.Output), `"`), ",")
		if outputs[0] != "i-1" || outputs[3] != "again" || outputs[1] == outputs[4] || outputs[2] == outputs[5] {
			t.Errorf("got identities %q", outputs)
		}
		h.wantInstances(instances + 2) // the new instance and a child, but no detached instance
		h.checkIdle()

		events := h.events(again)
		for i := range events {
			e := &events[i]
			switch {
			case e.Kind == history.TimerFired && e.Time.After(past[0].Time.Add(41*24*time.Hour).Add(time.Minute)):
				t.Errorf("overdue timer fired at %v", e.Time)
			case e.Kind == history.SubOrchestrationScheduled &&
				!strings.HasPrefix(e.InstanceID, "again:"+again.ExecutionID):
				t.Errorf("got child ID %s", e.InstanceID)
			}
		}
	})
}

// The code draws the same random numbers before the restart point in each replay and each later restart.
func TestR30_restartOfARestart_keepsIDsAndNumbersBeforeTheCut(t *testing.T) {
	t.Parallel()
	c := &chores{}
	inBubble(t, simhub.Options{Registry: choresRegistry(c), Environments: 1}, func(_ context.Context, h *hub) {
		in := h.start("order", 1)
		outputs := map[string][]string{"i-1": strings.Split(strings.Trim(string(h.finish(in).Output), `"`), ",")}
		for _, r := range []struct {
			of, as  string
			shipped bool
			who     [2]string // instance ID before and after shipping
		}{
			{"i-1", "b", false, [2]string{"i-1", "b"}},
			{"b", "c", false, [2]string{"i-1", "c"}},
			{"b", "d", true, [2]string{"i-1", "b"}},
		} {
			past := h.events(must(h.Provider.ReadInstance(t.Context(), r.of)))
			ship := slices.IndexFunc(past, func(e history.Event) bool {
				return e.Kind == history.ActivityScheduled && string(e.Input) == `"ship"`
			})
			from := past[ship].ID
			if r.shipped {
				from = past[slices.IndexFunc(past, func(e history.Event) bool {
					return e.SourceEventID == from && e.Kind == history.ActivityCompleted
				})].ID + 1
			}
			again := h.restart(r.of, r.as, cutAt(past, from))
			end := h.finish(again)
			got := strings.Split(strings.Trim(string(end.Output), `"`), ",")
			outputs[r.as] = got
			if got[0] != r.who[0] || got[3] != r.who[1] || got[1] != outputs["i-1"][1] || got[2] != outputs["i-1"][2] {
				t.Errorf("%s: got %q", r.as, got)
			}
			if r.who[1] == "b" && (got[4] != outputs["b"][4] || got[5] != outputs["b"][5]) {
				t.Errorf("%s: got %q after shipping; %q: got %q", r.as, got, "b", outputs["b"])
			}
		}
		if outputs["b"][5] == outputs["c"][5] || outputs["b"][5] == outputs["i-1"][5] {
			t.Errorf("two instances have the same random ID: %q", outputs)
		}
		h.checkIdle()
	})
}

// Concurrent restarts from the same event start one instance. A running instance cannot be restarted.
func TestR30_sameRestartTwice_startsOneInstance(t *testing.T) {
	t.Parallel()
	c := &chores{}
	inBubble(t, simhub.Options{Registry: choresRegistry(c)}, func(ctx context.Context, h *hub) {
		in := h.start("order", 1)
		h.serveFor(time.Second)
		if _, err := h.restarter().Restart(ctx, in.InstanceID, client.FromEvent(1)); !errors.Is(err,
			client.ErrNotEnded) {
			t.Errorf("restart of a running instance: got error %v, want ErrNotEnded", err)
		}
		h.finish(in)
		instances := len(must(h.Provider.ListInstances(ctx, provider.ListQuery{})).Instances)

		ids := make([]string, 4)
		var all sync.WaitGroup
		for i := range ids {
			all.Go(func() { ids[i] = must(h.restarter().Restart(ctx, in.InstanceID, client.FromEvent(1))) })
		}
		all.Wait()
		if len(slices.Compact(slices.Clone(ids))) != 1 {
			t.Errorf("four restarts: got IDs %q, want one", ids)
		}
		h.wantInstances(instances + 1)
		h.finish(must(h.Provider.ReadInstance(ctx, ids[0])))
		h.checkIdle()
	})
}

// A child with an ID of the user's choice cannot be started twice. The restart fails until the child is purged.
func TestR30_childIDInUse_restartFails(t *testing.T) {
	t.Parallel()
	r := choresRegistry(&chores{})
	perdure.AddOrchestration(r, "names", func(ctx *perdure.OrchestrationContext, n int) (int, error) {
		return perdure.CallSubOrchestrationByName[int](ctx, "sleeps", n, perdure.WithInstanceID("the-child")).Await(ctx)
	})
	inBubble(t, simhub.Options{Registry: r}, func(ctx context.Context, h *hub) {
		in := h.start("names", 3)
		want := h.finish(in)
		past := h.events(in)
		from := past[slices.IndexFunc(past, func(e history.Event) bool {
			return e.Kind == history.SubOrchestrationScheduled
		})].ID
		_, err := h.restarter().Restart(ctx, in.InstanceID, client.FromEvent(from))
		if !errors.Is(err, client.ErrAlreadyExists) || !strings.Contains(err.Error(), "the-child") {
			t.Fatalf("got error %v, want ErrAlreadyExists for the child", err)
		}
		h.purge("the-child")
		if end := h.finish(h.restart(in.InstanceID, "again", from)); string(end.Output) != string(want.Output) {
			t.Errorf("ended with %s, output %s", end.String(), end.Output)
		}
	})
}
