package providertest

import (
	"errors"
	"strings"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// A read of a damaged history returns an error that names it. Other instances are not affected.
func corruption() group {
	g := group{"corruption", []testCase{
		{name: "AnUndecodableTurn", run: func(f *fixture) { damagedTurn(f, Undecodable, 1) }},
		{name: "AnUndecodableLastTurn", run: func(f *fixture) { damagedTurn(f, Undecodable, 3) }},
		{name: "AnUndecodableStart", run: func(f *fixture) { damagedTurn(f, Undecodable, 0) }},
		{name: "ATurnOfALaterRelease", run: func(f *fixture) { damagedTurn(f, LaterRelease, 1) }},
		{name: "ALastTurnOfALaterRelease", run: func(f *fixture) { damagedTurn(f, LaterRelease, 3) }},
		{name: "AMissingPart", run: func(f *fixture) { damagedTurn(f, PartMissing, 2) }},
		{name: "AMissingFirstPart", run: func(f *fixture) { damagedTurn(f, Missing, 2) }},
		{name: "AMissingTurn", run: func(f *fixture) { damagedTurn(f, Missing, 1) }},
		{name: "AMissingStart", run: func(f *fixture) { damagedTurn(f, Missing, 0) }},
		{name: "TheEndIsInADamagedTurn", run: damagedEnd},
		{name: "OtherInstancesAreUnhindered", run: othersGoOn},
		{name: "ADamagedExecutionCanBeEnded", run: canBeEnded},
		{name: "ADamagedInstanceCanBeTerminated", run: terminateDamaged},
		{name: "ADamagedChildThatIsTerminatedTellsItsParent", run: terminateDamagedChild},
	}}
	for i := range g.cases {
		g.cases[i].needs = []Capability{Corruption}
	}
	return g
}

// threeTurns returns an execution whose middle segment has several parts.
func (f *fixture) threeTurns(id string) *execution {
	f.t.Helper()
	e := f.start(id)
	e.commit(activity(Queue))
	e.commit(bulky(900 << 10))
	e.commit(completed(2), ended(`1`))
	return e
}

func (f *fixture) wantCorrupt(what string, e *execution, err error) {
	f.t.Helper()
	if !errors.Is(err, provider.ErrCorrupt) {
		f.t.Errorf("%s: error %v, want %v", what, err, provider.ErrCorrupt)
	}
	if err != nil && !strings.Contains(err.Error(), e.instance.ExecutionID) {
		f.t.Errorf("%s: the error does not name the execution: %v", what, err)
	}
}

func damagedTurn(f *fixture, d Damage, segment int64) {
	e := f.threeTurns("a")
	f.Damage(e.instance.ExecutionID, segment, d)
	for what, c := range map[string]provider.Consistency{"eventual": provider.Eventual, "strong": provider.Strong} {
		_, err := f.p.ReadOrchestration(f.ctx(), e.item(), c)
		f.wantCorrupt(what, e, err)
	}
	n, last := 0, int64(0)
	for event, err := range f.p.ReadHistory(f.ctx(), e.instance.InstanceID, e.instance.ExecutionID, 0) {
		if err == nil {
			if last++; n > 0 || event.ID != last {
				f.t.Errorf("event %s of a damaged history, after event %d and %d errors", event.String(), last-1, n)
			}
			continue
		}
		n++
		f.wantCorrupt("history", e, err)
	}
	if n != 1 {
		f.t.Errorf("%d errors, want 1", n)
	}
}

func damagedEnd(f *fixture) {
	for d, large := range map[Damage]bool{Undecodable: false, LaterRelease: false, NoEvents: false, PartMissing: true, Missing: true} {
		last := ended(`1`)
		if large {
			last.Output = noise(900 << 10)
		}
		e := f.start(string(d))
		e.commit(turnStarted(), last)
		f.Damage(e.instance.ExecutionID, 1, d)
		end, err := f.p.ReadTerminalEvent(f.ctx(), e.instance.ExecutionID)
		if err == nil {
			f.t.Errorf("%s: final event is %s", d, end.String())
		}
		if d != NoEvents || !errors.Is(err, provider.ErrNotFound) { // no remaining data shows that it has ended
			f.wantCorrupt(string(d), e, err)
		}
	}
}

func othersGoOn(f *fixture) {
	bad, good := f.threeTurns("bad"), f.start("good")
	f.Damage(bad.instance.ExecutionID, 1, Undecodable)
	t := good.commit(turnStarted(), activity(Queue))
	good.wantSegments(t)
	if ids := f.list(provider.ListQuery{}); len(ids) != 2 {
		f.t.Errorf("%d instances are listed, want 2", len(ids))
	}
}

// canBeEnded: the data outside the history can still be read, and a turn on the head still commits, so that the
// instance can be ended.
func canBeEnded(f *fixture) {
	e := f.start("a")
	e.commit(turnStarted(), activity(Queue))
	f.Damage(e.instance.ExecutionID, 1, Undecodable)
	f.wantStatus("a", provider.StatusRunning)
	t := e.turn(history.Event{Kind: history.OrchestrationFailed, Error: &history.Failure{Type: "T", Message: "m"}})
	_, err := f.p.AckOrchestrationItem(f.ctx(), t)
	f.must(err)
	f.wantStatus("a", provider.StatusFailed)
	end, err := f.p.ReadTerminalEvent(f.ctx(), e.instance.ExecutionID)
	f.must(err)
	f.wantEqual("final event", end, t.Events[0])
}

// terminateDamaged: wherever the damage is, the terminal event is appended once, after it.
func terminateDamaged(f *fixture) {
	for i, c := range []struct {
		how     Damage
		segment int64
	}{{Undecodable, 0}, {Undecodable, 1}, {Undecodable, 2}, {LaterRelease, 1}, {Missing, 1}} {
		id := string(rune('a' + i))
		e := f.quiet(id)
		e.commit(turnStarted(), activity(Queue))
		e.commit(turnStarted(), activity(Queue))
		f.Damage(e.instance.ExecutionID, c.segment, c.how)
		f.enqueue(provider.Message{Kind: provider.MessageTerminate, InstanceID: id, Text: "enough"})
		m := f.messages()[0]
		for range 2 { // the message can be redelivered
			f.must(f.p.TerminateCorrupt(f.ctx(), &m))
		}
		f.wantStatus(id, provider.StatusTerminated)
		end, err := f.p.ReadTerminalEvent(f.ctx(), e.instance.ExecutionID)
		f.must(err)
		f.wantEqual("final event", []string{string(end.Kind), end.Message},
			[]string{string(history.OrchestrationTerminated), "enough"})
		if info := f.cancels(e.instance.ExecutionID).Of(4); info.Reason != "orchestration_terminal_terminated" {
			f.t.Errorf("activity is not cancelled: %+v", info)
		}
	}
}

func terminateDamagedChild(f *fixture) {
	e := f.create(startMessageOf("c", "s1"))
	t := e.turn(turnStarted())
	e.ack(t)
	f.Damage(e.instance.ExecutionID, 1, Undecodable)
	f.enqueue(provider.Message{Kind: provider.MessageTerminate, InstanceID: "c"})
	for _, m := range f.messages() {
		if m.Kind == provider.MessageTerminate {
			f.must(f.p.TerminateCorrupt(f.ctx(), &m))
		}
	}
	told := f.messages()
	if len(told) != 1 || told[0].Kind != provider.MessageChildOutcome || told[0].Error == nil || told[0].Error.Type != history.TypeTerminated {
		f.t.Errorf("messages to the parent: %s", text(told))
	}
}
