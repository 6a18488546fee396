package client

import (
	"context"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/payloads"
	"github.com/perdure/perdure/provider"
)

// ownPast has the execution that a restart begins own the large payloads of the history that it takes over: they have copies before the start is committed,
// and outlive the old instance (R28). What is encoded stays as it is, and so does what is plain.
func (c *Client) ownPast(ctx context.Context, s *provider.Start, executionID string) error {
	about := perdure.PayloadInfo{InstanceID: s.InstanceID, ExecutionID: executionID}
	var all []payloads.MessagePayload
	for i := range s.RestartFrom.Events {
		s.RestartFrom.Events[i].EachPayload(func(of history.EventPayload) {
			if of.Payload.StorageKey() != "" {
				what := about
				what.Kind, what.Name = of.Kind, of.Name
				all = append(all, payloads.MessagePayload{About: what, Payload: of.Payload})
			}
		})
	}
	if len(all) == 0 {
		return nil
	}
	s.ExecutionID = executionID
	if err := c.encoding.AdoptAll(ctx, all); err != nil {
		return err
	}
	for _, a := range all {
		if key := a.Payload.StorageKey(); provider.ExecutionOfPayload(key) != executionID {
			return &perdure.PayloadError{Payload: a.About, Key: key, Err: perdure.ErrPayloadNotFound}
		}
	}
	return c.mailPast(ctx, s)
}

// mailPast copies what the new execution sends anew before its first turn: the inputs of children that were under way, and events that were not answered.
func (c *Client) mailPast(ctx context.Context, s *provider.Start) error {
	begun := s.RestartFrom.InitialEvents(&provider.Instance{InstanceID: s.InstanceID, ExecutionID: s.ExecutionID, StartID: s.StartID}, "")
	state := history.NewState(history.TrackOpen, begun...)
	var sent []history.Event
	for i := range begun {
		if _, open := state.Open(begun[i].ID); open && begun[i].Kind != history.OrchestrationStarted {
			sent = append(sent, begun[i])
		}
	}
	return c.encoding.CopyForMessages(ctx, provider.Origin{InstanceID: s.InstanceID, ExecutionID: s.ExecutionID, StartID: s.StartID}, sent)
}
