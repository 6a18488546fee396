package turns

import (
	"errors"
	"strings"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/providertest/internal/kit"
)

// Corruption tests that a read of a damaged history returns an error that names the damaged item. Other instances are
// not affected.
func Corruption() kit.Group {
	g := kit.Group{Name: "corruption", Cases: []kit.Case{
		{Name: "UndecodableTurn", Run: func(f *kit.Fixture) { damagedTurn(f, kit.Undecodable, 1) }},
		{Name: "UndecodableLastTurn", Run: func(f *kit.Fixture) { damagedTurn(f, kit.Undecodable, 3) }},
		{Name: "UndecodableStart", Run: func(f *kit.Fixture) { damagedTurn(f, kit.Undecodable, 0) }},
		{Name: "TurnOfLaterRelease", Run: func(f *kit.Fixture) { damagedTurn(f, kit.LaterRelease, 1) }},
		{Name: "LastTurnOfLaterRelease", Run: func(f *kit.Fixture) { damagedTurn(f, kit.LaterRelease, 3) }},
		{Name: "MissingPart", Run: func(f *kit.Fixture) { damagedTurn(f, kit.PartMissing, 2) }},
		{Name: "MissingFirstPart", Run: func(f *kit.Fixture) { damagedTurn(f, kit.Missing, 2) }},
		{Name: "MissingTurn", Run: func(f *kit.Fixture) { damagedTurn(f, kit.Missing, 1) }},
		{Name: "MissingStart", Run: func(f *kit.Fixture) { damagedTurn(f, kit.Missing, 0) }},
		{Name: "EndInDamagedTurn", Run: damagedEnd},
		{Name: "OtherInstancesAreNotAffected", Run: othersGoOn},
		{Name: "DamagedExecutionCanBeEnded", Run: canBeEnded},
		{Name: "DamagedInstanceCanBeTerminated", Run: terminateDamaged},
		{Name: "TerminatedDamagedChildReportsToParent", Run: terminateDamagedChild},
	}}
	for i := range g.Cases {
		g.Cases[i].Needs = []kit.Capability{kit.Corruption}
	}
	return g
}

// threeTurns returns an execution whose middle segment has several parts.
func threeTurns(f *kit.Fixture, id string) *kit.Execution {
	f.T.Helper()
	e := f.Start(id)
	e.Commit(kit.Activity(kit.Queue))
	e.Commit(kit.Bulky(900 << 10))
	e.Commit(kit.Completed(2), kit.Ended(`1`))
	return e
}

func wantCorrupt(f *kit.Fixture, what string, e *kit.Execution, err error) {
	f.T.Helper()
	if !errors.Is(err, provider.ErrCorrupt) {
		f.T.Errorf("%s: got error %v, want %v", what, err, provider.ErrCorrupt)
	}
	if err != nil && !strings.Contains(err.Error(), e.Instance.ExecutionID) {
		f.T.Errorf("%s: the error does not name the execution: %v", what, err)
	}
}

func damagedTurn(f *kit.Fixture, d kit.Damage, segment int64) {
	e := threeTurns(f, "a")
	f.Damage(e.Instance.ExecutionID, segment, d)
	for what, c := range map[string]provider.Consistency{"eventual": provider.Eventual, "strong": provider.Strong} {
		_, err := f.Provider.ReadOrchestration(f.Ctx(), e.Item(), c)
		wantCorrupt(f, what, e, err)
	}
	n, last := 0, int64(0)
	for event, err := range f.Provider.ReadHistory(f.Ctx(), e.Instance.InstanceID, e.Instance.ExecutionID, 0) {
		if err == nil {
			if last++; n > 0 || event.ID != last {
				f.T.Errorf("event %s of a damaged history, after event %d and %d errors", event.String(), last-1, n)
			}
			continue
		}
		n++
		wantCorrupt(f, "history", e, err)
	}
	if n != 1 {
		f.T.Errorf("got %d errors, want 1", n)
	}
}

