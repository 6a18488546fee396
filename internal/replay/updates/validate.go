package updates

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/replay/coroutine"
	"github.com/perdure/perdure/internal/replay/panics"
	"github.com/perdure/perdure/internal/replay/stack"
)

const (
	// maxRunning is the number of updates that an execution runs concurrently. Each one is a coroutine, and an event of
	// the last segment if it is aborted.
	maxRunning = 1000
	// maxReceived is the number of updates that an execution stores until its code starts. The turn that starts the
	// code takes all of them, with the results of their handlers.
	maxReceived = 10
	// maxKnown is the number of handler names in a failure.
	maxKnown = 100
)

// Decide returns the event that the history records for an update: received, accepted or rejected. It returns nil if
// the turn was abandoned in the meantime.
func (u *Updates) Decide(ev *history.Event) (*history.Event, error) {
	e := *ev
	if !u.parts.Host.HasStarted() {
		if len(u.received) >= maxReceived {
			rejection := limitReached("%d updates already wait for the code to start: send the update again later",
				len(u.received))
			return rejection.event(ev, u.callers.of(ev.EventID)), nil
		}
		e.Kind = history.UpdateReceived
		return &e, nil
	}

	data, _ := u.received.dataOf(ev)
	doc, err := u.parts.decode(ev, data)
	if err != nil {
		return nil, err
	}
	handler, rejection := u.handlers.admit(ev.Name, len(u.running)+len(u.queue))
	if rejection == nil {
		rejection = u.parts.callValidator(handler, doc)
	}
	if !u.parts.Scheduler.Gate().Is(coroutine.Live) {
		return nil, nil //nolint:nilnil // there is nothing to record
	}
	if rejection == nil {
		return &e, nil
	}
	return rejection.event(ev, u.callers.of(ev.EventID)), nil
}

// event returns the event that the history records for a rejected update.
func (r *Rejection) event(ev *history.Event, callers []history.Parent) *history.Event {
	return &history.Event{
		Kind: history.UpdateRejected, Name: ev.Name, EventID: ev.EventID, SourceEventID: ev.SourceEventID,
		Reason: r.Reason, Error: r.Failure, Callers: slices.Clone(callers),
	}
}

func limitReached(format string, n int) *Rejection {
	return &Rejection{
		history.RejectedLimit, &history.Failure{Type: history.TypeError, Message: fmt.Sprintf(format, n)},
	}
}

// decode returns the document of an update's input.
func (p *Parts) decode(ev *history.Event, data history.Payload) (doc json.RawMessage, err error) {
	doc, encoded, err := p.Payloads.Find(data)
	if err != nil || !encoded {
		return doc, err
	}
	payload := history.Payload(doc)
	of := history.EventPayload{Payload: &payload, Kind: history.PayloadUpdateInput, Name: ev.Name}
	return p.Payloads.Decode(of, ev.ID)
}

// handlers are the handlers of an execution, by the names of updates.
type handlers map[string]Handler

// admit returns the handler of an update, or the reason for which the update is rejected.
func (h handlers) admit(name string, running int) (Handler, *Rejection) {
	handler, set := h[name]
	switch {
	case !set:
		f := &history.Failure{Type: history.TypeNotFound, Message: h.missing(name)}
		return handler, &Rejection{history.RejectedNoHandler, f}
	case running >= maxRunning:
		return handler, limitReached(
			"%d updates are running, which is the limit of an execution: send the update again later", running)
	default:
		return handler, nil
	}
}

// missing returns the message for an update without a handler.
func (h handlers) missing(name string) string {
	known := slices.Sorted(maps.Keys(h))
	more := ""
	if n := len(known) - maxKnown; n > 0 {
		known = known[:maxKnown]
		more = fmt.Sprintf(" and %d more", n)
	}
	return fmt.Sprintf("update %q has no handler; handlers exist for %q%s",
		history.TruncateMessage(name, history.MaxRequesterBytes), known, more)
}

// callValidator runs a validator. A validator may end its goroutine and must not decide, so it has its own goroutine
// and runs like a query. If it does not return, the turn exceeds its time limit.
func (p *Parts) callValidator(handler Handler, input json.RawMessage) (rejection *Rejection) {
	gate := p.Scheduler.Gate()
	revert := p.Identity.MarkDraws()
	gate.StartQuery()
	results := make(chan *Rejection, 1)
	go func() {
		p.Scheduler.Label()
		var r *Rejection
		returned := false
		defer func() {
			if !returned {
				r = &Rejection{history.RejectedByValidator, panics.HandlerFailure(recover())}
			}
			results <- r
		}()
		r = handler.Validate(input)
		returned = true
	}()

	rejection = <-results
	revert()
	gate.EndQuery()
	if misuse := gate.TakeMisuse(); misuse != nil {
		rejection = &Rejection{history.RejectedNotReadOnly, &history.Failure{
			Type: history.TypeError,
			Message: "the validator must only read, but it scheduled work or waited at " +
				stack.Where(misuse.Stack),
			NonRetryable: true,
		}}
	}
	return rejection
}
