package replay_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/replay"
)

func sideEffect(c *replay.Context) {
	c.SideEffect(replay.SideEffect{
		Produce: func() (json.RawMessage, *history.Failure) { return json.RawMessage("1"), nil },
		Accept:  func(json.RawMessage) error { return nil },
	})
}

func call(name, id string) replay.SubOrchestrationCall {
	return replay.SubOrchestrationCall{Name: name, InstanceID: id, Input: json.RawMessage("1")}
}

// Each case replays code that differs from the history in one decision.
func TestReplay_otherDecisionOfEachKind_isNondeterminism(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name          string
		was, is       func(*replay.Context)
		expected, got string
	}{
		{
			"event of another name",
			func(c *replay.Context) {
				c.WaitForExternalEvent("a")
			}, func(c *replay.Context) { c.WaitForExternalEvent("b") },
			`ExternalEventSubscribed "a"`, `ExternalEventSubscribed "b"`,
		},
		{
			"an event instead of an activity",
			func(c *replay.Context) { activity(c, "a") }, func(c *replay.Context) { c.WaitForExternalEvent("a") },
			`ActivityScheduled "a"`, `ExternalEventSubscribed "a"`,
		},
		{
			"no event",
			func(c *replay.Context) {
				c.WaitForExternalEvent("a")
			}, func(c *replay.Context) { c.Await(c.Go(func() { c.Await(activity(c, "a")) })) },
			`ExternalEventSubscribed "a"`, `ActivityScheduled "a"`,
		},
		{
			"a side effect instead of an activity",
			func(c *replay.Context) { activity(c, "a") }, sideEffect,
			`ActivityScheduled "a"`, "SideEffectRecorded",
		},
		{
			"an activity instead of a side effect",
			sideEffect, func(c *replay.Context) { activity(c, "a") },
			"SideEffectRecorded", `ActivityScheduled "a"`,
		},
		{
			"additional status",
			func(*replay.Context) {}, func(c *replay.Context) { c.SetCustomStatus(json.RawMessage("1")) },
			"OrchestrationCompleted", "CustomStatusSet",
		},
		{
			"missing status",
			func(c *replay.Context) { c.SetCustomStatus(json.RawMessage("1")) }, func(*replay.Context) {},
			"CustomStatusSet", "OrchestrationCompleted",
		},
		{
			"child of another name",
			func(c *replay.Context) {
				c.ScheduleSubOrchestration(call("a", "i"))
			}, func(c *replay.Context) { c.ScheduleSubOrchestration(call("b", "i")) },
			`SubOrchestrationScheduled "a" as instance "i"`, `SubOrchestrationScheduled "b" as instance "i"`,
		},
		{
			"child of another id",
			func(c *replay.Context) {
				c.ScheduleSubOrchestration(call("a", "i"))
			}, func(c *replay.Context) { c.ScheduleSubOrchestration(call("a", "")) },
			`SubOrchestrationScheduled "a" as instance "i"`,
			`SubOrchestrationScheduled "a" as instance "order-17:01JEXECUTION:3"`,
		},
		{
			"detached instead of a child",
			func(c *replay.Context) {
				c.ScheduleSubOrchestration(call("a", "i"))
			}, func(c *replay.Context) { c.StartDetached(call("a", "i")) },
			`SubOrchestrationScheduled "a" as instance "i"`, `DetachedOrchestrationScheduled "a" as instance "i"`,
		},
		{
			"detached of another name",
			func(c *replay.Context) {
				c.StartDetached(call("a", "i"))
			}, func(c *replay.Context) { c.StartDetached(call("b", "i")) },
			`DetachedOrchestrationScheduled "a" as instance "i"`, `DetachedOrchestrationScheduled "b" as instance "i"`,
		},
		{
			"detached of another id",
			func(c *replay.Context) {
				c.StartDetached(call("a", "i"))
			}, func(c *replay.Context) { c.StartDetached(call("a", "j")) },
			`DetachedOrchestrationScheduled "a" as instance "i"`, `DetachedOrchestrationScheduled "a" as instance "j"`,
		},
		{
			"coroutines in another order",
			func(c *replay.Context) {
				c.Go(func() { activity(c, "a") })
				c.Await(c.Go(func() { activity(c, "b") }))
			},
			func(c *replay.Context) {
				c.Go(func() { activity(c, "b") })
				c.Await(c.Go(func() { activity(c, "a") }))
			},
			`ActivityScheduled "a"`, `ActivityScheduled "b"`,
		},
		{
			"waits for an event and a coroutine instead",
			func(*replay.Context) {}, func(c *replay.Context) {
				g := c.Go(func() { c.Await(c.CreateTimer(time.Hour, "")) })
				c.Await(g)
			},
			"OrchestrationCompleted", "TimerCreated",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			wantDivergence(t, body(tt.is), record(t, body(tt.was)), 3, tt.expected, tt.got)
		})
	}
}

