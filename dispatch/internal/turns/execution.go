package turns

import (
	"context"
	"encoding/json"
	"fmt"
	"sort"
	"time"

	"github.com/perdure/perdure/dispatch/internal/intake"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/faults"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/internal/replay"
	"github.com/perdure/perdure/internal/vault"
	"github.com/perdure/perdure/provider"
)

// execution is an orchestration in memory: its coroutines, and the head they stand at.
type execution struct {
	instance *replay.Instance // nil when over
	head     provider.Head
	version  string
	// failOnNondeterminism is as the code was registered.
	failOnNondeterminism bool
	// verified: head was read or written in this invocation, strongly consistent. Warm state is not (R5).
	verified bool
	// due: it has had no turn yet, and gets one in this invocation whatever arrived.
	due  bool
	read *provider.Orchestration // as read in this invocation; nil when warm
	// broken is why its code cannot go on; then instance is nil.
	broken error
	// state is the fold of history, as far as it was read or written in this invocation: what waits for a time, and all that is open once that
	// is asked of an execution whose code is not there.
	state *history.State
	// tasks are what is open, for interceptors; nil where none asks.
	tasks *openTasks
	// trail is what leads back to what the last turns have caused.
	trail trail
	// cancels are what the last turns have decided to cancel.
	cancels provider.CancelBlock
	// retention is how long the instance is kept after its end; 0 is for ever.
	retention time.Duration
	// firsts are the ids of the first events of the segments, times their times, in milliseconds. seconds are those of the second turns of segments.
	firsts, times []int64
	seconds       []began
	// fetch returns the document of a reference, in this invocation.
	fetch func(r history.Reference) (json.RawMessage, error)
	// seals opens what is sealed, in this invocation.
	seals vault.Replay
	// refused are events of other instances that must not reach the instance; looked is whether they were read. They are
	// events of before it began: while it lives none is added.
	refused provider.RejectedEvents
	looked  bool
	// answered are the answers to updates of other instances of which a copy may have come, by their ids; nil: there is none.
	answered map[string]*toldBefore
	// start is what the execution began with, but for what its code has been given.
	start history.Event
}

// over reports whether the execution has ended.
func (x *execution) over() bool { return x.state.Ended() }

// newTurn is a turn of this view, which has consumed nothing.
func (x *execution) newTurn(instanceID string, events []history.Event) provider.Turn {
	t := provider.Turn{
		InstanceID: instanceID, Head: x.head, Watermark: x.head.Watermark, Before: x.state, Events: events,
		Retention: x.retention, Cancels: provider.CancelsOf(events),
	}
	if last := x.cancels.Last; len(t.Cancels) > 0 {
		t.CancelsAfter = &last
	}
	_, t.CancelBlock = x.cancels.Add(t.Head.Segment+1, t.Cancels)
	return t
}

// committed moves on to the head that a turn has made. consumed: it has consumed messages.
func (x *execution) committed(t *provider.Turn, consumed bool) {
	x.state.Apply(t.Events...)
	x.head, x.verified, x.read = t.After(), true, nil
	x.due = x.state.IsDue()
	x.addSegment(t.Events)
	x.cancels, _ = x.cancels.Add(t.Head.Segment+1, t.Cancels)
	x.trail.apply(t.Events, consumed)
	if x.over() { // what waits may join an update that this turn has answered
		x.answered = nil
	}
}

// began is the id and the time, in milliseconds, of the event that a turn began with.
type began struct{ id, at int64 }

// addSegment notes what the next segment begins with, and its second turn, if it has one.
func (x *execution) addSegment(events []history.Event) {
	first := &events[0]
	x.firsts = append(x.firsts, first.ID)
	x.times = append(x.times, first.Time.UnixMilli())
	if first.Kind != history.TurnStarted {
		return
	}
	for i := range events[1:] {
		if e := &events[i+1]; e.Kind == history.TurnStarted {
			x.seconds = append(x.seconds, began{e.ID, e.Time.UnixMilli()})
		}
	}
}

// breakOff gives up the code, which cannot go on.
func (x *execution) breakOff(why error) {
	x.broken = why
	x.close()
}

// idle: no turn is due.
func (x *execution) idle() { x.due = false }

// markVerified notes that the head was looked at, strongly consistent.
func (x *execution) markVerified() { x.verified = true }

// rest leaves the execution for another invocation, which cannot know whether its head is still the one.
func (x *execution) rest() { x.verified, x.read, x.answered = false, nil, nil }

// numbered dates and numbers the events of a turn that no code took part in.
func (x *execution) numbered(now time.Time, events ...history.Event) []history.Event {
	for i := range events {
		events[i].ID, events[i].Time = x.state.LastID+1+int64(i), now.UTC()
	}
	return events
}

// withCancellations puts before an end that no code took part in the cancellations of all that the history which was read left outstanding.
func (x *execution) withCancellations(end history.Event) []history.Event {
	return history.EventsToEnd(x.read.State(history.TrackOpen), history.TerminalReason(end.Kind), end)
}

func (x *execution) close() {
	if x.instance != nil {
		x.instance.Close()
		x.instance = nil
	}
}

