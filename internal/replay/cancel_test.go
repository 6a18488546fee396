package replay_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/replay"
)

func cancelRequested(reason, message string) history.Event {
	return history.Event{
		Kind: history.CancelRequested, Reason: reason, Message: message, RequestedBy: history.RequestedByClient,
	}
}

// unwinds returns a body that ends as cancelled if fn returns a cancellation, and as completed otherwise.
func unwinds(fn func(*replay.Context) *replay.Cancellation) replay.Orchestration {
	return replay.Orchestration{
		Name: "o", Version: "1",
		Body: func(c *replay.Context, _ json.RawMessage) replay.Ending {
			if fn(c) != nil {
				return replay.Ending{Kind: history.OrchestrationCancelled}
			}
			return completed
		},
	}
}

// sources describes an event with the IDs of its tasks.
func sources(ev history.Event) string {
	s := ev.String()
	if len(ev.SourceEventIDs) > 0 {
		s += fmt.Sprint(" ", ev.SourceEventIDs)
	}
	if ev.RequestedBy != "" {
		s += " by " + ev.RequestedBy
	}
	if ev.InstanceID != "" {
		s += " " + ev.InstanceID
	}
	if ev.Message != "" {
		s += ": " + ev.Message
	}
	return s
}

func wantSources(tb testing.TB, events []history.Event, want ...string) {
	tb.Helper()
	var got []string
	for i := range events {
		got = append(got, sources(events[i]))
	}
	if !slices.Equal(got, want) {
		tb.Errorf("events\n got %q\nwant %q", got, want)
	}
}

// reload replays a history that was encoded and decoded.
func reload(tb testing.TB, o replay.Orchestration, log []history.Event) *replay.Instance {
	tb.Helper()
	b, err := history.Encode(log)
	if err != nil {
		tb.Fatal(err)
	}
	events, err := history.Decode(b)
	if err != nil {
		tb.Fatal(err)
	}
	x := replay.New(o, options)
	tb.Cleanup(func() { x.Close() })
	if err := x.Replay(events); err != nil {
		tb.Fatal(err)
	}
	return x
}

// mixed schedules two activities, a timer, an activity, two children and a timer as #3 to #9, and waits for the first
// one.
func mixed(c *replay.Context) *replay.Cancellation {
	first := activity(c, "a")
	activity(c, "b")
	c.CreateTimer(time.Hour, "")
	activity(c, "d")
	c.ScheduleSubOrchestration(call("child", "k1"))
	c.ScheduleSubOrchestration(call("child", "k2"))
	c.CreateTimer(time.Hour, "")
	return c.Await(first)
}

func TestCancel_severalActivities_shareOneEvent(t *testing.T) {
	t.Parallel()
	code := unwinds(func(c *replay.Context) *replay.Cancellation {
		defer activity(c.WithoutCancel(), "undo")
		return mixed(c)
	})
	x := instance(t, code)
	turn(t, x)
	wantSources(t, turn(t, x, cancelRequested("requested", "no need")),
		"TurnStarted #10",
		"CancelRequested #11 (requested) by client: no need",
		"ActivityCancelRequested #12 (requested) [{3 4} {6 6}] by engine: no need",
		"TimerCancelled #13 (requested) [{5 5} {9 9}]",
		"SubOrchestrationCancelRequested #14 of #7 (parent_cancelled) by engine k1: no need",
		"SubOrchestrationCancelRequested #15 of #8 (parent_cancelled) by engine k2: no need",
		`ActivityScheduled #16 "undo"`,
		"ActivityCancelRequested #17 of #16 (orchestration_terminal_cancelled) by engine",
		"OrchestrationCancelled #18 (requested): no need")
}

func TestCancel_parent_cancelsChild(t *testing.T) {
	t.Parallel()
	code := unwinds(func(c *replay.Context) *replay.Cancellation {
		return c.Await(c.ScheduleSubOrchestration(call("child", "k")))
	})
	log := record(t, code, message(cancelRequested("parent_cancelled", "")))
	wantSources(t, log[3:], "TurnStarted #4", "CancelRequested #5 (parent_cancelled) by client",
		"SubOrchestrationCancelRequested #6 of #3 (parent_cancelled) by engine k",
		"OrchestrationCancelled #7 (parent_cancelled)")
	if x := reload(t, code, log); !x.Ended() {
		t.Error("the execution has not ended")
	}
}