func TestNondeterminismError_waitingCode_listsAwaitedTasks(t *testing.T) {
	t.Parallel()
	code := func(more bool) replay.Orchestration {
		return body(func(c *replay.Context) {
			g := c.Go(func() { c.Await(c.WaitForExternalEvent("e")) })
			a := activity(c, "a")
			c.AwaitAny([]*replay.Task{g, a})
			if more {
				activity(c, "b")
			}
		})
	}
	log := record(t, code(true))
	log = append(log, history.Event{ID: 5, Kind: history.ActivityScheduled, Name: "x"})
	wantDivergence(t, code(true), log, 5, `ActivityScheduled "x"`,
		`nothing and waits for a coroutine, ActivityScheduled "a" #3, ExternalEventSubscribed "e" #4`)
}

func TestReplay_cancelOfOtherInstance_isNondeterminism(t *testing.T) {
	t.Parallel()
	code := body(func(c *replay.Context) { c.ScheduleSubOrchestration(call("a", "i")).Cancel("requested", "") })
	log := record(t, code)
	log[3].InstanceID = "j"
	wantDivergence(t, code, log, 4, `SubOrchestrationCancelRequested as instance "j" of #3 (requested)`,
		`SubOrchestrationCancelRequested as instance "i" of #3 (requested)`)
}

func failedChild(id int64) history.Event {
	return history.Event{Kind: history.SubOrchestrationFailed, SourceEventID: id, Error: &history.Failure{Type: "E"}}
}

// The decisions of the engine must also match the history.
func TestRetry_historyDiffers_isNondeterminism(t *testing.T) {
	t.Parallel()
	code := body(func(c *replay.Context) {
		s := call("a", "i")
		s.Retry = &history.RetryPolicy{MaxAttempts: 2}
		c.Await(c.ScheduleSubOrchestration(s))
	})
	// 3 SubOrchestrationScheduled, 4 TurnStarted, 5 SubOrchestrationFailed, 6 TimerCreated, 7 TurnStarted, 8
	// TimerFired, 9 SubOrchestrationScheduled, 10 TurnStarted, 11 SubOrchestrationFailed, 12 OrchestrationCompleted
	log := record(t, code, message(failedChild(3)), message(fired(6)), message(failedChild(9)))
	if len(log) != 12 {
		t.Fatal(kinds(log))
	}
	for _, tt := range []struct {
		name          string
		damage        func([]history.Event)
		events        int
		eventID       int64
		expected, got string
	}{
		{
			"without retry", func(log []history.Event) { log[2].Retry = nil }, 12,
			6, "TimerCreated", "OrchestrationCompleted",
		},
		{
			"with retry", func(log []history.Event) { log[2].Retry = &history.RetryPolicy{} }, 12,
			12, "OrchestrationCompleted", "TimerCreated",
		},
		{
			"as another instance", func(log []history.Event) { log[8].InstanceID = "i~3" }, 12,
			9, `SubOrchestrationScheduled "a" as instance "i~3"`, `SubOrchestrationScheduled "a" as instance "i~2"`,
		},
		{
			"history ends", func([]history.Event) {}, 8,
			8, "no further event", `SubOrchestrationScheduled "a" as instance "i~2"`,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			changed := slices.Clone(log)
			tt.damage(changed)
			wantDivergence(t, code, changed[:tt.events], tt.eventID, tt.expected, tt.got)
		})
	}
}

func TestReplay_eventNotFetched_isError(t *testing.T) {
	t.Parallel()
	far := history.NewReferencePayload(history.Reference{Ref: "s3://b/k", SHA256: "x", Bytes: 1 << 20})
	code := body(func(c *replay.Context) { sideEffect(c); c.Await(c.WaitForExternalEvent("e")) })
	log := record(t, code, message(raise("e", "1", "1")))
	for name, damage := range map[string]func([]history.Event){
		"carried": func(log []history.Event) { log[0].CarriedEvents = []history.CarriedEvent{{Name: "e", Data: far}} },
		"value":   func(log []history.Event) { log[2].Value = far },
		"data":    func(log []history.Event) { log[5].Data = far },
	} {
		changed := slices.Clone(log)
		damage(changed)
		x := replay.New(code, options)
		if err := x.Replay(changed); err == nil || !strings.Contains(err.Error(), "not fetched") {
			t.Errorf("%s: got error %v", name, err)
		}
		x.Close()
	}
}
