package history

import (
	"slices"
	"strings"
	"time"
)

// Pause is that an instance is paused: its code is not run until it is resumed.
type Pause struct {
	// By is who asked for it, as in RequestedBy of history; empty where that is not known. Message is why.
	By      string `json:"by,omitempty"`
	Message string `json:"message,omitempty"`
	// At is since when it is paused.
	At time.Time `json:"at"`
}

const (
	// PauseIDPrefix begins the ids of orders to pause and to resume. They are carried to the next execution among the ids
	// of external events, and known there by it.
	PauseIDPrefix = "perdure:pause:"

	// mostPauseIDs bounds how many of these ids a standing keeps.
	mostPauseIDs = 64
)

// Takes reports whether an order to pause or to resume changes anything: it is new, and the execution is not so already.
func (s *Standing) Takes(order *Event) bool {
	pauses := order.Kind == ExecutionSuspended
	return pauses == (s.Paused == nil) && (order.EventID == "" || !slices.Contains(s.PauseIDs, order.EventID))
}

// GoesOn reports whether the execution was resumed or restarted and has had no turn since: it has one, whatever arrives, since
// nothing else leads to the inputs that were parked meanwhile, or to what was taken over.
func (s *Standing) GoesOn() bool { return s.Last == ExecutionResumed || s.Restarted() }

// Restarted reports whether the execution has taken over its history, and has had no turn of its own: what it has taken over is not
// sent.
func (s *Standing) Restarted() bool { return s.Last == ExecutionRestarted }

// pause applies an order to pause or to resume.
func (s *Standing) pause(e *Event) {
	s.Paused = nil
	if e.Kind == ExecutionSuspended {
		s.Paused = &Pause{By: e.RequestedBy, Message: e.Message, At: e.Time}
	}
	s.InParts = false
	s.notePause(e.EventID)
}

// inheritPauses takes over the ids of the executions before.
func (s *Standing) inheritPauses(started *Event) {
	for _, id := range started.EventIDs {
		s.notePause(id)
	}
}

// notePause remembers an order. The ids of a copy of this standing are not changed.
func (s *Standing) notePause(id string) {
	if !strings.HasPrefix(id, PauseIDPrefix) {
		return
	}
	ids := append(slices.Clone(s.PauseIDs), id)
	s.PauseIDs = ids[max(0, len(ids)-mostPauseIDs):]
}

// restart has the execution go on, whatever held up the one that it has taken its history from.
func (s *Standing) restart(e *Event) {
	s.Parked += len(e.Inputs)
	s.Paused = nil
	s.Blocked = Blocked{}
	s.InParts = false
}