func TestCancelRequested_twice_firstReasonStays(t *testing.T) {
	t.Parallel()
	code := unwinds(func(c *replay.Context) *replay.Cancellation {
		why := c.Await(activity(c, "a"))
		c.WithoutCancel().Await(activity(c.WithoutCancel(), "undo"))
		return why
	})
	x := instance(t, code)
	log := append([]history.Event{started}, turn(t, x)...)
	log = append(log, turn(t, x, cancelRequested("requested", "first"), cancelRequested("requested", "second"))...)
	wantSources(t, log[3:], "TurnStarted #4", "CancelRequested #5 (requested) by client: first",
		"ActivityCancelRequested #6 of #3 (requested) by engine: first", `ActivityScheduled #7 "undo"`)
	wantKinds(t, turn(t, x, cancelRequested("requested", "third")))
	y := reload(t, code, log)
	wantKinds(t, turn(t, y, cancelRequested("requested", "third")))
	wantSources(t, turn(t, y, done(7)), "TurnStarted #8", "ActivityCompleted #9 of #7",
		"OrchestrationCancelled #10 (requested): first")
}

// On replay, the code decides each cancellation again, turn by turn.
func TestCancel_reloadBetweenTurns_replaysSameDecisions(t *testing.T) {
	t.Parallel()
	code := unwinds(func(c *replay.Context) *replay.Cancellation {
		s := c.WithTimeout(time.Minute, "")
		activity(s, "in scope")
		s.Await(activity(c, "a"))
		s.End("dropped_future")
		tasks := []*replay.Task{
			activity(c, "b"), c.CreateTimer(time.Hour, ""), c.ScheduleSubOrchestration(call("child", "k")),
		}
		c.Cancel("select_loser", "", tasks[c.AwaitAny(tasks):]...)
		why := mixed(c)
		shielded := c.WithoutCancel()
		shielded.Await(activity(shielded, "undo"))
		activity(shielded, "left")
		return why
	})
	log := record(t, code, message(fired(3)), message(done(9)), message(cancelRequested("requested", "enough")),
		message(done(29)))
	if last := log[len(log)-1]; last.Kind != history.OrchestrationCancelled || last.Message != "enough" {
		t.Fatal(kinds(log))
	}
	for n := range log {
		if log[n].Kind != history.TurnStarted {
			continue
		}
		x := reload(t, code, log[:n])
		if err := x.Replay(log[n:]); err != nil || !x.Ended() {
			t.Errorf("replay split before event #%d: ended %v, error %v", log[n].ID, x.Ended(), err)
		}
	}
}

func TestEnd_scopeWithActivity_requestsItsCancel(t *testing.T) {
	t.Parallel()
	code := body(func(c *replay.Context) {
		s := c.WithCancel()
		activity(s, "a")
		s.CreateTimer(time.Hour, "")
		activity(s, "b")
		s.End("dropped_future")
		s.End("dropped_future")
		c.Await(activity(c, "c"))
	})
	log := record(t, code)
	wantSources(t, log[2:], `ActivityScheduled #3 "a"`, "TimerCreated #4", `ActivityScheduled #5 "b"`,
		"ActivityCancelRequested #6 (dropped_future) [{3 3} {5 5}] by body", "TimerCancelled #7 of #4 (dropped_future)",
		`ActivityScheduled #8 "c"`)
	reload(t, code, log)
}

// An activity with WaitForCancellation stays open after its cancellation. Repeated cancellations record one request.
func TestCancel_waitedActivityTwice_isRequestedOnce(t *testing.T) {
	t.Parallel()
	code := body(func(c *replay.Context) {
		s := c.WithCancel()
		a, b := waited(s, "a"), waited(s, "b")
		a.Cancel("requested", "first")
		a.Cancel("requested", "second")
		s.End("dropped_future")
		s.End("dropped_future")
		b.Cancel("requested", "third")
		c.Await(activity(c, "c"))
	})
	log := record(t, code)
	wantSources(t, log[2:], `ActivityScheduled #3 "a"`, `ActivityScheduled #4 "b"`,
		"ActivityCancelRequested #5 of #3 (requested) by body: first",
		"ActivityCancelRequested #6 of #4 (dropped_future) by body", `ActivityScheduled #7 "c"`)
	reload(t, code, log)
}

