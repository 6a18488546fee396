// Package starts creates instances. It writes the first segment and the instance, and then sends the wake. An instance
// can replace the tombstone of an earlier incarnation of its ID.
package starts

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/builds"
	"github.com/perdure/perdure/provider/dynamo/internal/inbox"
	"github.com/perdure/perdure/provider/dynamo/internal/instances"
	"github.com/perdure/perdure/provider/dynamo/internal/outbox"
	"github.com/perdure/perdure/provider/dynamo/internal/segments"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
	"github.com/perdure/perdure/provider/dynamo/internal/timers"
	"github.com/perdure/perdure/provider/outputs"
)

// Stores are the stores that Starts reads and writes.
type Stores struct {
	Table     *table.Table
	Inbox     *inbox.Inbox
	Builds    *builds.Builds
	Timers    *timers.Timers
	Instances *instances.Store
	Segments  *segments.Store
	Outbox    *outbox.Outbox
}

// Starts creates instances. It is safe for concurrent use.
type Starts struct {
	Stores

	now func() time.Time
}

// New returns the starts of a hub.
func New(s Stores, now func() time.Time) *Starts { return &Starts{Stores: s, now: now} }

// Start creates segment 0 and the instance item, and then sends a wake (R11). If the process crashes before it sends
// the wake, the sweeper finds the pending instance. A delayed start sends its timer first, so that every delayed start
// has a timer. A timer without its start has no effect.
func (ss *Starts) Start(ctx context.Context, s provider.Start) (provider.Instance, error) {
	b, err := ss.prepareInstance(ctx, &s)
	if err != nil {
		return provider.Instance{}, err
	}
	if err := ss.sendStartTimer(ctx, &b.Instance); err != nil {
		return provider.Instance{}, err
	}

	found, _, err := ss.create(ctx, b)
	if err != nil {
		return found, err
	}
	return found, ss.wake(ctx, &found)
}

// prepareInstance returns the instance that a client's start creates.
func (ss *Starts) prepareInstance(ctx context.Context, s *provider.Start) (newInstance, error) {
	if err := ss.Builds.Require(ctx, s.Name, s.Version); err != nil {
		return newInstance{}, fmt.Errorf("dynamo: instance %q: %w", s.InstanceID, err)
	}

	in := ss.instanceNow(s.InstanceID, s.StartID)
	in.ExecutionID = cmp.Or(s.ExecutionID, in.ExecutionID)
	in.Name = s.Name
	in.Version = s.Version
	in.StartAt = s.StartAt
	in.Tags = s.Tags
	in.RequestedBy = history.Requester(s.RequestedBy)
	return newInstance{
		Instance:  in,
		input:     s.Input,
		restart:   s.RestartFrom,
		trace:     s.TraceParent,
		stored:    s.ExecutionID != "",
		readFirst: s.CheckFirst,
	}, nil
}

// sendStartTimer sends the timer of a delayed start.
func (ss *Starts) sendStartTimer(ctx context.Context, in *provider.Instance) error {
	if !in.StartAt.After(in.CreatedAt) {
		return nil
	}
	return ss.Timers.Send(ctx, []provider.Timer{{
		V:           provider.WireVersion,
		InstanceID:  in.InstanceID,
		ExecutionID: in.ExecutionID,
		TimerID:     1,
		FireAt:      in.StartAt,
	}})
}

// wake wakes an instance that a start has created, unless its start is delayed. If the timer of a delayed start
// fired before the instance existed, the wake replaces it.
func (ss *Starts) wake(ctx context.Context, in *provider.Instance) error {
	if ss.now().Before(in.StartAt) {
		return nil
	}
	return ss.Inbox.Send(
		ctx, provider.Message{Kind: provider.MessageWake, InstanceID: in.InstanceID, ExecutionID: in.ExecutionID},
	)
}

func (ss *Starts) instanceNow(instanceID, startID string) provider.Instance {
	now := ss.now().UTC().Truncate(time.Millisecond) // the precision with which it is stored
	return provider.Instance{
		InstanceID: instanceID, ExecutionID: provider.NewExecutionID(now, instanceID, startID), ExecutionNumber: 1,
		Status: provider.StatusPending, StartID: startID, CreatedAt: now, UpdatedAt: now,
	}
}

// Create creates the instance of a start message. The message counts as consumed: segment 0 has its
// position as the watermark.
func (ss *Starts) Create(ctx context.Context, m *provider.InboxMessage) (*provider.Orchestration, error) {
	in := ss.instanceNow(m.InstanceID, m.StartID)
	if sent := m.Record.SentAt; !sent.IsZero() { // so that a repeated try writes the same item as the failed one
		in.ExecutionID = provider.NewExecutionID(sent, m.InstanceID, m.StartID)
	}
	in.ExecutionID = cmp.Or(m.NewExecutionID, in.ExecutionID)
	in.Name = m.Name
	in.Version = m.Version
	in.Parent = m.Parent
	in.Tags = m.Tags
	if m.StartAt != nil {
		in.StartAt = *m.StartAt
	}

	found, started, err := ss.create(ctx, newInstance{
		Instance:       in,
		input:          m.Input,
		inputs:         m.InitialInputs,
		mayBeCopySince: m.PossibleDuplicateSentAt,
		position:       m.Position,
		trace:          m.TraceParent,
		stored:         m.NewExecutionID != "",
	})
	if err != nil {
		return nil, err
	}
	if started == nil {
		return ss.readCreated(ctx, &found)
	}

	o := &provider.Orchestration{
		InstanceID: in.InstanceID, Verified: true, Segments: []provider.Segment{*started},
		Head: provider.Head{ExecutionID: in.ExecutionID, Watermark: started.Watermark},
	}
	return o, ss.sendOutputs(ctx, o)
}

// readCreated reads the instance that the same start has created. It resends the outputs of the start, because the
// process that created the instance may have crashed before it sent the timer.
func (ss *Starts) readCreated(ctx context.Context, in *provider.Instance) (*provider.Orchestration, error) {
	o, err := ss.Segments.ReadCurrent(ctx, in.InstanceID, in.ExecutionID, provider.Strong)
	if err != nil || o.Head.Segment > 0 || o.Previous != "" {
		return o, err
	}
	return o, ss.sendOutputs(ctx, o)
}

// sendOutputs sends the outputs of the first segment.
func (ss *Starts) sendOutputs(ctx context.Context, o *provider.Orchestration) error {
	out := outputs.Of(outputs.HistoryOrigin(o), o.Segments[0], nil)
	_, err := ss.Outbox.SendOutputs(ctx, &out)
	return err
}
