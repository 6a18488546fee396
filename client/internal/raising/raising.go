// Package raising checks and encodes external events.
package raising

import (
	"context"
	"fmt"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client/internal/hub"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/inputcheck"
	"github.com/perdure/perdure/provider"
)

// Event is an external event for an instance.
type Event struct {
	InstanceID, Name string
	ID               *string // nil for a generated ID
	Data             any
}

// New returns the message of an event. call names the call in errors.
func New(ctx context.Context, h *hub.Hub, call string, e Event) (provider.Message, error) {
	if err := inputcheck.Text("event", e.Name, 1, provider.MaxEventNameBytes); err != nil {
		return provider.Message{}, fmt.Errorf("%s: %w", call, err)
	}
	m := provider.Message{
		Kind: provider.MessageEventRaised, InstanceID: e.InstanceID, Name: e.Name, RequestedBy: h.Calls.Caller(ctx),
	}
	var err error
	if m.EventID, err = e.newID(h); err == nil {
		m.Data, err = e.encode(ctx, h, m.EventID)
	}
	if err != nil {
		return provider.Message{}, fmt.Errorf("%s %q: %w", call, e.Name, err)
	}
	return m, nil
}

func (e *Event) newID(h *hub.Hub) (string, error) {
	if e.ID == nil {
		return h.NewID(), nil
	}
	return *e.ID, inputcheck.Text("eventId", *e.ID, 1, provider.MaxEventIDBytes)
}

func (e *Event) encode(ctx context.Context, h *hub.Hub, id string) (history.Payload, error) {
	data, err := hub.Encode("data", e.Data, h.Encoding.Limit())
	if err != nil {
		return nil, err
	}
	about := perdure.PayloadInfo{InstanceID: e.InstanceID, Kind: perdure.PayloadEventData, Name: e.Name}
	return h.Encoding.EncodeMessage(ctx, about, provider.MessageEventRaised, id, data)
}
