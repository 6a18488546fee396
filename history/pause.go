package history

import (
	"slices"
	"strings"
	"time"
)

// Pause describes the pause of an instance. The code does not run until the instance is resumed.
type Pause struct {
	// By is the requester of the pause, as in Event.RequestedBy, or empty. Message is the reason.
	By      string `json:"by,omitempty"`
	Message string `json:"message,omitempty"`
	// At is the time at which the pause started.
	At time.Time `json:"at"`
}

const (
	// PauseIDPrefix is the prefix of the IDs of pause and resume requests. The next execution receives these IDs in the
	// list of external event IDs, and recognizes them by the prefix.
	PauseIDPrefix = "perdure:pause:"

	// mostPauseIDs is the maximum number of IDs of pause and resume requests in a Summary.
	mostPauseIDs = 64
)

// AppliesPause reports whether a pause or resume request has an effect. The request must be new, and must change the
// state of the execution.
func (s *Summary) AppliesPause(order *Event) bool {
	pauses := order.Kind == ExecutionSuspended
	return pauses == (s.Paused == nil) && (order.EventID == "" || !slices.Contains(s.PauseIDs, order.EventID))
}

// NeedsTurn reports whether the execution was resumed or restarted and no turn has run since then. A turn is then
// needed even if no message arrives.
func (s *Summary) NeedsTurn() bool { return s.Last == ExecutionResumed || s.RestartPending() }

// RestartPending reports whether the execution was restarted from another execution and no turn has run since then. The
// copied work has not been sent.
func (s *Summary) RestartPending() bool { return s.Last == ExecutionRestarted }

// pause applies a pause or resume request.
func (s *Summary) pause(e *Event) {
	s.Paused = nil
	if e.Kind == ExecutionSuspended {
		s.Paused = &Pause{By: e.RequestedBy, Message: e.Message, At: e.Time}
	}
	s.PartialInputs = false
	s.notePause(e.EventID)
}

// copyPauseIDs copies the IDs of the previous execution.
func (s *Summary) copyPauseIDs(started *Event) {
	for _, id := range started.EventIDs {
		s.notePause(id)
	}
}

// notePause stores the ID of a request. It does not change copies of the Summary.
func (s *Summary) notePause(id string) {
	if !strings.HasPrefix(id, PauseIDPrefix) {
		return
	}
	ids := append(slices.Clone(s.PauseIDs), id)
	s.PauseIDs = ids[max(0, len(ids)-mostPauseIDs):]
}

// restart applies an ExecutionRestarted event. The execution continues even if the original execution was paused or
// blocked.
func (s *Summary) restart(e *Event) {
	s.Parked += len(e.Inputs)
	s.Paused = nil
	s.Blocked = Blocked{}
	s.PartialInputs = false
}
