package replay

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/perdure/perdure/history"
)

// SideEffect is a value that code brings in from outside. It is produced once and recorded, its failure too.
type SideEffect struct {
	// Produce makes the value. It must not use the Context: that panics.
	Produce func() (json.RawMessage, *history.Failure)
	// Accept is given the value on replay. Its error means that the code expects another type by now: nondeterminism.
	Accept func(json.RawMessage) error
}

// SideEffect decides on a value and returns what producing it failed with; nil when it did not.
func (c *Context) SideEffect(s SideEffect) *history.Failure {
	c.x.enter()
	if c.x.replaying {
		return c.x.recall(s.Accept)
	}
	value, f := c.x.produce(s.Produce)
	c.x.enter() // it may have taken too long
	ev, _ := c.x.decide(decision{kind: history.SideEffectRecorded})
	ev.Value, ev.Error = inline(value), f
	return f
}

func (x *execution) produce(produce func() (json.RawMessage, *history.Failure)) (json.RawMessage, *history.Failure) {
	x.aside = true
	defer func() { x.aside = false }()
	return produce()
}

// recall takes a side effect out of history.
func (x *execution) recall(accept func(json.RawMessage) error) *history.Failure {
	ev, _ := x.decide(decision{kind: history.SideEffectRecorded})
	if ev.Error != nil {
		return ev.Error
	}
	value, ok := ev.Value.Document()
	if !ok {
		x.fail(fmt.Errorf("replay: instance %q: the value in event #%d was not fetched from where it lies", x.options.InstanceID, ev.ID))
	}
	if err := accept(value); err != nil {
		x.fail(&NondeterminismError{
			InstanceID: x.options.InstanceID, ExecutionID: x.options.ExecutionID, EventID: ev.ID,
			Expected: describe(ev), Got: describe(ev) + " of another type: " + err.Error(),
		})
	}
	return nil
}

// SetCustomStatus decides on what clients see as the instance's custom status, unless the code set the very same before.
func (c *Context) SetCustomStatus(status json.RawMessage) {
	c.x.enter()
	if bytes.Equal(c.x.status, status) {
		return
	}
	c.x.status = status
	if ev, added := c.x.decide(decision{kind: history.CustomStatusSet}); added {
		ev.CustomStatus = inline(status)
	}
}
