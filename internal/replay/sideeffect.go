package replay

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/perdure/perdure/history"
)

// SideEffect is a value that code takes from outside. It is produced once and recorded, as is its failure.
type SideEffect struct {
	// Produce makes the value. It must not use the Context: that panics.
	Produce func() (json.RawMessage, *history.Failure)
	// Accept takes the value on replay. Its error means that the code expects another type by now: nondeterminism.
	Accept func(json.RawMessage) error
}

// SideEffect decides on a value, and returns what producing it failed with; nil when it did not.
func (c *Context) SideEffect(s SideEffect) *history.Failure {
	c.x.scheduler.enter()
	if c.x.journal.cursor.replaying {
		return c.x.recall(s.Accept)
	}

	var value json.RawMessage
	var f *history.Failure
	c.x.scheduler.outside(func() { value, f = s.Produce() })

	c.x.scheduler.enter() // the turn may have been given up meanwhile
	ev, _ := c.x.decide(decision{kind: history.SideEffectRecorded})
	ev.Value = inline(value)
	ev.Error = f
	return f
}

// recall takes a side effect from history.
func (x *execution) recall(accept func(json.RawMessage) error) *history.Failure {
	ev, _ := x.decide(decision{kind: history.SideEffectRecorded})
	if ev.Error != nil {
		return ev.Error
	}

	value, ok := ev.Value.Document()
	if !ok && ev.Value.IsEncoded() {
		var err error
		if value, err = x.documents.open(history.EventPayload{Payload: &ev.Value, Kind: history.PayloadSideEffect}, ev.ID); err != nil {
			x.scheduler.fail(err)
		}
		ok = true
	}
	if !ok {
		x.scheduler.fail(fmt.Errorf("replay: instance %q: the value in event #%d was not fetched from where it lies", x.options.InstanceID, ev.ID))
	}
	if err := accept(value); err != nil {
		x.scheduler.fail(x.options.nondeterminism(ev.ID, describe(ev), describe(ev)+" of another type: "+err.Error()))
	}
	return nil
}

// SetCustomStatus decides on what clients see as the instance's custom status, unless it is that already.
func (c *Context) SetCustomStatus(status json.RawMessage) {
	c.x.scheduler.enter()
	if bytes.Equal(c.x.status, status) {
		return
	}
	c.x.status = status
	if ev, added := c.x.decide(decision{kind: history.CustomStatusSet}); added {
		ev.CustomStatus = inline(status)
	}
}
