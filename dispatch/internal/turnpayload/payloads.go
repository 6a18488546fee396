// Package turnpayload encodes the payloads of an instance before they become history (R28).
//
// Payloads of messages are encoded before they reach the code or are parked, and decisions before they are committed.
// History contains payloads in their final form, so a reference to a position in history is valid. Code decodes its own
// results when it receives them.
package turnpayload

import (
	"context"
	"fmt"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch/internal/execution"
	"github.com/perdure/perdure/dispatch/internal/messages"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/payloads"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/outputs"
	"github.com/perdure/perdure/schedule"
)

// Encoder encodes payloads. It is safe for concurrent use.
type Encoder struct {
	Encoding *payloads.Encoding // nil: payloads are not encoded
	Clock    func() time.Time
}

// Messages encodes the payloads of messages for an execution in place, and copies those that are in the store to the
// execution. It returns an error if there is a stored payload and this build has no store. The message's copy expires,
// so history must not refer to that copy.
func (e *Encoder) Messages(ctx context.Context, about perdure.PayloadInfo, taken []provider.InboxMessage) error {
	if e.Encoding == nil && !haveStored(taken) {
		return nil
	}
	var arrived []payloads.MessagePayload
	for i := range taken {
		arrived = appendPayloads(arrived, about, &taken[i].Message)
	}
	return e.Encoding.EncodeReceived(ctx, arrived)
}

// Failures encodes the details of the failures of messages in place. It removes details that are too large, as a worker
// in another language may send them.
func (e *Encoder) Failures(ctx context.Context, about perdure.PayloadInfo, taken []provider.InboxMessage) error {
	encode := func(f *history.Failure) (*history.Failure, error) {
		f = f.OmitLargeDetails()
		return f, e.Encoding.EncodeFailure(ctx, about, f)
	}
	for i := range taken {
		m := &taken[i].Message
		var err error
		if m.Error, err = encode(m.Error); err != nil {
			return err
		}
		for j := range m.Outcomes {
			o := &m.Outcomes[j]
			if o.Error, err = encode(o.Error); err != nil {
				return err
			}
		}
	}
	return nil
}

// haveStored reports whether messages have payloads in the store.
func haveStored(all []provider.InboxMessage) bool {
	for i := range all {
		m := &all[i]
		if provider.IsMessagePayloadKey(m.Data.StorageKey()) || provider.IsMessagePayloadKey(m.Result.StorageKey()) {
			return true
		}
	}
	return false
}

// appendPayloads appends the payloads of a message for an execution.
func appendPayloads(
	all []payloads.MessagePayload, about perdure.PayloadInfo, m *provider.Message,
) []payloads.MessagePayload {
	add := func(kind perdure.PayloadKind, name string, p *history.Payload) {
		if len(*p) == 0 {
			return
		}
		about.Kind, about.Name = kind, name
		all = append(all, payloads.MessagePayload{About: about, Payload: p})
	}
	switch m.Kind {
	case provider.MessageEventRaised, provider.MessageEventSent:
		m.Data = messages.Data(m)
		add(perdure.PayloadEventData, m.Name, &m.Data)
	case provider.MessageUpdateAnswered:
		add(perdure.PayloadUpdateResult, "", &m.Result)
	case provider.MessageUpdate, provider.MessageUpdateSent:
		m.Data = messages.Data(m)
		add(perdure.PayloadUpdateInput, m.Name, &m.Data)
	case provider.MessageChildOutcome:
		add(perdure.PayloadOrchestrationOutput, "", &m.Result)
	case provider.MessageActivityOutcomes, provider.MessageActivityAttempts:
		for i := range m.Outcomes {
			add(perdure.PayloadActivityResult, "", &m.Outcomes[i].Result)
		}
	default: // other kinds have no payload for a turn
	}
	return all
}