func damagedEnd(f *kit.Fixture) {
	for d, large := range map[kit.Damage]bool{
		kit.Undecodable: false, kit.LaterRelease: false, kit.NoEvents: false, kit.PartMissing: true, kit.Missing: true,
	} {
		last := kit.Ended(`1`)
		if large {
			last.Output = kit.Noise(900 << 10)
		}
		e := f.Start(string(d))
		e.Commit(kit.TurnStarted(), last)
		f.Damage(e.Instance.ExecutionID, 1, d)
		end, err := f.Provider.ReadTerminalEvent(f.Ctx(), e.Instance.ExecutionID)
		if err == nil {
			f.T.Errorf("%s: final event is %s", d, end.String())
		}
		if d != kit.NoEvents || !errors.Is(err, provider.ErrNotFound) { // no remaining data shows that it has ended
			wantCorrupt(f, string(d), e, err)
		}
	}
}

func othersGoOn(f *kit.Fixture) {
	bad, good := threeTurns(f, "bad"), f.Start("good")
	f.Damage(bad.Instance.ExecutionID, 1, kit.Undecodable)
	t := good.Commit(kit.TurnStarted(), kit.Activity(kit.Queue))
	good.WantSegments(t)
	if ids := f.List(provider.ListQuery{}); len(ids) != 2 {
		f.T.Errorf("%d instances are listed, want 2", len(ids))
	}
}

// canBeEnded checks that the data outside the history can still be read, and that a turn on the head still commits. The
// instance can therefore be ended.
func canBeEnded(f *kit.Fixture) {
	e := f.Start("a")
	e.Commit(kit.TurnStarted(), kit.Activity(kit.Queue))
	f.Damage(e.Instance.ExecutionID, 1, kit.Undecodable)
	f.WantStatus("a", provider.StatusRunning)
	t := e.Turn(history.Event{Kind: history.OrchestrationFailed, Error: &history.Failure{Type: "T", Message: "m"}})
	_, err := f.Provider.AckOrchestrationItem(f.Ctx(), t)
	f.Must(err)
	f.WantStatus("a", provider.StatusFailed)
	end, err := f.Provider.ReadTerminalEvent(f.Ctx(), e.Instance.ExecutionID)
	f.Must(err)
	f.WantEqual("final event", end, t.Events[0])
}

// terminateDamaged checks that the terminal event is appended once after the readable history, regardless of the
// damaged segment.
func terminateDamaged(f *kit.Fixture) {
	for i, c := range []struct {
		how     kit.Damage
		segment int64
	}{{kit.Undecodable, 0}, {kit.Undecodable, 1}, {kit.Undecodable, 2}, {kit.LaterRelease, 1}, {kit.Missing, 1}} {
		id := string(rune('a' + i))
		e := f.StartWithoutWake(id)
		e.Commit(kit.TurnStarted(), kit.Activity(kit.Queue))
		e.Commit(kit.TurnStarted(), kit.Activity(kit.Queue))
		f.Damage(e.Instance.ExecutionID, c.segment, c.how)
		f.Enqueue(provider.Message{Kind: provider.MessageTerminate, InstanceID: id, Text: "enough"})
		m := f.Messages()[0]
		for range 2 { // the message can be redelivered
			f.Must(f.Provider.TerminateCorrupt(f.Ctx(), &m))
		}
		f.WantStatus(id, provider.StatusTerminated)
		end, err := f.Provider.ReadTerminalEvent(f.Ctx(), e.Instance.ExecutionID)
		f.Must(err)
		f.WantEqual("final event", []string{string(end.Kind), end.Message},
			[]string{string(history.OrchestrationTerminated), "enough"})
		if info := f.Cancels(e.Instance.ExecutionID).Of(4); info.Reason != "orchestration_terminal_terminated" {
			f.T.Errorf("activity is not cancelled: %+v", info)
		}
	}
}

func terminateDamagedChild(f *kit.Fixture) {
	e := f.Create(kit.StartMessageOf("c", "s1"))
	t := e.Turn(kit.TurnStarted())
	e.Ack(t)
	f.Damage(e.Instance.ExecutionID, 1, kit.Undecodable)
	f.Enqueue(provider.Message{Kind: provider.MessageTerminate, InstanceID: "c"})
	for _, m := range f.Messages() {
		if m.Kind == provider.MessageTerminate {
			f.Must(f.Provider.TerminateCorrupt(f.Ctx(), &m))
		}
	}
	reported := f.Messages()
	if len(reported) != 1 || reported[0].Kind != provider.MessageChildOutcome || reported[0].Error == nil ||
		reported[0].Error.Type != history.TypeTerminated {
		f.T.Errorf("messages to the parent: got %s", kit.Text(reported))
	}
}
