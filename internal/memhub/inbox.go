package memhub

import (
	"context"
	"fmt"
	"time"

	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/wire"
)

// inbox sends and decodes the messages of instances.
type inbox struct {
	*base

	queues *queues
	// interruptedAt is the time of the last message that interrupts, by instance ID.
	interruptedAt map[string]time.Time
}

// interruptionTime is the time for which ReadInterruption returns a request.
const interruptionTime = time.Hour

// EnqueueForOrchestrator implements provider.Instances.
func (st *inbox) EnqueueForOrchestrator(ctx context.Context, ms ...provider.Message) error {
	return st.call(ctx, func() error {
		for i := range ms {
			if n := len(encode(&ms[i])); n > maxBody {
				return fmt.Errorf("fake: %s message for instance %q: %d bytes exceed the limit of %d bytes", ms[i].Kind,
					ms[i].InstanceID, n, maxBody)
			}
		}
		st.send(ms...)
		for i := range ms {
			if ms[i].Interrupts() {
				st.interruptedAt[ms[i].InstanceID] = st.time()
			}
		}
		return nil
	})
}

// send sends messages to the inbox, in the group of their instance.
func (st *inbox) send(ms ...provider.Message) {
	for _, m := range ms {
		m.V, m.Hub = provider.WireVersion, Name
		body, dedup := encode(&m), ""
		if isRepeatable(&m) {
			dedup = body
		}
		st.queues.byName[provider.QueueInbox].Send(st.now(), st.now(), m.InstanceID, body, dedup)
	}
}

// isRepeatable reports whether an equal message is a repetition. It returns false for a wake, a termination and a
// client's cancel, because their effect depends on the time.
func isRepeatable(m *provider.Message) bool {
	switch m.Kind {
	case provider.MessageWake, provider.MessageTerminate, provider.MessageCancelActivity:
		return m.Redrive != nil
	case provider.MessageCancel:
		return m.Parent != nil || m.Redrive != nil
	case provider.MessageEventRaised, provider.MessageExecutionSuspended, provider.MessageExecutionResumed:
		return m.EventID != "" || m.Redrive != nil
	default:
		return true
	}
}

// checkHub returns an error for the name of another hub. Otherwise it clears the name.
func checkHub(name *string) error {
	if *name != "" && *name != Name {
		return fmt.Errorf("fake: %w",
			&provider.FieldError{Field: "hub", Problem: fmt.Sprintf("is %q, but this hub is %q", *name, Name)})
	}
	*name = ""
	return nil
}

// DecodeOrchestrationItems implements provider.Orchestrations. A record in the group of another instance is unreadable,
// because its position cannot be compared with the watermark.
func (st *inbox) DecodeOrchestrationItems(
	records []provider.Record,
) (items []*provider.OrchestrationItem, unreadable []provider.Unreadable) {
	messages, unreadable := decodeRecords(records, func(r provider.Record) (provider.InboxMessage, error) {
		m, err := wire.DecodeMessage(r.Body)
		if err == nil && r.Group != m.InstanceID {
			err = fmt.Errorf("fake: inbox message: %w", &provider.FieldError{
				Field: "instanceId", Problem: fmt.Sprintf("%q is not the message group %q", m.InstanceID, r.Group),
			})
		}
		if err == nil {
			err = checkHub(&m.Hub)
		}
		at := provider.Position{Inbox: Name, Sequence: r.Sequence}
		return provider.InboxMessage{Message: m, Position: at, Record: r}, err
	})
	byInstance := map[string]*provider.OrchestrationItem{}
	for _, m := range messages {
		it := byInstance[m.InstanceID]
		if it == nil {
			it = &provider.OrchestrationItem{InstanceID: m.InstanceID}
			byInstance[m.InstanceID] = it
			items = append(items, it)
		}
		it.Messages = append(it.Messages, m)
	}
	return items, unreadable
}

// ReadInterruption implements provider.Orchestrations.
func (st *inbox) ReadInterruption(ctx context.Context, instanceID string) (at time.Time, err error) {
	return callFor(ctx, st.base, func() (time.Time, error) {
		if at = st.interruptedAt[instanceID]; st.now().Sub(at) > interruptionTime {
			return time.Time{}, nil
		}
		return at, nil
	})
}