// Turn encodes the events that a turn has decided, and the start of the next execution, in place.
func (e *Encoder) Turn(
	ctx context.Context, x *execution.Execution, instanceID string, events []history.Event, next *provider.Successor,
) error {
	if e.Encoding == nil {
		return nil
	}
	about := x.PayloadInfo(instanceID)
	about.Name = x.Start().Name
	var plain []history.Kind
	if about.Name == schedule.OrchestrationName { // the custom status of a schedule belongs to the engine
		plain = append(plain, history.CustomStatusSet)
	}
	if err := e.Encoding.EncodeEvents(ctx, about, events, plain...); err != nil {
		return err
	}
	origin := outputs.Origin{InstanceID: instanceID, ExecutionID: about.ExecutionID, Parent: x.State().Parent}
	if err := e.Encoding.CopyForMessages(ctx, origin, events); err != nil {
		return err
	}
	if next == nil {
		return nil
	}
	about.ExecutionID = next.ExecutionID
	start := []history.Event{next.Start}
	err := e.Encoding.EncodeEvents(ctx, about, start)
	next.Start = start[0]
	return err
}

// Start copies the stored input of a start message to the execution that the start creates. Each delivery of the
// message names the same execution.
func (e *Encoder) Start(ctx context.Context, m *provider.InboxMessage) (err error) {
	if m.Input.StorageKey() == "" {
		return nil
	}
	m.NewExecutionID = e.executionOf(m, m.StartID)
	about := perdure.PayloadInfo{
		InstanceID: m.InstanceID, ExecutionID: m.NewExecutionID, Kind: perdure.PayloadOrchestrationInput, Name: m.Name,
	}
	m.Input, err = e.Encoding.Adopt(ctx, about, m.Input)
	return err
}

// UpdateStart encodes the data of an update and the input of the start that the update requests, in place. If there is
// something to encode, it names the execution of the start.
func (e *Encoder) UpdateStart(ctx context.Context, update, start *provider.InboxMessage, data *history.Payload) error {
	stored := provider.IsMessagePayloadKey(data.StorageKey()) || provider.IsMessagePayloadKey(update.Input.StorageKey())
	if e.Encoding == nil && !stored {
		return nil
	}
	start.NewExecutionID = e.executionOf(update, start.StartID)
	about := perdure.PayloadInfo{
		InstanceID: update.InstanceID, ExecutionID: start.NewExecutionID,
		Kind: perdure.PayloadUpdateInput, Name: update.Name,
	}
	arrived := []payloads.MessagePayload{{About: about, Payload: data}}
	if len(start.Input) > 0 {
		about.Kind, about.Name = perdure.PayloadOrchestrationInput, update.Orchestration
		arrived = append(arrived, payloads.MessagePayload{About: about, Payload: &start.Input})
	}
	return e.Encoding.EncodeReceived(ctx, arrived)
}

// RepeatedResponses copies stored results of repeated updates to their new responses, because the first copies
// may have expired. If a result no longer exists, its reader gets an error.
func (e *Encoder) RepeatedResponses(
	ctx context.Context, read *provider.Orchestration, repeated map[string]string,
) error {
	if !e.Encoding.HasStore() {
		return nil
	}
	for i := range read.Segments {
		events := read.Segments[i].Events
		for j := range events {
			if _, again := repeated[events[j].EventID]; !again || events[j].Kind != history.UpdateCompleted {
				continue
			}
			if err := e.Encoding.CopyForMessages(ctx, outputs.HistoryOrigin(read), events[j:j+1]); err != nil &&
				!payloads.IsPermanent(err) {
				return fmt.Errorf("dispatch: instance %q: respond to repeated updates: %w", read.InstanceID, err)
			}
		}
	}
	return nil
}

// executionOf names the execution that a message starts. The name is the same for each delivery of the message.
func (e *Encoder) executionOf(m *provider.InboxMessage, startID string) string {
	return provider.NewExecutionID(ReceivedAt(m, e.Clock).UTC().Truncate(time.Millisecond), m.InstanceID, startID)
}

// ReceivedAt returns the time at which SQS received a message, or the current time if that is unknown.
func ReceivedAt(m *provider.InboxMessage, clock func() time.Time) time.Time {
	if at := m.Record.SentAt; !at.IsZero() {
		return at
	}
	return clock()
}