func TestEnd_scopeWithChild_requestsItsCancel(t *testing.T) {
	t.Parallel()
	code := body(func(c *replay.Context) {
		s := c.WithCancel()
		s.ScheduleSubOrchestration(call("child", "k1"))
		s.ScheduleSubOrchestration(call("child", "k2"))
		s.End("dropped_future")
		c.Await(activity(c, "c"))
	})
	log := record(t, code)
	wantSources(t, log[4:], "SubOrchestrationCancelRequested #5 of #3 (dropped_future) by body k1",
		"SubOrchestrationCancelRequested #6 of #4 (dropped_future) by body k2", `ActivityScheduled #7 "c"`)
	reload(t, code, log)
}

func TestCancel_completionAfterRequest_isIgnored(t *testing.T) {
	t.Parallel()
	code := unwinds(func(c *replay.Context) *replay.Cancellation {
		a, k := activity(c, "a"), c.ScheduleSubOrchestration(call("child", "k"))
		why := c.Await(a)
		s := c.WithoutCancel()
		s.Await(activity(s, "undo"))
		if s.Await(a); string(a.TakeResult()) != "" || a.Failure().Reason != "requested" ||
			k.Failure().Reason != "requested" {
			t.Errorf("got %+v and %+v", a.Failure(), k.Failure())
		}
		return why
	})
	x := instance(t, code)
	log := append([]history.Event{started}, turn(t, x)...)
	log = append(log, turn(t, x, cancelRequested("requested", ""))...)
	late := turn(t, x, done(3), failedChild(4))
	wantKinds(t, late, "TurnStarted #10", "ActivityCompleted #11 of #3", "SubOrchestrationFailed #12 of #4")
	log = append(log, late...)
	wantKinds(t, turn(t, x, done(3), fired(4))) // a repeated outcome is not applied
	y := reload(t, code, log)
	wantKinds(t, turn(t, y, done(9)), "TurnStarted #13", "ActivityCompleted #14 of #9",
		"OrchestrationCancelled #15 (requested)")
}

// If two activities lose a race, the code of another release must cancel both.
func TestReplay_otherLoserCancelled_isNondeterminism(t *testing.T) {
	t.Parallel()
	loses := func(c *replay.Context, then func(all []*replay.Task)) {
		all := []*replay.Task{activity(c, "a"), activity(c, "b"), activity(c, "c"), activity(c, "d")}
		c.AwaitAny(all)
		then(all)
		c.Await(c.WaitForExternalEvent("go"))
	}
	code := func(then func(c *replay.Context, all []*replay.Task)) replay.Orchestration {
		return body(func(c *replay.Context) { loses(c, func(all []*replay.Task) { then(c, all) }) })
	}
	was := code(func(c *replay.Context, all []*replay.Task) { c.Cancel("select_loser", "", all[1], all[2]) })
	log := record(t, was, message(done(3)), message(raise("go", "1", "1")))
	const expected = "ActivityCancelRequested of #4-#5 (select_loser)"
	for name, tt := range map[string]struct {
		then func(c *replay.Context, all []*replay.Task)
		got  string
	}{
		"winner changed": {
			func(c *replay.Context, all []*replay.Task) { c.Cancel("select_loser", "", all[1], all[3]) },
			"ActivityCancelRequested of #4-#4,#6-#6 (select_loser)",
		},
		"loser now awaited": {
			func(c *replay.Context, all []*replay.Task) { c.Cancel("select_loser", "", all[1]) },
			"ActivityCancelRequested of #4 (select_loser)",
		},
		"no activity cancelled": {func(*replay.Context, []*replay.Task) {}, `ExternalEventSubscribed "go"`},
		"one more activity cancelled": {
			func(c *replay.Context, all []*replay.Task) { c.Cancel("select_loser", "", all[1:]...) },
			"ActivityCancelRequested of #4-#6 (select_loser)",
		},
		"another reason": {
			func(c *replay.Context, all []*replay.Task) { c.Cancel("requested", "", all[1:3]...) },
			"ActivityCancelRequested of #4-#5 (requested)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantDivergence(t, code(tt.then), log, 9, expected, tt.got)
		})
	}
	t.Run("cancel is not in the history", func(t *testing.T) {
		t.Parallel()
		before := record(t, code(func(*replay.Context, []*replay.Task) {}), message(done(3)))
		wantDivergence(t, was, before, 9, `ExternalEventSubscribed "go"`, expected)
	})
}

