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

// sagas is a body of random instructions. Its coroutines schedule and cancel tasks, wait for their ends and compensate.
type sagas []saga

type saga struct {
	scope int // root scope, scope with cancel, scope with timeout, or scope that is never cancelled
	steps []instruction
	fails bool // whether it fails and compensates
}

func drawSagas(t *rapid.T) sagas {
	step := rapid.Custom(func(t *rapid.T) instruction {
		return instruction{op: rapid.IntRange(0, 9).Draw(t, "op"), task: rapid.IntRange(0, 9).Draw(t, "task")}
	})
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) saga {
		return saga{
			rapid.IntRange(0, 4).Draw(t, "scope"), rapid.SliceOfN(step, 1, 6).Draw(t, "steps"),
			rapid.Bool().Draw(t, "fails"),
		}
	}), 1, 5).Draw(t, "sagas")
}

func (p sagas) orchestration() replay.Orchestration {
	return replay.Orchestration{
		Name: "o", Version: "1",
		Body: func(c *replay.Context, _ json.RawMessage) replay.Ending {
			var all []*replay.Task
			end := c.WithCancel()
			scopes := []*replay.Context{c, end, end.WithCancel(), c.WithTimeout(time.Minute, ""), c.WithoutCancel()}
			var going []*replay.Task
			for i, s := range p {
				going = append(going, c.WithoutCancel().Go(func() { s.run(i, scopes[s.scope], end, &all) }))
			}
			_ = c.WithoutCancel().AwaitAll(going)
			c.AwaitEnds("dropped_future")
			if c.Cancellation() != nil {
				return replay.Ending{Kind: history.OrchestrationCancelled}
			}
			return completed
		},
	}
}

func (s *saga) run(n int, c, end *replay.Context, all *[]*replay.Task) {
	safe := c.WithoutCancel()
	for _, in := range s.steps {
		var task *replay.Task
		if len(*all) > 0 {
			task = (*all)[in.task%len(*all)]
		}
		switch {
		case in.op <= 2:
			*all = append(*all, waited(c, fmt.Sprint("do ", n)))
		case in.op == 3:
			*all = append(*all, activity(c, "unheard"))
		case in.op == 4:
			k := call("child", "")
			k.Retry, k.WaitCancel = &history.RetryPolicy{MaxAttempts: 3}, true
			*all = append(*all, c.ScheduleSubOrchestration(k))
		case task == nil:
		case in.op == 5:
			task.Cancel("requested", "m")
		case in.op == 6:
			end.End("dropped_future")
		case in.op == 7:
			if i := c.AwaitAny([]*replay.Task{task, c.CreateTimer(time.Second, "")}); i == 1 {
				task.Cancel("select_loser", "")
			}
		default:
			_ = c.Await(task)
			observe(safe, task)
		}
	}
	if s.fails {
		c.AwaitEnds("dropped_future")
		_ = safe.Await(waited(safe, "undo"))
	}
}

// observe schedules an activity whose name describes the end of a task.
func observe(c *replay.Context, t *replay.Task) {
	how := fmt.Sprint("observe ", t.IsDone(), t.IsCancelled(), t.EndedWith() != nil)
	if f := t.Failure(); f != nil {
		how += " " + f.Type + " " + f.Reason + " " + f.CancelOutcome
	}
	activity(c, how)
}

