package history

import "maps"

// Standing is a summary of an execution's history. It is a value: applying events to the original does not change a
// copy.
type Standing struct {
	// Name is the name of the orchestration. Version is the version that the first turn selected, and before it the
	// requested version.
	Name, Version string
	// StartID is the ID of the instance's start.
	StartID string
	// Parent is the orchestration that waits for the instance, or nil.
	Parent *Parent
	// Bound is true after the first turn.
	Bound bool
	// LastID and Last are the ID and the kind of the last event.
	LastID int64
	Last   Kind
	// Cancelling is true if a cancellation of the instance was requested.
	Cancelling bool
	// CustomStatus is the current custom status, or nil, and CustomStatusID the ID of the event that set it.
	CustomStatus   Payload
	CustomStatusID int64
	// Parked is the number of parked inputs that no turn has consumed.
	Parked int
	// Arrived is the number of outcomes of inline activities that no turn has consumed. If it is not 0, a turn is due.
	Arrived int
	// InParts is true if the last turn consumed only some of the waiting inputs, because all of them exceed one commit.
	// Another turn is then due.
	InParts bool
	// Blocked are the reports of builds that cannot process the history.
	Blocked Blocked
	// Paused is the current pause, or nil. An execution can be blocked and paused.
	Paused *Pause
	// PauseIDs are the IDs of the latest pause and resume requests, oldest first. They detect duplicates.
	PauseIDs []string
}

// Blocked contains the reports of builds whose code cannot process the history of an execution. The reports are newer
// than the last turn.
type Blocked struct {
	// Is is true if the execution is blocked. Build is the build that reported last, and Why its diagnosis.
	Is    bool
	Build string
	Why   *Failure
	// In has the diagnosis of each build that has reported.
	In map[string]*Failure
}

// Says reports whether an InputsParked event repeats the last report.
func (b *Blocked) Says(e *Event) bool {
	return e.Kind == InputsParked && b.same(&Blocked{Is: true, Build: e.BuildID, Why: e.Error})
}

func (b *Blocked) same(o *Blocked) bool {
	return b.Is && o.Is && b.Build == o.Build && b.Why != nil && o.Why != nil && b.Why.Type == o.Why.Type && b.Why.Message == o.Why.Message
}

// After returns the standing after events, and does not modify s.
func (s *Standing) After(events ...Event) Standing {
	after := *s
	for i := range events {
		after.apply(&events[i])
	}
	return after
}

// Over reports whether the execution has ended.
func (s *Standing) Over() bool { return s.Last.Terminal() }

// Status returns the status of the instance, if the execution is its current one.
func (s *Standing) Status() RuntimeStatus {
	if status, ends := StatusAfter(s.Last); ends {
		return status
	}
	switch {
	case s.Last == ExecutionRestarted: // it has had no turn of its own
		return StatusPending
	case s.Paused != nil:
		return StatusPaused
	case s.Blocked.Is:
		return StatusBlocked
	case s.Cancelling:
		return StatusCancelling
	case s.Last == OrchestrationStarted, s.Last == "", s.Last == ExecutionResumed && !s.Bound:
		return StatusPending
	default:
		return StatusRunning
	}
}

// Shows reports whether the status of the instance differs from before, or its custom status was set since. A blocked
// instance differs if the build or the diagnosis differs.
func (s *Standing) Shows(before *Standing) bool {
	if s.CustomStatusID != before.CustomStatusID || s.Status() != before.Status() {
		return true
	}
	return s.Over() || s.Blocked.Is && !before.Blocked.same(&s.Blocked)
}

func (s *Standing) apply(e *Event) {
	s.LastID = e.ID
	s.Last = e.Kind

	switch e.Kind {
	case OrchestrationStarted:
		s.Name = e.Name
		s.Version = e.Version
		s.StartID = e.StartID
		s.Parent = e.Parent
		s.Parked = len(e.Inputs)
		s.InParts = false
		s.inheritPauses(e)
	case TurnStarted:
		s.beginTurn(e)
	case InputsParked:
		s.park(e)
	case ExecutionSuspended, ExecutionResumed:
		s.pause(e)
	case ExecutionRestarted:
		s.restart(e)
	case CancelRequested:
		s.Cancelling = true
	case CustomStatusSet:
		s.CustomStatus = e.CustomStatus
		s.CustomStatusID = e.ID
	default:
		if e.Arrives() {
			s.Arrived++
		}
		if e.Kind.Terminal() {
			s.Parked = 0
			s.Arrived = 0
			s.InParts = false
			s.Blocked = Blocked{}
			s.Paused = nil
		}
	}
}

// Waiting returns the number of inputs in the history that no turn has consumed: arrived outcomes and parked inputs.
func (s *Standing) Waiting() int { return s.Arrived + s.Parked }

// IsDue reports whether a turn is due even if no message arrives: it consumes waiting inputs, or is the first turn
// after a pause. No turn is due while the execution is paused or blocked.
func (s *Standing) IsDue() bool {
	return s.InParts || s.GoesOn() || s.Arrived > 0 && s.Paused == nil && !s.Blocked.Is
}

// beginTurn takes the inputs that wait: all of them, or a part.
func (s *Standing) beginTurn(e *Event) {
	if !s.Bound {
		s.Bound = true
		s.Version = e.Version
	}
	s.Blocked = Blocked{}

	taken := s.Waiting()
	if e.Parked > 0 {
		taken = min(int(e.Parked), taken)
	}
	arrived := min(taken, s.Arrived)
	s.Arrived -= arrived
	s.Parked -= taken - arrived
	s.InParts = s.Waiting() > 0
}

// park adds inputs that wait, and the diagnosis of the build whose code could not take them, if that is why. The builds
// of a copy of this standing are not changed.
func (s *Standing) park(e *Event) {
	s.Parked += len(e.Inputs)
	s.InParts = false
	if s.Paused != nil {
		return
	}

	in := maps.Clone(s.Blocked.In)
	if in == nil {
		in = map[string]*Failure{}
	}
	in[e.BuildID] = e.Error

	s.Blocked = Blocked{Is: true, Build: e.BuildID, Why: e.Error, In: in}
}