// The cancellations of the engine must also match the history.
func TestReplay_otherCancelOfTheEngine_isNondeterminism(t *testing.T) {
	t.Parallel()
	code := unwinds(func(c *replay.Context) *replay.Cancellation {
		why := mixed(c)
		activity(c.WithoutCancel(), "undo")
		return why
	})
	// 11 CancelRequested, 12 ActivityCancelRequested, 13 TimerCancelled, 14 and 15 children, 16 ActivityScheduled, 17
	// ActivityCancelRequested, 18 OrchestrationCancelled
	log := record(t, code, message(cancelRequested("requested", "")))
	for _, tt := range []struct {
		name          string
		damage        func([]history.Event) []history.Event
		eventID       int64
		expected, got string
	}{
		{
			"one activity less cancelled", func(log []history.Event) []history.Event {
				log[11].SourceEventIDs = []history.Range{{First: 3, Last: 4}, {First: 6, Last: 6}, {First: 9, Last: 9}}
				return log
			},
			12, "ActivityCancelRequested of #3-#4,#6-#6,#9-#9 (requested)",
			"ActivityCancelRequested of #3-#4,#6-#6 (requested)",
		},
		{
			"another child", func(log []history.Event) []history.Event { log[14].InstanceID = "k3"; return log },
			15, `SubOrchestrationCancelRequested as instance "k3" of #8 (parent_cancelled)`,
			`SubOrchestrationCancelRequested as instance "k2" of #8 (parent_cancelled)`,
		},
		{
			"another reason", func(log []history.Event) []history.Event { log[12].Reason = "timeout"; return log },
			13, "TimerCancelled of #5-#5,#9-#9 (timeout)", "TimerCancelled of #5-#5,#9-#9 (requested)",
		},
		{
			"requested by a client", func(log []history.Event) []history.Event {
				log[11].RequestedBy = history.RequestedByClient
				return log
			},
			12, "no further decision before ActivityCancelRequested of #3-#4,#6-#6 (requested)",
			"ActivityCancelRequested of #3-#4,#6-#6 (requested)",
		},
		{
			"another reason at the end", func(log []history.Event) []history.Event {
				log[17].Reason = "parent_cancelled"
				return log
			},
			18, "OrchestrationCancelled (parent_cancelled)", "OrchestrationCancelled (requested)",
		},
		{
			"no cancel events at the end", func(log []history.Event) []history.Event {
				log[17].ID = 17
				return append(log[:16], log[17])
			},
			17, "OrchestrationCancelled (requested)",
			"ActivityCancelRequested of #16 (orchestration_terminal_cancelled)",
		},
		{
			"history ends", func(log []history.Event) []history.Event { return log[:12] },
			12, "no further event", "TimerCancelled of #5-#5,#9-#9 (requested)",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			wantDivergence(t, code, tt.damage(slices.Clone(log)), tt.eventID, tt.expected, tt.got)
		})
	}
}

// The diagnosis of many cancellations shows the first difference, and fits into a failure.
func TestNondeterminismError_manyCancels_isShort(t *testing.T) {
	t.Parallel()
	const n = 20_000
	code := func(last int) replay.Orchestration {
		return body(func(c *replay.Context) {
			var odd []*replay.Task
			for i := range n {
				if task := activity(c, "a"); i%2 > 0 && i != last {
					odd = append(odd, task)
				}
			}
			c.Cancel("requested", "", odd...)
		})
	}
	x := replay.New(code(n-3), options)
	t.Cleanup(func() { x.Close() })
	e := as[*replay.NondeterminismError](t, x.Replay(record(t, code(-1))))
	if !strings.HasSuffix(e.Expected, ",#20000-#20000,#20002-#20002 (requested)") ||
		!strings.HasSuffix(e.Got, "#19998-#19998,#20002-#20002 (requested)") || len(e.Error()) > 1<<10 {
		t.Errorf("got %d bytes\n%.500s\n%.500s", len(e.Error()), e.Expected, e.Got)
	}
}

