package dispatch

import (
	"context"
	"encoding/json"
	"fmt"
	"sort"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/replay"
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
	over     bool
	// due: it has had no turn yet, and gets one in this invocation whatever arrived.
	due  bool
	read *provider.Orchestration // as read in this invocation; nil when warm
	// broken is why its code cannot go on; then instance is nil. blocked is what history says of that.
	broken  error
	blocked blocked
	// cancels are what the last turns have decided to cancel; cancelling says that the instance has been asked to end.
	cancels    provider.CancelBlock
	cancelling bool
	// custom is the last custom status that the code has set.
	custom history.Payload
	// timers are those that wait, parked the inputs that do.
	timers provider.TimerSpans
	parked parked
	// activities are those that are open, of an execution whose code is not there to say; nil until that is asked.
	activities openActivities
	// lastID is the id of the last event, as far as it was read or written in this invocation.
	lastID int64
	// retention is how long the instance is kept after its end; 0 is for ever.
	retention time.Duration
	// firsts are the ids of the first events of the segments.
	firsts []int64
	// fetch returns the document of a reference, in this invocation.
	fetch func(r history.Reference) (json.RawMessage, error)
	// start is what the execution began with, but for what its code has been given.
	start history.Event
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
	timerBytes     = 128
	activityBytes  = 32
)

// bytes is roughly what it costs to keep the execution.
func (x *execution) bytes() int {
	if x.instance == nil {
		return executionBytes + len(x.timers)*timerBytes + len(x.activities)*activityBytes
	}
	return x.instance.Bytes() + len(x.custom)
}

// customAfter is the custom status once events are committed.
func (x *execution) customAfter(events []history.Event) history.Payload {
	if custom := provider.CustomStatusOf(events); custom != nil {
		return custom
	}
	return x.custom
}

// revive rebuilds an execution by replaying what was read. With hindered its code is not run, for that reason.
func (o *Orchestrator) revive(ctx context.Context, read *provider.Orchestration, hindered error) (*execution, error) {
	events, err := read.Events()
	if err != nil {
		return nil, fmt.Errorf("dispatch: instance %q: %w: %w", read.InstanceID, provider.ErrCorrupt, err)
	}
	x := &execution{head: read.Head, verified: read.Verified, read: read, due: read.Head.Segment == 0, start: *read.Start()}
	x.lastID = events[len(events)-1].ID
	for i := range read.Segments {
		x.firsts = append(x.firsts, read.Segments[i].Events[0].ID)
		x.cancels, _ = x.cancels.Add(read.Segments[i].Sequence, provider.CancelsOf(read.Segments[i].Events))
	}
	x.blocked.apply(events)
	x.timers = provider.TimerSpans{}
	x.timers.Apply(events)
	x.parked.applyAll(read.Segments)
	x.due = x.due || x.parked.due
	x.cancelling, x.custom = provider.IsCancelling(events), provider.CustomStatusOf(events)
	name, version := bound(events)
	x.retention = o.retentionOf(name, version)
	x.start.Input, x.start.CarriedEvents, x.start.EventIDs, x.start.Inputs = nil, nil, nil, nil
	if events[len(events)-1].Kind.Terminal() {
		x.over = true
		return x, nil
	}
	if hindered != nil {
		x.broken = hindered
		return x, nil //nolint:nilerr // it is rebuilt, but for its code
	}
	code, ok := o.options.Registry.Orchestration(name, version)
	if !ok {
		x.broken = &UnregisteredError{InstanceID: read.InstanceID, Name: name, Version: version}
		return x, nil
	}
	x.version, x.failOnNondeterminism = code.Version, code.FailOnNondeterminism
	x.instance = replay.New(code, replay.Options{
		InstanceID: read.InstanceID, ExecutionID: read.Head.ExecutionID, Logger: o.options.Logger, TurnLimit: o.options.TurnLimit,
		ExactRetries: o.options.ExactRetries, BuildID: o.options.BuildID,
		SegmentOf: x.segmentOf, Fetch: func(r history.Reference) (json.RawMessage, error) { return x.fetch(r) },
	})
	x.fetch = o.fetch(ctx, read.InstanceID)
	if err := x.instance.Replay(events); err != nil {
		x.close()
		if err = fmt.Errorf("dispatch: instance %q: replay: %w", read.InstanceID, err); diagnosis(err) == nil {
			return nil, err
		}
		x.broken = err
		return x, nil
	}
	if d := x.instance.Differences(); d.Count > 0 {
		o.options.Logger.WarnContext(ctx, "the code gives other inputs by now than the build did that decided them: those in history are kept",
			"instance", read.InstanceID, "execution", read.Head.ExecutionID, "build", o.options.BuildID, "inputs", d.Count, "first", d.First)
	}
	return x, nil
}

// segmentOf tells in which segment an event lies: of the turn under way, in the next one.
func (x *execution) segmentOf(eventID int64) int64 {
	if eventID > x.lastID {
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

// bound is the code an execution runs: the first turn binds the version.
func bound(events []history.Event) (name, version string) {
	for i := range events {
		if events[i].Kind == history.TurnStarted {
			return events[0].Name, events[i].Version
		}
	}
	return events[0].Name, events[0].Version
}
