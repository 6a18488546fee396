// Package restarting reads the ended instance of a restart, and the history that a restart from an event copies.
package restarting

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/perdure/perdure/client/internal/hub"
	"github.com/perdure/perdure/client/internal/starting"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/entities"
	"github.com/perdure/perdure/internal/restartid"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/schedule"
)

// ReadEnded returns an instance that has ended, and the first event of its last execution.
func ReadEnded(ctx context.Context, h *hub.Hub, instanceID string) (provider.Instance, history.Event, error) {
	in, err := h.Instance(ctx, instanceID)
	if err == nil {
		err = checkIdentity(&in)
	}
	switch {
	case err != nil:
		return in, history.Event{}, err
	case in.Status == provider.StatusDeleting:
		return in, history.Event{}, fmt.Errorf("instance %q is being purged: %w", instanceID, provider.ErrNotFound)
	case !in.Status.Terminal():
		return in, history.Event{}, fmt.Errorf("instance %q is %s: %w", instanceID, in.Status, provider.ErrNotEnded)
	}
	for e, err := range h.ReadHistory(ctx, instanceID, in.ExecutionID, 0) {
		return in, e, err
	}
	return in, history.Event{}, errors.New("history is empty")
}

// checkIdentity rejects schedules and entities. Their instance ID is their identity. A new instance would be a schedule
// that no list contains, or another key of the entity.
func checkIdentity(in *provider.Instance) error {
	var problem string
	switch {
	case in.Name == schedule.OrchestrationName:
		problem = "must not be a schedule; use schedule put to create the schedule again"
	case strings.HasPrefix(in.Name, entities.Mark) && strings.HasPrefix(in.InstanceID, in.Name+entities.Mark):
		problem = "must not be a key of an entity; purge it, and the next call starts it again"
	default:
		return nil
	}
	return &provider.FieldError{Field: "instanceId", Problem: problem}
}

// Key returns the idempotency key of a restart. An instance is restarted once from its start and once from each event.
func Key(in *provider.Instance, fromEvent *int64) string {
	parts := []string{"restart", in.InstanceID, in.StartID, in.ExecutionID}
	if fromEvent != nil {
		parts = append(parts, strconv.FormatInt(*fromEvent, 10))
	}
	return starting.Digest(parts...)
}

// NewInstanceID returns the ID of a restarted instance. If the derived ID is too long, the key is the ID.
func NewInstanceID(instanceID, key string) string {
	id := restartid.Original(instanceID) + restartid.Mark + key[:restartid.Digits]
	if len(id) > provider.MaxInstanceIDBytes {
		return key
	}
	return id
}

// ReadSource reads the part of the history that a restart from an event copies, and returns the state after the event.
func ReadSource(
	ctx context.Context, h *hub.Hub, in provider.Instance, from int64,
) (*provider.RestartSource, history.Summary, error) {
	events, err := readHistory(ctx, h, in)
	if err != nil {
		return nil, history.Summary{}, err
	}
	if err := history.CheckRestartPoint(events, from); err != nil {
		problem := "cannot be " + err.Error()
		return nil, history.Summary{}, &provider.FieldError{Field: starting.FieldFrom, Problem: problem}
	}

	source := &provider.RestartSource{
		ExecutionRef: history.ExecutionRef{InstanceID: in.InstanceID, ExecutionID: in.ExecutionID},
		Events:       events[:from],
	}
	if err := resolveReferences(ctx, h, source); err != nil {
		return nil, history.Summary{}, err
	}
	state := history.NewState(history.TrackOpen, source.Events...)
	return source, state.Summary, checkChildren(ctx, h, source.ExecutionRef, state)
}

// readHistory reads the history of an execution. If the history is incomplete, the instance is being purged.
func readHistory(ctx context.Context, h *hub.Hub, in provider.Instance) (events []history.Event, err error) {
	for e, err := range h.ReadHistory(ctx, in.InstanceID, in.ExecutionID, 0) {
		if err != nil {
			return nil, err
		}
		if e.ID != int64(len(events)+1) {
			return nil, fmt.Errorf("event %d is followed by event %d, the instance is being purged: %w",
				len(events), e.ID, provider.ErrNotFound)
		}
		events = append(events, e)
	}
	if len(events) == 0 || !events[len(events)-1].Kind.Terminal() {
		return nil, fmt.Errorf("history has no final event, the instance is being purged: %w", provider.ErrNotFound)
	}
	return events, nil
}

// resolveReferences replaces references to documents of earlier executions by the documents, because a purge of the old
// instance deletes the documents.
func resolveReferences(ctx context.Context, h *hub.Hub, source *provider.RestartSource) (err error) {
	for i := range source.Events {
		source.Events[i].EachExternalData(func(_ string, _ int, data *history.Payload) {
			ref, refers := data.Reference()
			if !refers || err != nil || data.IsEncoded() {
				return
			}
			at, wrong := history.ParseDataLocation(ref.Ref)
			if wrong != nil || at.ExecutionID == source.ExecutionID {
				err = wrong
				return
			}
			doc, failed := h.ReadDocument(ctx, source.InstanceID, ref)
			if failed != nil {
				err = fmt.Errorf("event %d: %w", source.Events[i].ID, failed)
				return
			}
			*data = ref.PayloadOf(doc)
		})
	}
	return err
}

// checkChildren returns an error if the restart would start a child again under an ID that the code chose and that is
// still in use.
func checkChildren(ctx context.Context, h *hub.Hub, of history.ExecutionRef, state *history.State) error {
	for o := range state.Pending() {
		if o.Kind != history.SubOrchestrationScheduled || of.IsDerivedChild(o.InstanceID) {
			continue
		}
		switch child, err := h.ReadInstance(ctx, o.InstanceID); {
		case err == nil:
			problem := fmt.Sprintf("cannot be this event: child %q of event %d must be started again, but its ID is "+
				"in use; purge the child, or choose an event before %d or after the end of the child",
				o.InstanceID, o.ID, o.ID)
			return fmt.Errorf("%w: %w", &provider.FieldError{Field: starting.FieldFrom, Problem: problem},
				provider.NewAlreadyExistsError(o.InstanceID, &child, provider.ErrAlreadyExists))
		case !errors.Is(err, provider.ErrNotFound):
			return err
		}
	}
	return nil
}
