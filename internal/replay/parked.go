package replay

import (
	"slices"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/replay/loading"
)

// parkedBytes limits the documents of the parked inputs that one turn takes.
const parkedBytes = 32 << 20

// parkedInputs are inputs that arrived when the code could not process them. The next turn takes them (R18). Most
// executions have no parked inputs. A nil parkedInputs is empty.
type parkedInputs struct {
	inputs  []history.Event
	left    []history.Event // inputs that the running turn took and has not applied
	blocked bool            // no turn has started since the code could not process its inputs, or was paused
}

// add returns the parked inputs together with the inputs of an event. It replaces large documents by references.
func (p *parkedInputs) add(ev *history.Event, loader *loading.Loader) *parkedInputs {
	if p == nil {
		p = &parkedInputs{}
	}

	inputs := slices.Clone(ev.Inputs)
	for i := range inputs {
		at := history.DataLocation{EventID: ev.ID, Field: history.LocationInputs, Index: i}
		loader.ReferParked(at, &inputs[i])
	}
	p.inputs = append(p.inputs, inputs...)
	p.blocked = ev.Kind == history.InputsParked
	return p
}

// block returns the parked inputs of an execution that was paused and has had no turn since.
func (p *parkedInputs) block() *parkedInputs {
	if p == nil {
		p = &parkedInputs{}
	}
	p.blocked = true
	return p
}

// drop drops the first n inputs, which a turn of the past took.
func (p *parkedInputs) drop(n int) {
	if p == nil {
		return
	}
	p.blocked = false
	p.inputs = p.inputs[min(n, len(p.inputs)):]
}

// dropAll drops all inputs, which a turn of the past took.
func (p *parkedInputs) dropAll() { p.drop(p.count()) }

// isBlocked reports whether no turn has started since the code could not process its inputs, or was paused.
func (p *parkedInputs) isBlocked() bool { return p != nil && p.blocked }

// count returns the number of inputs that wait for a turn.
func (p *parkedInputs) count() int {
	if p == nil {
		return 0
	}
	return len(p.inputs)
}

// take puts the inputs before the messages of a turn. If the turn takes only some of them, they replace the messages,
// and take returns their number. Otherwise it returns 0.
func (p *parkedInputs) take(t *Turn) (alone int) {
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

// affordable returns the number of inputs that one turn may take. The turn may have to fetch all of their documents and
// hold them in memory until its end.
func (p *parkedInputs) affordable() int {
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

// next records that the turn applies its next parked input.
func (p *parkedInputs) next() { p.left = p.left[1:] }

// endTurn drops the inputs that the turn has not applied.
func (p *parkedInputs) endTurn() {
	if p != nil {
		p.left = nil
	}
}

// waiting returns the inputs that no turn has applied.
func (p *parkedInputs) waiting() []history.Event {
	if p == nil {
		return nil
	}
	if len(p.left) > 0 { // a turn is running, and all waiting inputs are among these
		return p.left
	}
	return p.inputs
}

// inherited returns the inputs that the turn has not applied and that concern the next execution. Outcomes of this
// execution's tasks do not concern the next one.
func (p *parkedInputs) inherited() []history.Event {
	if p == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(p.left), func(ev history.Event) bool {
		return ev.Kind.HasSource()
	})
}

// settles reports whether parked inputs cancel a task, and whether they settle it.
func (p *parkedInputs) settles(id int64) (cancelled, settled bool) {
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
