package turns

import (
	"context"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/payloads"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/schedule"
)

// What a turn decides is sealed before it is committed, and what a message brings before it reaches the code or is parked: history has it as it is
// to stay, and a reference to a place in it is to what lies there. The code's own results are opened when it takes them (R28).

// aboutExecution is what is known of the payloads of an execution.
func aboutExecution(x *execution, instanceID string) perdure.PayloadInfo {
	return perdure.PayloadInfo{InstanceID: instanceID, ExecutionID: x.head.ExecutionID}
}

// own seals what the messages of the next turn bring and their senders have not sealed, and has the execution own what lies in the store for a message. Where this
// build has no store that is an error: the message's copy expires, and history must not refer to it.
func own(ctx context.Context, s *session) error {
	v, taken := s.o.encoding, s.taken()
	if v == nil && !bringStored(taken) {
		return nil
	}
	about := aboutExecution(s.x, s.item.InstanceID)
	var arrived []payloads.MessagePayload
	for i := range taken {
		arrived = arrivalsIn(arrived, about, &taken[i].Message)
	}
	return v.EncodeReceived(ctx, arrived)
}

// ownFailures makes the failures that the messages of the next turn bring what history, and the records of attempts, may have: their details are sealed, where
// their senders have not, and those that are larger than they may be, as a worker in another language may send them, are left out.
func ownFailures(ctx context.Context, s *session) error {
	about := aboutExecution(s.x, s.item.InstanceID)
	own := func(f *history.Failure) (*history.Failure, error) {
		f = f.OmitLargeDetails()
		return f, s.o.encoding.EncodeFailure(ctx, about, f)
	}
	taken := s.taken()
	for i := range taken {
		m := &taken[i].Message
		var err error
		if m.Error, err = own(m.Error); err != nil {
			return err
		}
		for j := range m.Outcomes {
			o := &m.Outcomes[j]
			if o.Error, err = own(o.Error); err != nil {
				return err
			}
		}
	}
	return nil
}

// bringStored reports whether messages bring a payload that lies in a store for them.
func bringStored(messages []provider.InboxMessage) bool {
	for i := range messages {
		if m := &messages[i]; provider.IsMessagePayloadKey(m.Data.StorageKey()) || provider.IsMessagePayloadKey(m.Result.StorageKey()) {
			return true
		}
	}
	return false
}

// arrivalsIn adds the payloads that a message brings to an execution.
func arrivalsIn(all []payloads.MessagePayload, about perdure.PayloadInfo, m *provider.Message) []payloads.MessagePayload {
	add := func(kind perdure.PayloadKind, name string, p *history.Payload) {
		if len(*p) == 0 {
			return
		}
		about.Kind, about.Name = kind, name
		all = append(all, payloads.MessagePayload{About: about, Payload: p})
	}
	switch m.Kind {
	case provider.MessageEventRaised, provider.MessageEventSent:
		m.Data = dataOf(m)
		add(perdure.PayloadEventData, m.Name, &m.Data)
	case provider.MessageUpdateAnswered:
		add(perdure.PayloadUpdateResult, "", &m.Result)
	case provider.MessageUpdate, provider.MessageUpdateSent:
		m.Data = dataOf(m)
		add(perdure.PayloadUpdateInput, m.Name, &m.Data)
	case provider.MessageChildOutcome:
		add(perdure.PayloadOrchestrationOutput, "", &m.Result)
	case provider.MessageActivityOutcomes, provider.MessageActivityAttempts:
		for i := range m.Outcomes {
			add(perdure.PayloadActivityResult, "", &m.Outcomes[i].Result)
		}
	default: // nothing else has a payload that a turn takes
	}
	return all
}

// seal seals what a turn has decided, and what the next execution begins with.
func (t *turn) seal(ctx context.Context, events []history.Event, next *provider.Successor) error {
	v := t.s.o.encoding
	if v == nil {
		return nil
	}
	about := aboutExecution(t.s.x, t.s.item.InstanceID)
	about.Name = t.s.x.start.Name
	var engines []history.Kind
	if about.Name == schedule.OrchestrationName { // what a schedule shows is the engine's own
		engines = append(engines, history.CustomStatusSet)
	}
	if err := v.EncodeEvents(ctx, about, events, engines...); err != nil {
		return err
	}
	if err := v.CopyForMessages(ctx, provider.Origin{InstanceID: about.InstanceID, ExecutionID: about.ExecutionID, Parent: t.s.x.state.Parent}, events); err != nil {
		return err
	}
	if next == nil {
		return nil
	}
	about.ExecutionID = next.ExecutionID
	start := []history.Event{next.Start}
	err := v.EncodeEvents(ctx, about, start)
	next.Start = start[0]
	return err
}

// ownInput has the execution that a start is to begin own its input. The id of that is the same each time the message comes.
func ownInput(ctx context.Context, s *session, m *provider.InboxMessage) (err error) {
	if m.Input.StorageKey() == "" {
		return nil
	}
	m.NewExecutionID = begunBy(s.o, m, m.StartID)
	about := perdure.PayloadInfo{InstanceID: m.InstanceID, ExecutionID: m.NewExecutionID, Kind: perdure.PayloadOrchestrationInput, Name: m.Name}
	m.Input, err = s.o.encoding.Adopt(ctx, about, m.Input)
	return err
}

// begunBy names the execution that a start begins which a message asks for: the same each time the message comes.
func begunBy(o *Orchestrator, m *provider.InboxMessage, startID string) string {
	return provider.NewExecutionID(takenAt(o, m).UTC().Truncate(time.Millisecond), m.InstanceID, startID)
}

// takenAt is when SQS took a message, or now where that is not known.
func takenAt(o *Orchestrator, m *provider.InboxMessage) time.Time {
	if at := m.Record.SentAt; !at.IsZero() {
		return at
	}
	return o.options.Clock()
}

// unreadable is the diagnosis of a payload that stays unreadable however often it is tried; nil where err is none.
func unreadable(err error) *history.Failure {
	if !payloads.IsPermanent(err) {
		return nil
	}
	return &history.Failure{Type: history.TypePayloadUnreadable, Message: err.Error()}
}