// drawEnd draws an outcome of a task or another input.
func drawEnd(t *rapid.T, log []history.Event) history.Event {
	var open []int
	for i := range log {
		switch log[i].Kind {
		case history.ActivityScheduled, history.TimerCreated, history.SubOrchestrationScheduled:
			open = append(open, i)
		}
	}
	n := rapid.IntRange(0, 20).Draw(t, "input")
	switch {
	case n == 0:
		return cancelRequested("requested", "m")
	case n == 1 && rapid.IntRange(0, 5).Draw(t, "ends") == 0:
		return history.Event{Kind: history.OrchestrationTerminated}
	case len(open) == 0:
		return fired(1)
	}
	ev := &log[open[rapid.IntRange(0, len(open)-1).Draw(t, "of")]]
	if n <= 4 && ev.Kind == history.ActivityScheduled {
		return clientCancels(ev.ID)
	}
	switch ev.Kind {
	case history.TimerCreated:
		return fired(ev.ID)
	case history.SubOrchestrationScheduled:
		in := history.Event{
			SourceEventID: ev.ID, InstanceID: ev.InstanceID, Error: &history.Failure{Type: "E"},
			Kind: rapid.SampledFrom([]history.Kind{
				history.SubOrchestrationFailed, history.SubOrchestrationFailed, history.SubOrchestrationCompleted,
				history.SubOrchestrationCancelFailed, history.OutputFailed,
			}).Draw(t, "how"),
		}
		if in.Kind == history.SubOrchestrationCompleted {
			in.Error, in.Result = nil, history.Payload("2")
		}
		return in
	}
	seen := epoch
	note := rapid.SampledFrom([]*history.CancelDetails{
		nil, nil,
		{Outcome: history.OutcomeReturned, SeenAt: &seen},
		{Outcome: history.OutcomeAbandoned},
		{Outcome: history.OutcomeNeverStarted},
		{Outcome: history.OutcomeWorkerLost},
		{Outcome: history.OutcomeTimedOut},
	}).Draw(t, "ended")
	switch rapid.IntRange(0, 2).Draw(t, "how") {
	case 0:
		in := done(ev.ID)
		in.Cancel = note
		return in
	case 1:
		return history.Event{
			Kind: history.ActivityFailed, SourceEventID: ev.ID, Attempt: rapid.IntRange(0, 2).Draw(t, "attempt"),
			Error: &history.Failure{Type: "E"}, Cancel: note,
		}
	default:
		return history.Event{
			Kind: history.OutputFailed, SourceEventID: ev.ID, Error: &history.Failure{Type: "E"}, Cancel: note,
		}
	}
}

func text(events []history.Event) string {
	b, _ := json.Marshal(events)
	return string(b)
}

// If code waits, cancels and ends scopes in any order, an instance that is replayed before any turn makes the same
// decisions in that turn. The whole history can be replayed.
func TestReplay_anyWaitsAndCuts_matches(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		code := drawSagas(t).orchestration()
		x := replay.New(code, options)
		defer x.Close()
		log := []history.Event{started}
		if err := x.Replay(log); err != nil {
			t.Fatal(err)
		}
		for n := 0; n < 25 && !x.Ended(); n++ {
			turn := replay.Turn{Now: epoch}
			for k := rapid.IntRange(0, 3).Draw(t, "messages"); n > 0 && k >= 0; k-- {
				turn.Inputs = append(turn.Inputs, message(drawEnd(t, log)))
			}
			y := replay.New(code, options)
			if err := y.Replay(slices.Clone(log)); err != nil {
				t.Fatalf("%v\n%q", err, kinds(log))
			}
			for id := range int64(len(log)) {
				open, ending := x.OpenActivity(id)
				if o, e := y.OpenActivity(id); o != open || e != ending {
					t.Fatalf("#%d: warm %v, %v, cold %v, %v\n%q", id, open, ending, o, e, kinds(log))
				}
			}
			cold := turn
			cold.Inputs = slices.Clone(turn.Inputs)
			out, err := x.Turn(turn)
			if err != nil {
				t.Fatal(err)
			}
			again, err := y.Turn(cold)
			if err != nil || text(out.Events) != text(again.Events) || x.Ended() != y.Ended() ||
				out.Consumed != again.Consumed {
				t.Fatalf("%v\n%q\nwarm %q\ncold %q", err, kinds(log), kinds(out.Events), kinds(again.Events))
			}
			y.Close()
			log = append(log, out.Events...)
		}
		z := replay.New(code, options)
		defer z.Close()
		if err := z.Replay(log); err != nil || z.Ended() != x.Ended() {
			t.Fatalf("%v, ended %v, warm %v\n%q", err, z.Ended(), x.Ended(), kinds(log))
		}
	})
}