// These are roughly what an execution takes without its code.
const (
	executionBytes = 2 << 10
	openBytes      = 192
)

// bytes is roughly what it costs to keep the execution.
func (x *execution) bytes() int {
	if x.instance == nil {
		return executionBytes + x.state.OpenCount()*openBytes + x.tasks.bytes()
	}
	return x.instance.Bytes() + len(x.state.CustomStatus) + x.tasks.bytes()
}

// addSegments adds what was read to an execution's index of segments and to its cancels.
func addSegments(x *execution, read *provider.Orchestration) {
	for i := range read.Segments {
		x.addSegment(read.Segments[i].Events)
		if i == 0 {
			continue // a start cancels nothing, and what a restart has taken over is in no cancel record
		}
		x.cancels, _ = x.cancels.Add(read.Segments[i].Sequence, provider.CancelsOf(read.Segments[i].Events))
	}
	if taken := read.RestartedEvents(); len(taken) > 0 { // it began with its restart
		x.start.Time = taken[len(taken)-1].Time
		x.times[0] = x.start.Time.UnixMilli()
	}
}

// revive rebuilds an execution by replaying what was read, of which state is the fold. With hindered its code is not run, for that reason.
func (o *Orchestrator) revive(ctx context.Context, read *provider.Orchestration, state *history.State, hindered error) (*execution, error) {
	events, err := read.Events()
	if err != nil {
		return nil, fmt.Errorf("dispatch: instance %q: %w: %w", read.InstanceID, provider.ErrCorrupt, err)
	}
	x := &execution{head: read.Head, verified: read.Verified, read: read, start: *read.Start(), state: state, tasks: openTasksOf(o, read)}
	x.due = read.Head.Segment == 0 || state.IsDue()
	addSegments(x, read)
	x.trail.applyAll(read.Segments)
	x.retention = o.retentionOf(state.Name, state.Version)
	x.start.Input, x.start.CarriedEvents, x.start.EventIDs, x.start.Inputs = nil, nil, nil, nil

	if x.over() {
		return x, nil
	}
	if hindered != nil {
		x.broken = hindered
		return x, nil //nolint:nilerr // it is rebuilt, but for its code
	}
	code, ok := o.registry.Orchestration(state.Name, state.Version)
	if !ok {
		x.broken = &unregisteredError{InstanceID: read.InstanceID, Name: state.Name, Version: state.Version}
		return x, nil
	}
	x.version, x.failOnNondeterminism = code.Version, code.FailOnNondeterminism
	x.seals = o.vault.ForReplay(ctx, aboutExecution(x, read.InstanceID))
	x.instance = replay.New(code, replay.Options{
		InstanceID: read.InstanceID, ExecutionID: read.Head.ExecutionID, Logger: o.options.Logger, TurnLimit: o.options.TurnTimeout,
		ExactRetries: o.options.DisableJitter, BuildID: o.options.BuildID,
		SegmentOf: x.segmentOf, Fetch: func(r history.Reference) (json.RawMessage, error) { return x.fetch(r) },
		Faults: faults.ObserverOf(ctx), Seals: &x.seals, LargePayloads: o.vault.Stores(), WaitEnds: x.tasks != nil,
	})
	x.fetch = o.fetch(ctx, read.InstanceID)
	began := o.meter.Now()
	err = x.instance.Replay(events)
	if read.Head.Segment > 0 {
		o.meter.Count(intake.MetricCacheMisses, state.Name, 1)
		o.meter.Since(intake.MetricReplay, state.Name, began)
	}
	if err != nil {
		x.close()
		if err = fmt.Errorf("dispatch: instance %q: replay: %w", read.InstanceID, err); diagnosis(err) == nil {
			return nil, err
		}
		x.broken = err
		return x, nil
	}
	if d := x.instance.Differences(); d.Count > 0 {
		o.options.Logger.WarnContext(ctx, "code passes other inputs than the history, keeping those in the history",
			"event", logevent.ReplayInputsChanged, "instance", read.InstanceID, "execution", read.Head.ExecutionID,
			"build", o.options.BuildID, "inputs", d.Count, "first", d.First)
	}
	return x, nil
}

// segmentOf returns the segment in which an event lies: one of the turn under way lies in the next.
func (x *execution) segmentOf(eventID int64) int64 {
	if eventID > x.state.LastID {
		return int64(len(x.firsts))
	}
	return int64(sort.Search(len(x.firsts), func(i int) bool { return x.firsts[i] > eventID })) - 1
}

// fetch reads what history refers to.
func (o *Orchestrator) fetch(ctx context.Context, instanceID string) func(history.Reference) (json.RawMessage, error) {
	return func(r history.Reference) (json.RawMessage, error) {
		return o.provider.ReadDocument(ctx, instanceID, r)
	}
}

// retentionOf is how long instances of a name and version are kept after their end; 0 is for ever. Of code that this build does not
// have, nothing but the hub's setting is known.
func (o *Orchestrator) retentionOf(name, version string) time.Duration {
	d := o.options.Retention
	if code, ok := o.registry.Orchestration(name, version); ok && code.Retention != 0 {
		d = code.Retention
	}
	return max(d, 0)
}
