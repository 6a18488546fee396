package execution

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/perdure/perdure/dispatch/internal/intake"
	"github.com/perdure/perdure/dispatch/internal/tasks"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/faults"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/internal/payloads"
	"github.com/perdure/perdure/internal/registry"
	"github.com/perdure/perdure/internal/replay"
	"github.com/perdure/perdure/provider"
)

// Loader rebuilds executions from their histories. It is safe for concurrent use.
type Loader struct {
	*intake.Base

	Registry    *registry.Registry
	Encoding    *payloads.Encoding
	Meter       *intake.Meter
	BuildID     string
	TurnTimeout time.Duration
	// ExactRetries records retry policies without jitter.
	ExactRetries bool
	// Retention is the time for which ended instances are kept if their code does not set it.
	Retention time.Duration
	// TracksTasks is set if interceptors need the open tasks of executions.
	TracksTasks bool
}

// Obstacle returns the reason for which the code must not run, by the state of its history. It returns ErrPaused, a
// *BlockedError, or nil.
func (l *Loader) Obstacle(state *history.State) error {
	if state.Paused != nil {
		return ErrPaused
	}
	if l.BuildID == intake.DefaultBuildID { // processes with the default build ID may have different code
		return nil
	}
	if why := BlockedIn(l.BuildID, &state.Blocked); why != nil {
		return &BlockedError{why}
	}
	return nil
}

// Load rebuilds an execution from a history that was read. state is the fold of the history. If obstacle is not nil,
// the code is not run, and obstacle is the reason.
func (l *Loader) Load(
	ctx context.Context, read *provider.Orchestration, state *history.State, obstacle error,
) (*Execution, error) {
	events, err := read.Events()
	if err != nil {
		return nil, fmt.Errorf("dispatch: instance %q: %w: %w", read.InstanceID, provider.ErrCorrupt, err)
	}
	x := l.withoutCode(read, state)
	if x.Ended() {
		return x, nil
	}
	if obstacle != nil {
		x.Code.broken = obstacle
		return x, nil //nolint:nilerr // it is loaded without its code
	}
	code, ok := l.Registry.Orchestration(state.Name, state.Version)
	if !ok {
		x.Code.broken = &UnregisteredError{InstanceID: read.InstanceID, Name: state.Name, Version: state.Version}
		return x, nil
	}
	if err := l.replay(ctx, x, &code, events); err != nil {
		return nil, err
	}
	return x, nil
}

func (l *Loader) withoutCode(read *provider.Orchestration, state *history.State) *Execution {
	x := &Execution{head: read.Head, verified: read.Verified, read: read, start: *read.Start(), state: state}
	x.due = read.Head.Segment == 0 || state.IsDue()
	x.retention = l.retentionOf(state.Name, state.Version)
	read.Retention = x.retention
	if l.TracksTasks {
		x.Tasks = tasks.NewOpen(read.Segments)
	}
	x.Recipient.executionID, x.Recipient.startID = read.Head.ExecutionID, x.start.StartID
	for i := range read.Segments {
		x.Index.add(read.Segments[i].Events)
		if i == 0 {
			continue // a start cancels nothing, and no cancel record has the events that a restart has copied
		}
		x.cancels, _ = x.cancels.Add(read.Segments[i].Sequence, provider.CancelsOf(read.Segments[i].Events))
	}
	if copied := read.RestartedEvents(); len(copied) > 0 { // the execution began with its restart
		x.start.Time = copied[len(copied)-1].Time
		x.Index.times[0] = x.start.Time.UnixMilli()
	}
	x.coverage.applyAll(read.Segments)
	x.start.Input, x.start.CarriedEvents, x.start.EventIDs, x.start.Inputs = nil, nil, nil, nil
	return x
}

// replay replays the code of an execution over its history. If the code cannot continue, the execution is broken. Any
// other error is returned.
func (l *Loader) replay(ctx context.Context, x *Execution, code *replay.Orchestration, events []history.Event) error {
	instanceID, c := x.read.InstanceID, &x.Code
	c.Version, c.FailsOnNondeterminism = code.Version, code.FailOnNondeterminism
	c.provider, c.instanceID, c.ctx = l.Provider, instanceID, ctx
	c.payloads = l.Encoding.ForReplay(ctx, x.PayloadInfo(instanceID))
	c.Instance = replay.New(*code, replay.Options{
		InstanceID: instanceID, ExecutionID: x.head.ExecutionID, Logger: l.Logger, TurnTimeout: l.TurnTimeout,
		ExactRetries: l.ExactRetries, BuildID: l.BuildID, SegmentOf: x.Index.SegmentOf, Fetch: c.fetch,
		Faults: faults.ObserverOf(ctx), Decoder: &c.payloads, LargePayloads: l.Encoding.HasStore(),
		WaitEnds: x.Tasks != nil,
	})
	began := l.Meter.Now()
	err := c.Replay(events)
	if x.head.Segment > 0 {
		l.Meter.Count(intake.MetricCacheMisses, x.state.Name, 1)
		l.Meter.Since(intake.MetricReplay, x.state.Name, began)
	}
	if err != nil {
		err = fmt.Errorf("dispatch: instance %q: replay: %w", instanceID, err)
		x.DiscardCode(err)
		if Diagnose(err) == nil {
			return err
		}
		return nil
	}
	if d := c.Differences(); d.Count > 0 {
		l.Logger.WarnContext(ctx, "code passes other inputs than the history, using the recorded inputs",
			"event", logevent.ReplayInputsChanged, "instance", instanceID, "execution", x.head.ExecutionID,
			"build", l.BuildID, "inputs", d.Count, "first", d.First)
	}
	return nil
}

// fetch reads a document to which the history refers.
func (c *Code) fetch(r history.Reference) (json.RawMessage, error) {
	return c.provider.ReadDocument(c.ctx, c.instanceID, r)
}

// retentionOf returns the time for which instances of a name and version are kept after their end. 0 means forever. The
// setting of the hub applies to code that this build does not register.
func (l *Loader) retentionOf(name, version string) time.Duration {
	d := l.Retention
	if code, ok := l.Registry.Orchestration(name, version); ok && code.Retention != 0 {
		d = code.Retention
	}
	return max(d, 0)
}