func TestEnd_outstandingTasks_areCancelled(t *testing.T) {
	t.Parallel()
	outstanding := func(c *replay.Context) {
		a := activity(c, "a")
		activity(c, "b")
		activity(c, "c").Cancel("requested", "")
		c.CreateTimer(time.Hour, "")
		c.CreateTimer(time.Hour, "").Cancel("requested", "")
		c.ScheduleSubOrchestration(call("child", "k"))
		activity(c.WithoutCancel(), "d")
		c.WithoutCancel().WithTimeout(time.Hour, "")
		c.StartDetached(call("detached", "d"))
		c.WaitForExternalEvent("e")
		c.Await(a)
	}
	for kind, reason := range map[history.Kind]string{
		history.OrchestrationCompleted:      "orchestration_terminal_completed",
		history.OrchestrationFailed:         "orchestration_terminal_failed",
		history.OrchestrationContinuedAsNew: "orchestration_terminal_continued_as_new",
		history.OrchestrationTerminated:     "orchestration_terminal_terminated",
	} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			code := replay.Orchestration{Name: "o", Body: func(c *replay.Context, _ json.RawMessage) replay.Ending {
				outstanding(c)
				return replay.Ending{Kind: kind}
			}}
			end := done(3)
			if kind == history.OrchestrationTerminated {
				end = history.Event{Kind: kind}
			}
			log := record(t, code, message(end))
			first := 4
			want := []string{
				fmt.Sprintf("ActivityCancelRequested #17 (%s) [{4 4} {11 11}] by engine", reason),
				fmt.Sprintf("TimerCancelled #18 (%s) [{7 7} {12 12}]", reason),
				fmt.Sprintf("SubOrchestrationCancelRequested #19 of #10 (%s) by engine k", reason),
				fmt.Sprintf("%s #20", kind),
			}
			if kind == history.OrchestrationTerminated { // #3 has no outcome yet
				first, want = 4, []string{
					fmt.Sprintf("ActivityCancelRequested #16 (%s) [{3 4} {11 11}] by engine", reason),
					fmt.Sprintf("TimerCancelled #17 (%s) [{7 7} {12 12}]", reason),
					fmt.Sprintf("SubOrchestrationCancelRequested #18 of #10 (%s) by engine k", reason),
					fmt.Sprintf("%s #19", kind),
				}
			}
			wantSources(t, log[len(log)-first:], want...)
			if x := reload(t, code, log); !x.Ended() {
				t.Error("the execution has not ended")
			}
		})
	}
}

func TestEnd_nothingOutstanding_recordsOnlyTheEnd(t *testing.T) {
	t.Parallel()
	code := body(func(c *replay.Context) {
		c.StartDetached(call("detached", "d"))
		c.WaitForExternalEvent("e")
		c.Go(func() { c.Await(c.WaitForExternalEvent("f")) })
		activity(c, "b").Cancel("requested", "")
		c.Await(activity(c, "a"))
	})
	log := record(t, code, message(done(7)))
	wantKinds(t, log[8:], "TurnStarted #9", "ActivityCompleted #10 of #7", "OrchestrationCompleted #11")
}

func TestReplay_otherTermination_isNondeterminism(t *testing.T) {
	t.Parallel()
	code := unwinds(mixed)
	log := record(t, code, message(history.Event{Kind: history.OrchestrationTerminated}))
	wantKinds(t, log[9:], "TurnStarted #10", "ActivityCancelRequested #11 (orchestration_terminal_terminated)",
		"TimerCancelled #12 (orchestration_terminal_terminated)",
		"SubOrchestrationCancelRequested #13 of #7 (orchestration_terminal_terminated)",
		"SubOrchestrationCancelRequested #14 of #8 (orchestration_terminal_terminated)", "OrchestrationTerminated #15")
	t.Run("another id", func(t *testing.T) {
		t.Parallel()
		changed := slices.Clone(log)
		changed[10].SourceEventIDs = []history.Range{{First: 3, Last: 4}}
		wantDivergence(t, code, changed, 11, "ActivityCancelRequested of #3-#4 (orchestration_terminal_terminated)",
			"ActivityCancelRequested of #3-#4,#6-#6 (orchestration_terminal_terminated)")
	})
	t.Run("without end", func(t *testing.T) {
		t.Parallel()
		wantDivergence(t, code, log[:14], 14, "no further event", "OrchestrationTerminated")
	})
	t.Run("nothing outstanding", func(t *testing.T) {
		t.Parallel()
		none := unwinds(func(c *replay.Context) *replay.Cancellation { return c.Await(c.WaitForExternalEvent("e")) })
		changed := append(record(t, none), log[9:]...)
		for i := range changed {
			changed[i].ID = int64(i + 1)
		}
		wantDivergence(t, none, changed, 5,
			"ActivityCancelRequested of #3-#4,#6-#6 (orchestration_terminal_terminated)",
			"OrchestrationTerminated")
	})
	t.Run("history without cancel events", func(t *testing.T) {
		t.Parallel()
		old := append(slices.Clone(log[:10]), history.Event{ID: 11, Kind: history.OrchestrationTerminated})
		if x := reload(t, code, old); !x.Ended() {
			t.Error("the execution has not ended")
		}
	})
}

