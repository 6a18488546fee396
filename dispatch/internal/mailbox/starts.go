package mailbox

import (
	"context"
	"errors"
	"fmt"

	"github.com/perdure/perdure/dispatch/internal/messages"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/outputs"
)

// starts reports whether an update starts the absent instance.
func (r *Receiver) starts(m *provider.InboxMessage) bool {
	return r.Absent && m.Kind == provider.MessageUpdateSent && m.Orchestration != ""
}

// errIDInUse is the error of an update whose instance ID is in use by an instance that cannot accept it. The message is
// redelivered.
var errIDInUse = errors.New("dispatch: instance ID is in use by an instance that is being deleted; the update waits")

// checkDeletion returns an error for an update that would start the next instance while the ended one is being deleted.
func (b *Mailbox) checkDeletion(ctx context.Context, r *Receiver, m *provider.InboxMessage) error {
	if m.Orchestration == "" || r.Execution == nil || !r.Execution.Ended() {
		return nil
	}
	in, err := b.Provider.ReadInstance(ctx, m.InstanceID)
	switch {
	case errors.Is(err, provider.ErrNotFound), err == nil && in.Status == provider.StatusDeleting:
		return fmt.Errorf("instance %q: %w", m.InstanceID, errIDInUse)
	default:
		return err
	}
}

// start starts the instance of an update, which is its first input. One commit contains both, and the message is the
// trigger (R31). If another process has started the instance in the meantime, the instance receives the update like any
// other.
func (b *Mailbox) start(ctx context.Context, r *Receiver, m *provider.InboxMessage) (Result, error) {
	if r.IDInUse {
		return Result{}, fmt.Errorf("instance %q: %w", m.InstanceID, errIDInUse)
	}
	start, err := b.startOf(ctx, m)
	if err != nil {
		return Result{}, err
	}
	read, err := b.Provider.CreateOrchestration(ctx, start)
	switch {
	case errors.Is(err, provider.ErrPurged):
		replies := outputs.DeliveryReplies(outputs.PurgedFailure(m.InstanceID), m)
		return consumed(b.Provider.EnqueueForOrchestrator(ctx, replies...))
	case errors.Is(err, provider.ErrAlreadyExists):
		return Result{IDInUse: true}, nil
	case err != nil:
		return Result{}, err
	default:
		return Result{Consumed: 1, Started: read}, nil
	}
}

// startOf returns the start that an update requests. Its ID derives from the sender, so that a copy is the same start.
// The execution owns the payloads of the start.
func (b *Mailbox) startOf(ctx context.Context, m *provider.InboxMessage) (*provider.InboxMessage, error) {
	start := &provider.InboxMessage{
		Message: provider.Message{
			Kind: provider.MessageStart, InstanceID: m.InstanceID, Name: m.Orchestration, Version: m.Version,
			Input: m.Input, StartID: provider.StartID(m.Parent.ExecutionID, m.Parent.EventID), Detached: true,
			TraceParent: m.TraceParent,
		},
		Position: m.Position, Record: m.Record,
	}
	if b.mayBeCopy(m) && m.SentAt != nil {
		start.PossibleDuplicateSentAt = m.SentAt.Add(-clockSkew)
	}
	data := messages.Data(&m.Message)
	if err := b.Payloads.UpdateStart(ctx, m, start, &data); err != nil {
		return nil, err
	}
	start.InitialInputs = m.Inputs(data)
	return start, nil
}
