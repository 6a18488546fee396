package replay_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/replay"
)

// program is a body of random instructions. Each run of a program makes the same calls.
type program []instruction

type instruction struct{ op, scope, task int }

func drawProgram(t *rapid.T) program {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) instruction {
		return instruction{
			op: rapid.IntRange(0, 13).Draw(t, "op"), scope: rapid.IntRange(0, 5).Draw(t, "scope"),
			task: rapid.IntRange(0, 30).Draw(t, "task"),
		}
	}), 1, 30).Draw(t, "program")
}

// machine runs a program.
type machine struct {
	root   *replay.Context
	scopes []*replay.Context
	ends   []bool // whether the program can end the scope
	tasks  []*replay.Task
}

func (p program) orchestration() replay.Orchestration {
	return replay.Orchestration{
		Name: "o", Version: "1",
		Body: func(c *replay.Context, _ json.RawMessage) replay.Ending {
			m := &machine{root: c, scopes: []*replay.Context{c}, ends: []bool{false}}
			for _, in := range p {
				m.do(in)
			}
			if c.Cancellation() != nil {
				return replay.Ending{Kind: history.OrchestrationCancelled}
			}
			return completed
		},
	}
}

func (m *machine) do(in instruction) {
	at := in.scope % len(m.scopes)
	c := m.scopes[at]
	switch in.op {
	case 0, 1:
		m.tasks = append(m.tasks, activity(c, "a"))
	case 2:
		m.tasks = append(m.tasks, c.CreateTimer(time.Hour, ""))
	case 3:
		s := call("child", "")
		s.Retry = &history.RetryPolicy{MaxAttempts: 2}
		m.tasks = append(m.tasks, c.ScheduleSubOrchestration(s))
	case 4:
		m.tasks = append(m.tasks, c.WaitForExternalEvent("e"))
	case 5:
		m.add(c.WithCancel(), true)
	case 6:
		m.add(c.WithTimeout(time.Duration(in.task)*time.Second, ""), true)
	case 7:
		m.add(c.WithoutCancel(), false)
	case 8:
		if m.ends[at] {
			c.End("dropped_future")
		}
	case 9:
		m.tasks = append(m.tasks, c.Go(func() {
			m.do(instruction{op: 10, scope: in.scope, task: in.task + 1})
			activity(c, "after")
		}))
	case 10, 11:
		m.await(c, in)
	case 12:
		if len(m.tasks) > 0 {
			m.tasks[in.task%len(m.tasks)].Cancel("requested", "")
		}
	case 13:
		if i := c.AwaitAny(append(slices.Clone(m.tasks), c.CreateTimer(time.Minute, ""))); i >= 0 {
			c.Cancel("select_loser", "", m.tasks...)
		}
	}
}

func (m *machine) add(c *replay.Context, ends bool) {
	m.scopes, m.ends = append(m.scopes, c), append(m.ends, ends)
}

func (m *machine) await(c *replay.Context, in instruction) {
	if len(m.tasks) == 0 {
		return
	}
	if why := c.Await(m.tasks[in.task%len(m.tasks)]); why != nil {
		activity(m.root.WithoutCancel(), "compensate "+why.Reason)
	}
}

// drawInput draws the next input, which need not apply to an open task.
func drawInput(t *rapid.T, log []history.Event) history.Event {
	id := rapid.Int64Range(2, int64(len(log))).Draw(t, "id")
	switch rapid.IntRange(0, 11).Draw(t, "input") {
	case 0:
		return cancelRequested("requested", "m")
	case 1:
		return clientCancels(id)
	case 2:
		return raise("e", fmt.Sprint(len(log)), "1")
	case 3:
		return history.Event{Kind: history.OrchestrationTerminated}
	}
	switch log[id-1].Kind {
	case history.TimerCreated:
		return fired(id)
	case history.SubOrchestrationScheduled:
		return failedChild(id)
	default:
		return done(id)
	}
}

// If code cancels tasks in any order, a cold instance makes the same decisions, each task settles once, and no task
// stays open.
func TestCancel_anyOrder_replaysAndSettlesAll(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		code := drawProgram(t).orchestration()
		x := replay.New(code, options)
		defer x.Close()
		log := []history.Event{started}
		if err := x.Replay(log); err != nil {
			t.Fatal(err)
		}
		for n := 0; n < 12 && !x.Ended(); n++ {
			var inputs [][]history.Event
			if n > 0 {
				inputs = append(inputs, message(drawInput(t, log)))
			}
			out, err := x.Turn(replay.Turn{Now: epoch, Inputs: inputs})
			if err != nil {
				t.Fatal(err)
			}
			log = append(log, out.Events...)
			y := replay.New(code, options)
			defer y.Close()
			if err := y.Replay(log); err != nil || y.Ended() != x.Ended() {
				t.Fatalf("%v\n%q", err, kinds(log))
			}
			if rapid.Bool().Draw(t, "cold") {
				x = y
			}
		}
		wantSettled(t, log)
	})
}

// wantSettled checks that no id is cancelled twice or after its outcome, and that none is open when the execution has
// ended.
func wantSettled(t *rapid.T, log []history.Event) {
	over := map[int64]string{}
	for i := range log {
		ev := &log[i]
		switch ev.Kind {
		case history.ActivityScheduled, history.TimerCreated, history.SubOrchestrationScheduled:
			over[ev.ID] = ""
		case history.ActivityCancelRequested, history.TimerCancelled, history.SubOrchestrationCancelRequested:
			rs := ev.SourceEventIDs
			if ev.SourceEventID != 0 {
				rs = []history.Range{{First: ev.SourceEventID, Last: ev.SourceEventID}}
			}
			for _, r := range rs {
				for id := r.First; id <= r.Last; id++ {
					if was, is := over[id]; !is || was != "" {
						t.Fatalf("#%d is cancelled, but its state was %q\n%q", id, was, kinds(log))
					}
					over[id] = "cancelled"
				}
			}
		case history.ActivityCompleted, history.TimerFired, history.SubOrchestrationFailed:
			if ev.Kind == history.TimerFired && over[ev.SourceEventID] != "" {
				t.Fatalf("#%d fires, but its state was %q\n%q", ev.SourceEventID, over[ev.SourceEventID], kinds(log))
			}
			over[ev.SourceEventID] = "done"
		}
	}
	if !log[len(log)-1].Kind.Terminal() {
		return
	}
	for id, how := range over {
		if how == "" {
			t.Fatalf("#%d has no end\n%q", id, kinds(log))
		}
	}
}