func clientCancels(id int64) history.Event {
	return history.Event{
		Kind: history.ActivityCancelRequested, SourceEventID: id, Reason: "requested", Message: "not this one",
		RequestedBy: history.RequestedByClient,
	}
}

func TestActivityCancelRequested_runningActivity_isCancelled(t *testing.T) {
	t.Parallel()
	code := body(func(c *replay.Context) {
		a, b := activity(c, "a"), activity(c, "b")
		if c.Await(a) != nil || c.Cancellation() != nil {
			t.Error("the scope is cancelled")
		}
		if f := a.Failure(); f == nil || f.Reason != "requested" || f.Message != "not this one" || !a.IsCancelled() ||
			a.Cancellation() != nil {
			t.Errorf("got %+v", f)
		}
		c.Await(b)
	})
	x := instance(t, code)
	log := append([]history.Event{started}, turn(t, x)...)
	log = append(log, turn(t, x, clientCancels(3), clientCancels(3))...)
	wantSources(t, log[4:], "TurnStarted #5", "ActivityCancelRequested #6 of #3 (requested) by client: not this one")
	y := reload(t, code, log)
	wantKinds(t, turn(t, y, done(3), clientCancels(3)), "TurnStarted #7", "ActivityCompleted #8 of #3")
	wantKinds(t, turn(t, y, done(4)), "TurnStarted #9", "ActivityCompleted #10 of #4", "OrchestrationCompleted #11")
}

func TestActivityCancelRequested_noOpenActivity_doesNotApply(t *testing.T) {
	t.Parallel()
	x := instance(t, body(func(c *replay.Context) {
		a := activity(c, "a")
		c.CreateTimer(time.Hour, "")
		activity(c, "b").Cancel("requested", "")
		c.ScheduleSubOrchestration(call("child", "k"))
		c.Await(activity(c, "c"))
		c.Await(a)
	}))
	turn(t, x)
	turn(t, x, done(8))
	decision := clientCancels(3)
	decision.RequestedBy = history.RequestedByOrchestration
	for _, ev := range []history.Event{
		clientCancels(2), clientCancels(4), clientCancels(5), clientCancels(7), clientCancels(8), clientCancels(99),
		decision,
	} {
		wantKinds(t, turn(t, x, ev))
	}
}

func TestCancel_beforeDelayedStart_neverRunsCode(t *testing.T) {
	t.Parallel()
	code := body(func(*replay.Context) { t.Error("the code ran") })
	first, at := started, epoch.Add(time.Hour)
	first.StartAt = &at
	x := replay.New(code, options)
	t.Cleanup(func() { x.Close() })
	if err := x.Replay([]history.Event{first}); err != nil {
		t.Fatal(err)
	}
	events := turn(t, x, cancelRequested("requested", "not wanted"))
	wantSources(t, events, "TurnStarted #2", "CancelRequested #3 (requested) by client: not wanted",
		"OrchestrationCancelled #4 (requested): not wanted")
	if y := reload(t, code, append([]history.Event{first}, events...)); !y.Ended() || !x.Ended() {
		t.Error("the execution has not ended")
	}
}

func TestReasons_strings_areStable(t *testing.T) {
	t.Parallel()
	x := instance(t, unwinds(func(c *replay.Context) *replay.Cancellation {
		s := c.WithTimeout(time.Second, "")
		activity(s, "a")
		s.ScheduleSubOrchestration(call("child", "k"))
		return c.Await(s.CreateTimer(time.Hour, ""))
	}))
	turn(t, x)
	wantSources(t, turn(t, x, fired(3)), "TurnStarted #7", "TimerFired #8 of #3",
		"ActivityCancelRequested #9 of #4 (timeout) by engine", "TimerCancelled #10 of #6 (timeout)",
		"SubOrchestrationCancelRequested #11 of #5 (timeout) by engine k",
		"OrchestrationCompleted #12")
}
