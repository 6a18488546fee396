// Package mailbox responds to messages of other instances that an instance's code must not receive, and repeats
// responses to updates. It also starts instances by updates.
package mailbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/perdure/perdure/dispatch/internal/execution"
	"github.com/perdure/perdure/dispatch/internal/intake"
	"github.com/perdure/perdure/dispatch/internal/messages"
	"github.com/perdure/perdure/dispatch/internal/turnpayload"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/outputs"
)

// Mailbox responds to the messages of other instances. It is safe for concurrent use.
type Mailbox struct {
	*intake.Base

	Payloads *turnpayload.Encoder
}

// Receiver is the instance that receives messages, as read by a session.
type Receiver struct {
	InstanceID string
	// Execution is nil if none is loaded.
	Execution *execution.Execution
	// Absent is set if a read with strong consistency has found no instance.
	Absent bool
	// IDInUse is set if the instance ID is in use although no instance can be read, such as during a deletion.
	IDInUse bool
}

// Result is the effect of a response on a session.
type Result struct {
	// Consumed is the number of messages that got a response.
	Consumed int
	// Started is the instance that an update has started.
	Started *provider.Orchestration
	// IDInUse is set if an update could not start the instance because its ID is in use.
	IDInUse bool
}

// clockSkew is the maximum difference between the clocks of two functions.
const clockSkew = 5 * time.Minute

// ExpectsResponse reports whether the sender of a message is another instance that receives a response if the message
// cannot be delivered.
func ExpectsResponse(m *provider.InboxMessage) bool {
	return execution.IsCancelOfParent(m) || m.IsSent()
}

// MustRespond reports whether a message of another instance, or an update, gets a response without the code. m may be
// nil.
func MustRespond(x *execution.Execution, m *provider.InboxMessage) bool {
	return m != nil && (ExpectsResponse(m) || x.Response(m) != nil) && x.BypassesCode(*m)
}

// Prepare reads the data that decides which waiting messages the code of an execution receives. The data are the
// incarnations of recovered dead letters, the rejected events, and the ended updates.
func (b *Mailbox) Prepare(ctx context.Context, instanceID string, x *execution.Execution, q *messages.Queue) error {
	return errors.Join(b.checkIncarnations(ctx, instanceID, x, q), b.readResponses(ctx, instanceID, x, q.Waiting()))
}

func (b *Mailbox) readResponses(
	ctx context.Context, instanceID string, x *execution.Execution, waiting []provider.InboxMessage,
) error {
	if err := b.readRejected(ctx, instanceID, x, waiting); err != nil {
		return err
	}
	return b.readEndedUpdates(ctx, instanceID, x, waiting)
}

// Respond responds to the first waiting message, which the code does not receive.
func (b *Mailbox) Respond(ctx context.Context, r *Receiver, waiting []provider.InboxMessage) (Result, error) {
	first, x := &waiting[0], r.Execution
	switch {
	case r.starts(first):
		return b.start(ctx, r, first)
	case x.Response(first) != nil:
		return consumed(b.respondToUpdate(ctx, x, first))
	case first.IsSent():
		if err := b.checkDeletion(ctx, r, first); err != nil {
			return Result{}, err
		}
		ended := ""
		if x != nil && x.Ended() {
			ended = x.Head().ExecutionID
		}
		n, err := b.Reject(ctx, r, ended, waiting)
		return Result{Consumed: n}, err
	case r.Absent:
		return consumed(b.rejectCancel(ctx, first))
	default:
		return consumed(b.respondToCancel(ctx, x, first))
	}
}

func consumed(err error) (Result, error) {
	if err != nil {
		return Result{}, err
	}
	return Result{Consumed: 1}, nil
}

// rejectCancel records that a sub-orchestration that its parent cancels does not exist. The sub-orchestration cannot
// start afterwards (R16).
func (b *Mailbox) rejectCancel(ctx context.Context, m *provider.InboxMessage) error {
	if err := b.Provider.RejectCancel(ctx, m); err != nil {
		return err
	}
	b.Logger.InfoContext(ctx, "sub-orchestration cancelled before it started",
		"event", logevent.SubOrchestrationNeverStarted, "instance", m.InstanceID, "parent", m.Parent.InstanceID,
		"parentExecution", m.Parent.ExecutionID, "parentEventId", m.Parent.EventID, "reason", m.Reason)
	return nil
}

// respondToCancel reports to a parent that its sub-orchestration cannot be cancelled.
func (b *Mailbox) respondToCancel(ctx context.Context, x *execution.Execution, m *provider.InboxMessage) error {
	response := outputs.ChildOutcome(m.InstanceID, m.Parent)
	response.Kind = provider.MessageCancelChildOutcome
	response.Error = &history.Failure{
		Type:    history.TypeNotFound,
		Message: fmt.Sprintf("instance %q belongs to another start", m.InstanceID),
	}
	if x.Recipient.IsStart(m.StartID) {
		response.Error = &history.Failure{Type: history.TypeEnded, Message: fmt.Sprintf("instance %q has ended",
			m.InstanceID)}
	}
	if err := b.Provider.EnqueueForOrchestrator(ctx, response); err != nil {
		return err
	}
	b.Logger.InfoContext(ctx, "cancellation by the parent rejected",
		"event", logevent.SubOrchestrationCancelRejected, "instance", m.InstanceID, "execution", x.Head().ExecutionID,
		"parent", m.Parent.InstanceID, "parentExecution", m.Parent.ExecutionID, "parentEventId", m.Parent.EventID,
		"reason", m.Reason, "error", response.Error.Message)
	return nil
}
