package replay

import (
	"slices"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/replay/payloads"
)

// parking holds inputs that came while the code could not take them, for the next turn (R18). Most executions have none: a nil parking is empty.
type parking struct {
	inputs  []history.Event
	left    []history.Event // of those that the turn under way took, the ones it has not come to
	blocked bool            // no turn has begun since the code could not take its inputs, or was paused
}

// parkedBytes limits the documents of the parked inputs that one turn takes.
const parkedBytes = 32 << 20

// add returns the parking with the parked inputs of an event. Large documents of theirs stay where they lie.
func (p *parking) add(ev *history.Event, loader *payloads.Loader) *parking {
	if p == nil {
		p = &parking{}
	}

	inputs := slices.Clone(ev.Inputs)
	for i := range inputs {
		loader.ReferParked(history.DataLocation{EventID: ev.ID, Field: history.LocationInputs, Index: i}, &inputs[i])
	}
	p.inputs = append(p.inputs, inputs...)
	p.blocked = ev.Kind == history.InputsParked
	return p
}

// stop returns the parking of an execution that is paused, or was and has had no turn since.
func (p *parking) stop() *parking {
	if p == nil {
		p = &parking{}
	}
	p.blocked = true
	return p
}

// drop drops the first n inputs, which a turn of the past took.
func (p *parking) drop(n int) {
	if p == nil {
		return
	}
	p.blocked = false
	p.inputs = p.inputs[min(n, len(p.inputs)):]
}

// dropAll drops all inputs, since a turn of the past took them.
func (p *parking) dropAll() {
	if p != nil {
		p.drop(len(p.inputs))
	}
}

// isBlocked reports whether no turn has begun since the code could not take its inputs, or was paused.
func (p *parking) isBlocked() bool { return p != nil && p.blocked }

// ParkedBehind returns the number of parked inputs that the running turn has left to later turns. It is the same in
// each replay.
func ParkedBehind(c *Context) int {
	c.x.scheduler.Enter()
	if c.x.parking == nil {
		return 0
	}
	return len(c.x.parking.inputs)
}

// isEmpty reports whether no input waits for a turn.
func (p *parking) isEmpty() bool { return p == nil || len(p.inputs) == 0 }

// unpark puts the parked inputs before the messages of a turn. In a turn that takes only some of them they replace the messages; then it
// returns how many they are, else 0.
func (p *parking) unpark(t *Turn) (alone int) {
	p.left = p.inputs

	most := p.affordable()
	if t.MostParked <= 0 && most == len(p.inputs) {
		t.Inputs = append([][]history.Event{p.inputs}, t.Inputs...)
		p.inputs = nil
		return 0
	}

	if t.MostParked > 0 {
		most = min(most, t.MostParked)
	}
	t.Inputs = [][]history.Event{p.inputs[:most]}
	p.inputs = p.inputs[most:]
	return most
}

// affordable returns how many of the inputs one turn takes: their documents may all have to be fetched, and be in memory, before it is over.
func (p *parking) affordable() int {
	total := int64(0)
	for i := range p.inputs {
		in := &p.inputs[i]
		total += int64(len(in.Data) + len(in.Result))
		if ref, ok := in.Data.Reference(); ok {
			total += ref.Bytes
		}
		if total > parkedBytes && i > 0 {
			return i
		}
	}
	return len(p.inputs)
}

// takeNext counts an input that the turn has come to.
func (p *parking) takeNext() { p.left = p.left[1:] }

// endTurn forgets what the turn has not come to.
func (p *parking) endTurn() {
	if p != nil {
		p.left = nil
	}
}

// notTaken returns the inputs that no turn has come to.
func (p *parking) notTaken() []history.Event {
	if p == nil {
		return nil
	}
	if len(p.left) > 0 { // a turn is under way, and all that wait are among these
		return p.left
	}
	return p.inputs
}

// inherited returns the inputs that the turn has not come to and that concern the next execution as well. Outcomes of this one's own tasks do
// not.
func (p *parking) inherited() []history.Event {
	if p == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(p.left), func(ev history.Event) bool {
		return ev.Kind.HasSource()
	})
}

// settles reports whether parked inputs cancel a task, and whether they settle it.
func (p *parking) settles(id int64) (cancelled, settled bool) {
	if p == nil {
		return false, false
	}
	for i := range p.inputs {
		ev := &p.inputs[i]
		if !slices.Contains(ev.Settles(), id) {
			continue
		}
		if ev.Kind == history.ActivityCancelRequested {
			cancelled = true
		} else {
			settled = true
		}
	}
	return cancelled, settled
}
