package replay

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/replay/journal"
)

// SideEffect is a nondeterministic value. Either the value or the failure to produce it is recorded once.
type SideEffect struct {
	// Produce returns the value. It must not use the Context, whose methods panic.
	Produce func() (json.RawMessage, *history.Failure)
	// Accept receives the value on replay. An error means that the code expects a value of another type, and causes a
	// NondeterminismError.
	Accept func(json.RawMessage) error
}

// SideEffect produces and records a value, or reads it from the history. It returns the failure of Produce, or nil.
func (u Unscoped) SideEffect(s SideEffect) *history.Failure {
	u.x.scheduler.Enter()
	if u.x.journal.Cursor.Replaying() {
		return u.x.recall(s.Accept)
	}

	var value json.RawMessage
	var f *history.Failure
	u.x.scheduler.RunSideEffect(func() { value, f = s.Produce() })

	u.x.scheduler.Enter() // the turn may have been abandoned in the meantime
	ev, _ := u.x.decide(journal.Decision{Kind: history.SideEffectRecorded})
	ev.Value = inline(value)
	ev.Error = f
	return f
}

// recall returns the recorded failure of a side effect, or passes its value to accept.
func (x *execution) recall(accept func(json.RawMessage) error) *history.Failure {
	ev, _ := x.decide(journal.Decision{Kind: history.SideEffectRecorded})
	if ev.Error != nil {
		return ev.Error
	}

	value, ok := ev.Value.Document()
	if !ok && ev.Value.IsEncoded() {
		var err error
		of := history.EventPayload{Payload: &ev.Value, Kind: history.PayloadSideEffect}
		if value, err = x.payloads.Decode(of, ev.ID); err != nil {
			x.scheduler.Fail(err)
		}
		ok = true
	}
	if !ok {
		x.scheduler.Fail(fmt.Errorf("replay: instance %q: the value in event #%d was not fetched", x.options.InstanceID,
			ev.ID))
	}
	if err := accept(value); err != nil {
		recorded := journal.Describe(ev)
		x.scheduler.Fail(x.journal.Nondeterminism(ev.ID, recorded, recorded+" of another type: "+err.Error()))
	}
	return nil
}

// SetCustomStatus sets the custom status that clients read. It records nothing if the status is unchanged.
func (u Unscoped) SetCustomStatus(status json.RawMessage) {
	u.x.scheduler.Enter()
	if bytes.Equal(u.x.status, status) {
		return
	}
	u.x.status = status
	if ev, added := u.x.decide(journal.Decision{Kind: history.CustomStatusSet}); added {
		ev.CustomStatus = inline(status)
	}
}
