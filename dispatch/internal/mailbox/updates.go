package mailbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/perdure/perdure/dispatch/internal/execution"
	"github.com/perdure/perdure/dispatch/internal/turnpayload"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/replay"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/outputs"
)

// maxAgeWithoutCopy is the age up to which an update cannot be a copy. SQS drops copies of a message for five minutes
// after it has received the message (R31). The subtracted minute allows for the difference between the clocks of SQS
// and the function.
const maxAgeWithoutCopy = 5*time.Minute - time.Minute

// mayBeCopy reports whether an update of another instance may be a copy of an update that was received long ago.
func (b *Mailbox) mayBeCopy(m *provider.InboxMessage) bool {
	return m.SentAt == nil || turnpayload.ReceivedAt(m, b.Clock).Sub(*m.SentAt) > maxAgeWithoutCopy || m.Redrive != nil
}

// hasCustomID reports whether the sender has chosen the ID of an update. An update with the same ID may have ended long
// ago.
func hasCustomID(m *provider.InboxMessage) bool {
	return m.EventID != provider.StartID(m.Parent.ExecutionID, m.Parent.EventID)
}

// mayHaveEnded reports whether the update of a message may have ended without the execution's knowledge.
func (b *Mailbox) mayHaveEnded(x *execution.Execution, m *provider.InboxMessage) bool {
	switch m.Kind {
	case provider.MessageUpdateSent:
		return x.Ended() || hasCustomID(m) || b.mayBeCopy(m)
	case provider.MessageUpdate: // an ended instance accepts none, and a running one knows its own
		return !x.Ended() && x.Start().Number > 1 && (m.CustomUpdateID || m.Redrive != nil)
	default:
		return false
	}
}

// readEndedUpdates reads the responses of waiting updates that have ended. An earlier incarnation may have accepted
// them, or an earlier execution, which passes only the last IDs to the next one. The current execution may also have
// ended. Each update that may be a copy, has a custom ID or is late costs a read.
func (b *Mailbox) readEndedUpdates(
	ctx context.Context, instanceID string, x *execution.Execution, waiting []provider.InboxMessage,
) error {
	if x.Ended() && !x.Verified() {
		return nil
	}
	for i := range waiting {
		m := &waiting[i]
		if !b.mayHaveEnded(x, m) || x.Recipient.HasResponse(m.EventID) {
			continue
		}
		a, err := b.readResponse(ctx, instanceID, x, m)
		if err != nil {
			return err
		}
		x.Recipient.SetResponse(m.EventID, a)
	}
	return nil
}

// readResponse returns the response to an update that this incarnation of the instance has accepted, or that an earlier
// incarnation may have accepted. It returns nil if there is none.
func (b *Mailbox) readResponse(
	ctx context.Context, instanceID string, x *execution.Execution, m *provider.InboxMessage,
) (*execution.Response, error) {
	if x.Ended() || x.Start().Number > 1 {
		a, err := b.Provider.ReadUpdate(ctx, instanceID, m.EventID)
		switch {
		case err == nil && a.StartID == x.Start().StartID:
			return &execution.Response{Result: a.Result, Error: a.Failure()}, nil
		case err != nil && !errors.Is(err, provider.ErrNotFound):
			return nil, err
		}
	}
	if m.SentAt == nil || !b.mayBeCopy(m) {
		return nil, nil //nolint:nilnil // there is none
	}

	sent := m.SentAt.Add(-clockSkew)
	if x.Start().Time.Before(sent) {
		return nil, nil //nolint:nilnil // it was sent to this incarnation
	}
	in, err := b.Provider.ReadInstance(ctx, instanceID)
	switch {
	case errors.Is(err, provider.ErrNotFound), err == nil && !sent.Before(in.PurgedAt):
		return nil, nil //nolint:nilnil // there was no earlier incarnation, or it was purged before the update was sent
	case err != nil:
		return nil, err
	default:
		return &execution.Response{Error: outputs.PurgedFailure(instanceID)}, nil
	}
}

// respondToUpdate sends the response to a copy of an update that an earlier execution or incarnation has accepted.
// Clients read the response themselves.
func (b *Mailbox) respondToUpdate(ctx context.Context, x *execution.Execution, m *provider.InboxMessage) error {
	if m.Kind == provider.MessageUpdate {
		return nil
	}
	a := x.Response(m)
	reply := outputs.UpdateReply(m.InstanceID, *m.Parent, m.TraceParent, a.Result, a.Error)
	return b.Provider.EnqueueForOrchestrator(ctx, reply)
}

// RespondToRepeated responds to repeated updates that have ended, before the turn is committed that has consumed them.
// Their senders have not found the results, which are stored for a limited time. The results are in history, unless an
// earlier execution accepted the updates. In that case, the results have expired. Responses of committed turns were
// sent before (I4). RespondToRepeated returns false if the head must be verified and the history read first.
func (b *Mailbox) RespondToRepeated(
	ctx context.Context, instanceID string, x *execution.Execution, out *replay.Outcome,
) (verified bool, err error) {
	if len(out.RejectedCallers) > 0 && !x.Verified() {
		return false, nil
	}
	if err := b.rejectWaiters(ctx, instanceID, out.RejectedCallers); err != nil {
		return true, err
	}
	if len(out.Repeated) == 0 {
		return true, nil
	}
	if !x.Verified() || x.Read() == nil {
		return false, nil
	}
	if err := b.Payloads.RepeatedResponses(ctx, x.Read(), out.Repeated); err != nil {
		return true, err
	}
	if err := b.Provider.PutUpdateResults(ctx, outputs.RepeatedUpdateResults(x.Read(), out.Repeated)...); err != nil {
		return true, fmt.Errorf("dispatch: instance %q: respond to repeated updates: %w", instanceID, err)
	}
	return true, b.resendResponses(ctx, instanceID, out.Callers)
}

// resendResponses sends the stored results of ended updates to the orchestrations that have sent the updates.
func (b *Mailbox) resendResponses(ctx context.Context, instanceID string, callers map[string][]history.Parent) error {
	var replies []provider.Message
	for id, of := range callers {
		a, err := b.Provider.ReadUpdate(ctx, instanceID, id)
		if err != nil {
			return fmt.Errorf("dispatch: instance %q: read the result of repeated update %q: %w", instanceID, id, err)
		}
		for _, c := range of {
			replies = append(replies, outputs.UpdateReply(instanceID, c, "", a.Result, a.Failure()))
		}
	}
	if len(replies) == 0 {
		return nil
	}
	return b.Provider.EnqueueForOrchestrator(ctx, replies...)
}

// rejectWaiters rejects orchestrations that cannot wait for a running update, because too many already wait. History
// does not record them, so their messages are acknowledged after the response.
func (b *Mailbox) rejectWaiters(ctx context.Context, instanceID string, callers []history.Parent) error {
	if len(callers) == 0 {
		return nil
	}
	replies := make([]provider.Message, 0, len(callers))
	for _, c := range callers {
		why := outputs.TooManyWaitersFailure(instanceID)
		replies = append(replies, outputs.UpdateReply(instanceID, c, "", nil, why))
	}
	return b.Provider.EnqueueForOrchestrator(ctx, replies...)
}
