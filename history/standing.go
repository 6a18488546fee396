package history

import "maps"

// Standing is where an execution stands: a short summary of its history. It is a value: a copy does not change when
// events are applied to the original.
type Standing struct {
	// Name is the orchestration's name. Version is the one that the first turn has bound, and before it the one that
	// was asked for.
	Name, Version string
	// StartID is that of the instance's start.
	StartID string
	// Parent waits for the instance; nil when no parent does.
	Parent *Parent
	// Bound reports that the first turn has run.
	Bound bool
	// LastID and Last are the id and kind of the last event.
	LastID int64
	Last   Kind
	// Cancelling reports that the instance was asked to end.
	Cancelling bool
	// CustomStatus is the one that the execution has set last, by the event with this id; nil where it has set none.
	CustomStatus   Payload
	CustomStatusID int64
	// Parked is how many inputs are parked: they arrived while the code could not take them, and no turn has taken them
	// since (R18).
	Parked int
	// Arrived is how many outcomes of activities that ran inline no turn has begun with yet (R20). A turn is due then,
	// whatever arrives.
	Arrived int
	// InParts reports that the last turn took a part of the inputs that waited, since all were too much for a commit. The
	// next turn takes more of them, whatever arrives.
	InParts bool
	// Blocked is what builds have reported whose code cannot go on.
	Blocked Blocked
	// Paused is who has paused the execution; nil where it is not paused. An execution may be blocked and paused.
	Paused *Pause
	// PauseIDs are the ids of the orders to pause and to resume that were taken last, oldest first: a copy of one that
	// comes late changes nothing (R25).
	PauseIDs []string
}

// Blocked is what history records of builds whose code cannot go on with an execution (R18). Each has reported since
// the last turn, and nothing that its code would receive has changed since: parked inputs come behind the event on
// which it failed.
type Blocked struct {
	// Is reports that the execution is blocked. Build is the one that reported it last, Why its diagnosis.
	Is    bool
	Build string
	Why   *Failure
	// In has the diagnoses of all builds that have reported.
	In map[string]*Failure
}

// Says reports whether an event that blocks repeats what was known before it.
func (b *Blocked) Says(e *Event) bool {
	return e.Kind == InputsParked && b.same(&Blocked{Is: true, Build: e.BuildID, Why: e.Error})
}

func (b *Blocked) same(o *Blocked) bool {
	return b.Is && o.Is && b.Build == o.Build && b.Why != nil && o.Why != nil && b.Why.Type == o.Why.Type && b.Why.Message == o.Why.Message
}

// After returns where the execution stands once events are applied.
func (s *Standing) After(events ...Event) Standing {
	after := *s
	for i := range events {
		after.apply(&events[i])
	}
	return after
}

// Over reports whether the execution has ended.
func (s *Standing) Over() bool { return s.Last.Terminal() }

// Status returns the status of the instance, for as long as the execution is its current one.
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

// Shows reports whether the instance's status differs from before, or its custom status was set since. An instance that
// is blocked again differs only if it is in another build, or for another reason.
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

// Waiting is how many inputs of history no turn has taken: outcomes that have arrived, and what is parked.
func (s *Standing) Waiting() int { return s.Arrived + s.Parked }

// IsDue reports whether a turn is due, whatever arrives: it takes what waits, or is the first after a pause. None is due
// while the execution is paused, or blocked: what waits is then for a resume, or for a build.
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
