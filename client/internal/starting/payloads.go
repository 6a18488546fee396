package starting

import (
	"context"
	"errors"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client/internal/hub"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/payloads"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/outputs"
)

// storeInput encodes the input of a start and stores a large input for the first execution of the instance. Only a
// client with the payload store can restart an instance whose input is stored.
func storeInput(ctx context.Context, h *hub.Hub, s *provider.Start) (err error) {
	if h.Encoding == nil && s.RestartFrom == nil && s.Input.StorageKey() == "" {
		return nil
	}
	first := provider.NewExecutionID(h.Now().UTC().Truncate(time.Millisecond), s.InstanceID, s.StartID)
	if s.RestartFrom != nil { // the copied history contains the input
		return copyHistoryPayloads(ctx, h, s, first)
	}
	about := perdure.PayloadInfo{
		InstanceID: s.InstanceID, ExecutionID: first, Kind: perdure.PayloadOrchestrationInput, Name: s.Name,
	}
	if s.Input, err = h.Encoding.EncodePayload(ctx, about, s.Input); err != nil {
		return err
	}
	before := s.Input.StorageKey()
	if before == "" {
		return nil
	}
	if s.Input, err = h.Encoding.Adopt(ctx, about, s.Input); err != nil { // a restarted instance's input is copied
		return err
	}
	if provider.ExecutionOfPayload(s.Input.StorageKey()) != first {
		return &perdure.PayloadError{Payload: about, Key: before, Err: perdure.ErrPayloadNotFound}
	}
	s.ExecutionID = first
	return nil
}

// deleteUnusedInput deletes the payloads that a start stored if the start created no execution. If the start may have
// created an execution, the payloads are kept, and the sweep of the payload store deletes unused payloads. This is the
// case if the response was lost and the instance is already in a later execution.
func deleteUnusedInput(ctx context.Context, h *hub.Hub, s *provider.Start, started *provider.Instance, err error) {
	another := err == nil && started.ExecutionNumber == 1 && started.ExecutionID != s.ExecutionID ||
		errors.Is(err, provider.ErrAlreadyExists)
	if s.ExecutionID == "" || !another {
		return
	}
	_ = h.Encoding.Delete(context.WithoutCancel(ctx), storageKeys(s)...)
}

// storageKeys returns the keys of the payloads that a start stored for its execution.
func storageKeys(s *provider.Start) (keys []string) {
	add := func(p history.Payload) {
		if key := p.StorageKey(); key != "" {
			keys = append(keys, key)
		}
	}
	add(s.Input)
	if s.RestartFrom != nil {
		for i := range s.RestartFrom.Events {
			s.RestartFrom.Events[i].EachPayload(func(of history.EventPayload) { add(*of.Payload) })
		}
	}
	return keys
}

// copyHistoryPayloads copies the stored payloads of the history that a restart copies. The new execution then has its
// own payloads before the start is committed, and a purge of the old instance does not delete them (R28).
func copyHistoryPayloads(ctx context.Context, h *hub.Hub, s *provider.Start, executionID string) error {
	about := perdure.PayloadInfo{InstanceID: s.InstanceID, ExecutionID: executionID}
	var stored []payloads.MessagePayload
	for i := range s.RestartFrom.Events {
		s.RestartFrom.Events[i].EachPayload(func(of history.EventPayload) {
			if of.Payload.StorageKey() != "" {
				info := about
				info.Kind, info.Name = of.Kind, of.Name
				stored = append(stored, payloads.MessagePayload{About: info, Payload: of.Payload})
			}
		})
	}
	if len(stored) == 0 {
		return nil
	}
	s.ExecutionID = executionID
	if err := h.Encoding.AdoptAll(ctx, stored); err != nil {
		return err
	}
	for _, a := range stored {
		if key := a.Payload.StorageKey(); provider.ExecutionOfPayload(key) != executionID {
			return &perdure.PayloadError{Payload: a.About, Key: key, Err: perdure.ErrPayloadNotFound}
		}
	}
	return copyMessagePayloads(ctx, h, s)
}

// copyMessagePayloads copies the payloads that the new execution sends again before its first turn. These are the
// inputs of children that were running, and events without a response.
func copyMessagePayloads(ctx context.Context, h *hub.Hub, s *provider.Start) error {
	in := provider.Instance{InstanceID: s.InstanceID, ExecutionID: s.ExecutionID, StartID: s.StartID}
	initial := s.RestartFrom.InitialEvents(&in, "")
	state := history.NewState(history.TrackOpen, initial...)
	var sent []history.Event
	for i := range initial {
		if _, open := state.Open(initial[i].ID); open && initial[i].Kind != history.OrchestrationStarted {
			sent = append(sent, initial[i])
		}
	}
	origin := outputs.Origin{InstanceID: s.InstanceID, ExecutionID: s.ExecutionID, StartID: s.StartID}
	return h.Encoding.CopyForMessages(ctx, origin, sent)
}
