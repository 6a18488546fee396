package history

import "maps"

// Summary is a summary of an execution's history. A copy of a Summary is independent of the original.
type Summary struct {
	// Name is the name of the orchestration. Version is the version that the first turn selected, or the requested
	// version before the first turn.
	Name, Version string
	// StartID is the ID of the instance's start.
	StartID string
	// Parent is the orchestration that waits for the instance, or nil.
	Parent *Parent
	// FirstTurnRun is true after the first turn.
	FirstTurnRun bool
	// LastID and Last are the ID and the kind of the last event.
	LastID int64
	Last   Kind
	// Cancelling is true if a cancellation of the instance was requested.
	Cancelling bool
	// CustomStatus is the current custom status, or nil. CustomStatusID is the ID of the event that set it.
	CustomStatus   Payload
	CustomStatusID int64
	// Parked is the number of parked inputs that no turn has consumed.
	Parked int
	// InlineOutcomes is the number of outcomes of inline activities that no turn has consumed. If it is not 0, a turn
	// is due.
	InlineOutcomes int
	// PartialInputs is true if the last turn consumed only some of the waiting inputs, because all inputs together
	// exceed one commit. Another turn is then due.
	PartialInputs bool
	// Blocked are the reports of builds that cannot process the history.
	Blocked Blocked
	// Paused is the current pause, or nil. An execution can be blocked and paused.
	Paused *Pause
	// PauseIDs are the IDs of the latest pause and resume requests, oldest first. They are used to detect duplicates.
	PauseIDs []string
}

// Blocked contains the reports of builds whose code cannot process the history of an execution. The reports are newer
// than the last turn.
type Blocked struct {
	// Active is true if the execution is blocked. LastBuild is the last build that reported, and Diagnosis is its
	// diagnosis.
	Active    bool
	LastBuild string
	Diagnosis *Failure
	// Diagnoses maps each build that has reported to its diagnosis.
	Diagnoses map[string]*Failure
}

// Contains reports whether an InputsParked event repeats the last report.
func (b *Blocked) Contains(e *Event) bool {
	return e.Kind == InputsParked && b.same(&Blocked{Active: true, LastBuild: e.BuildID, Diagnosis: e.Error})
}

func (b *Blocked) same(o *Blocked) bool {
	return b.Active && o.Active && b.LastBuild == o.LastBuild && b.Diagnosis != nil && o.Diagnosis != nil &&
		b.Diagnosis.Type == o.Diagnosis.Type && b.Diagnosis.Message == o.Diagnosis.Message
}

// After returns the summary after the events. It does not modify s.
func (s *Summary) After(events ...Event) Summary {
	after := *s
	for i := range events {
		after.apply(&events[i])
	}
	return after
}

// Ended reports whether the execution has ended.
func (s *Summary) Ended() bool { return s.Last.Terminal() }

// Status returns the status of the instance. The execution must be the current execution of the instance.
func (s *Summary) Status() RuntimeStatus {
	if status, ends := StatusAfter(s.Last); ends {
		return status
	}
	switch {
	case s.Last == ExecutionRestarted: // no turn has run since the restart
		return StatusPending
	case s.Paused != nil:
		return StatusPaused
	case s.Blocked.Active:
		return StatusBlocked
	case s.Cancelling:
		return StatusCancelling
	case s.Last == OrchestrationStarted, s.Last == "", s.Last == ExecutionResumed && !s.FirstTurnRun:
		return StatusPending
	default:
		return StatusRunning
	}
}

// StatusChanged reports whether the status of the instance differs from before, or its custom status was set after
// before. For a blocked instance, it also compares the build and the diagnosis.
func (s *Summary) StatusChanged(before *Summary) bool {
	if s.CustomStatusID != before.CustomStatusID || s.Status() != before.Status() {
		return true
	}
	return s.Ended() || s.Blocked.Active && !before.Blocked.same(&s.Blocked)
}

func (s *Summary) apply(e *Event) {
	s.LastID = e.ID
	s.Last = e.Kind

	switch e.Kind {
	case OrchestrationStarted:
		s.Name = e.Name
		s.Version = e.Version
		s.StartID = e.StartID
		s.Parent = e.Parent
		s.Parked = len(e.Inputs)
		s.PartialInputs = false
		s.copyPauseIDs(e)
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
		if e.IsInlineOutcome() {
			s.InlineOutcomes++
		}
		if e.Kind.Terminal() {
			s.Parked = 0
			s.InlineOutcomes = 0
			s.PartialInputs = false
			s.Blocked = Blocked{}
			s.Paused = nil
		}
	}
}

// UnconsumedInputs returns the number of arrived outcomes and parked inputs in the history that no turn has consumed.
func (s *Summary) UnconsumedInputs() int { return s.InlineOutcomes + s.Parked }

// IsDue reports whether a turn is due even if no message arrives. Such a turn consumes waiting inputs or is the first
// turn after a pause. No turn is due while the execution is paused or blocked.
func (s *Summary) IsDue() bool {
	return s.PartialInputs || s.NeedsTurn() || s.InlineOutcomes > 0 && s.Paused == nil && !s.Blocked.Active
}

// beginTurn applies a TurnStarted event, which consumes all or some of the waiting inputs.
func (s *Summary) beginTurn(e *Event) {
	if !s.FirstTurnRun {
		s.FirstTurnRun = true
		s.Version = e.Version
	}
	s.Blocked = Blocked{}

	taken := s.UnconsumedInputs()
	if e.ParkedConsumed > 0 {
		taken = min(int(e.ParkedConsumed), taken)
	}
	arrived := min(taken, s.InlineOutcomes)
	s.InlineOutcomes -= arrived
	s.Parked -= taken - arrived
	s.PartialInputs = s.UnconsumedInputs() > 0
}

// park applies an InputsParked event. It adds waiting inputs and, unless the execution is paused, the diagnosis of the
// build that could not process them. It does not change copies of the Summary.
func (s *Summary) park(e *Event) {
	s.Parked += len(e.Inputs)
	s.PartialInputs = false
	if s.Paused != nil {
		return
	}

	in := maps.Clone(s.Blocked.Diagnoses)
	if in == nil {
		in = map[string]*Failure{}
	}
	in[e.BuildID] = e.Error

	s.Blocked = Blocked{Active: true, LastBuild: e.BuildID, Diagnosis: e.Error, Diagnoses: in}
}
