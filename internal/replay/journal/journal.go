// Package journal holds the history of an execution: the past that is replayed, and the events of the running turn. On
// replay, every decision of the code must match the history.
package journal

import (
	"fmt"
	"reflect"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/faults"
	"github.com/perdure/perdure/internal/replay/loading"
)

// Options describe an execution.
type Options struct {
	*history.ExecutionRef

	// BuildID names the code. Inputs that the same build recorded must match on replay. It may be empty.
	BuildID string
}

// Journal is the history of an execution. Decide and Add use Cursor during a replay and Draft during a turn.
type Journal struct {
	Cursor Cursor
	Draft  Draft

	options Options
}

// Init prepares a new Journal. It compares encoded inputs with the loader.
func (j *Journal) Init(opts *Options, loader *loading.Loader) {
	j.options = *opts
	j.Cursor.options = &j.options
	j.Cursor.payloads = loader
}

// Decide records a decision. During a turn, it adds an event, which the caller completes (added is true). On replay, it
// returns the recorded event, which the caller must not change, or a *NondeterminismError.
func (j *Journal) Decide(d *Decision) (ev *history.Event, added bool, err error) {
	if j.Cursor.replaying {
		ev, err = j.Cursor.match(d)
		return ev, false, err
	}

	ev = j.Add()
	ev.Kind = d.Kind
	ev.Name = d.Name
	ev.InstanceID = d.InstanceID
	ev.Reason = d.Reason
	ev.SourceEventID = d.Source
	ev.SourceEventIDs = d.Sources
	return ev, true, nil
}

// Add adds an event with its ID and time to the turn. The caller completes the event.
func (j *Journal) Add() *history.Event { return j.Draft.add(j.Cursor.Assign()) }

// StartTurn adds TurnStarted, unless the turn has events. The draft uses room for its events, as far as they fit.
func (j *Journal) StartTurn(version, buildID string, buffer []history.Event) {
	if !j.Draft.isEmpty() {
		return
	}
	j.Draft.useBuffer(buffer)
	ev := j.Add()
	ev.Kind = history.TurnStarted
	ev.Version = version
	ev.BuildID = buildID
	ev.LargePayloads = j.Draft.large
}

// NondeterminismError is returned if the decisions of an orchestration's code differ from its history. The code was
// changed incompatibly with running instances, or it depends on a value that differs between runs. Examples are the
// clock, a random number and the order of a map. The instance does not fail. It continues after the code is fixed.
type NondeterminismError struct {
	InstanceID  string
	ExecutionID string
	// EventID is the event at which the code and the history differ. If the history has no more events, it is the last
	// one.
	EventID int64
	// Expected is the event in the history. Got is the request of the code.
	Expected, Got string
}

// Nondeterminism returns the error for this execution.
func (j *Journal) Nondeterminism(eventID int64, expected, got string) *NondeterminismError {
	return j.options.nondeterminism(eventID, expected, got)
}

func (o *Options) nondeterminism(eventID int64, expected, got string) *NondeterminismError {
	return &NondeterminismError{
		InstanceID: o.InstanceID, ExecutionID: o.ExecutionID, EventID: eventID, Expected: expected, Got: got,
	}
}

// As lets errors.As convert the error to perdure.NondeterminismError, which has the same fields. This package cannot
// import that type.
func (e *NondeterminismError) As(target any) bool {
	from, to := reflect.ValueOf(e), reflect.ValueOf(target).Elem()
	if to.Kind() != reflect.Pointer || !from.CanConvert(to.Type()) {
		return false
	}
	to.Set(from.Convert(to.Type()))
	return true
}

func (e *NondeterminismError) Error() string {
	return fmt.Sprintf("nondeterminism in instance %q (execution %s) at event #%d: "+
		"history has %s, the code requested %s",
		e.InstanceID, e.ExecutionID, e.EventID, e.Expected, e.Got)
}

// FaultKind implements faults.Fault.
func (*NondeterminismError) FaultKind() faults.Kind { return faults.Nondeterminism }
