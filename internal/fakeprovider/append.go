package fakeprovider

import (
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/memhub"
	"github.com/perdure/perdure/provider"
)

// Append adds events to the history of an instance, sets their IDs, and updates its status accordingly. An
// OrchestrationContinuedAsNew starts the next execution with the event's input, and a generated execution ID if the
// event has none. Later events belong to that execution. Append panics if the instance does not exist.
func (p *Provider) Append(instanceID string, events ...history.Event) {
	p.Edit(instanceID, func(in *memhub.Editor) {
		for _, e := range events {
			appendEvent(in, e)
		}
	})
}

func appendEvent(in *memhub.Editor, e history.Event) {
	in.UpdatedAt, in.Status, in.Diagnosis = e.Time, statusAfter(in.Status, e.Kind), nil
	switch {
	case e.Kind == history.ExecutionSuspended:
		in.Paused = &history.Pause{By: e.RequestedBy, Message: e.Message, At: e.Time}
	case in.Status != provider.StatusPaused:
		in.Paused = nil
	}
	if in.Status == provider.StatusBlocked {
		in.Diagnosis = e.Error
	}
	if e.Kind == history.TurnStarted {
		in.Version = e.Version
	}
	cancels := provider.CancelsOf([]history.Event{e})
	if e.Kind.Terminal() {
		cancels = append(cancels, provider.ActivityCancel{All: true, Reason: "failed"})
	}
	if e.Kind == history.OrchestrationContinuedAsNew {
		in.ContinueAsNew(e, cancels)
		return
	}
	in.Append(e, cancels)
}

// statusAfter returns the status of an instance after an event. A Cancelling instance remains Cancelling until it ends.
func statusAfter(before provider.RuntimeStatus, k history.Kind) provider.RuntimeStatus {
	s, ended := history.StatusAfter(k)
	switch {
	case ended:
		return s
	case k == history.ExecutionSuspended, before == provider.StatusPaused && k == history.InputsParked:
		return provider.StatusPaused
	case k == history.InputsParked:
		return provider.StatusBlocked
	case k == history.CancelRequested, before == provider.StatusCancelling && !k.Terminal():
		return provider.StatusCancelling
	default:
		return provider.StatusRunning
	}
}

// SetParent makes an instance the child of another.
func (p *Provider) SetParent(instanceID string, parent history.Parent) {
	p.Edit(instanceID, func(in *memhub.Editor) { in.Parent = &parent })
}
