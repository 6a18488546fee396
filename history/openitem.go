package history

import (
	"iter"
	"maps"
	"slices"
	"time"
)

// OpenItem is scheduled work or a wait that has not ended.
type OpenItem struct {
	// ID is the ID of the event that scheduled the work.
	ID int64
	// Kind is the kind of the event that scheduled the work: ActivityScheduled, TimerCreated,
	// SubOrchestrationScheduled, ExternalEventSubscribed, ExternalEventSent, UpdateSent or UpdateAccepted. For the
	// timer of a delayed start, it is OrchestrationStarted.
	Kind Kind
	// Name is the label of the event (Event.DisplayName), if the state has TrackOpen. InstanceID is the ID of the
	// sub-orchestration, or of the receiver of an event or update. EventID is the ID of an update.
	Name, InstanceID, EventID string
	// ScheduledAt is the time of the event.
	ScheduledAt time.Time
	// FireAt is the time at which the timer fires. For an activity, it is the timer of the schedule-to-close timeout.
	// It is zero for work without a timer.
	FireAt time.Time
	// MayHaveRetryTimer is true if the activity has a retry policy, so that a retry timer may exist. The history does
	// not record the time of that timer.
	MayHaveRetryTimer bool
	// WaitsForCancellation is true for work with WaitForCancellation.
	WaitsForCancellation bool
	// Cancelled is true if the work was cancelled and has not ended. It implies WaitsForCancellation.
	Cancelled bool
	// OutcomeParked is true if the outcome is a parked input. CancelRequestParked is true if a cancel request is a
	// parked input.
	OutcomeParked, CancelRequestParked bool
}

// ScheduleToCloseGrace is the delay between the schedule-to-close timeout of an activity and the timer that ends the
// activity. In this time, the worker can report a more precise end.
const ScheduleToCloseGrace = time.Second

// ScheduleToCloseDeadline returns the time at which the schedule-to-close timeout of the activity expires. limited is
// false if the activity has no such timeout.
func (e *Event) ScheduleToCloseDeadline() (at time.Time, limited bool) {
	return e.Time.Add(time.Duration(e.ScheduleToCloseMs) * time.Millisecond), e.ScheduleToCloseMs > 0
}

// AddOpen adds open work that was scheduled before the first event of s.
func (s *State) AddOpen(o OpenItem) {
	if s.open == nil {
		s.open = map[int64]OpenItem{}
	}
	s.open[o.ID] = o
}

// Open returns the open work with an ID. ok is false if no such work exists, or if the state does not track it.
func (s *State) Open(id int64) (o OpenItem, ok bool) {
	o, ok = s.open[id]
	return o, ok
}

// HasTimer reports whether the open work with an ID is a timer, or an activity that may have a timer.
func (s *State) HasTimer(id int64) bool {
	o := s.open[id]
	return o.MayHaveRetryTimer || !o.FireAt.IsZero()
}

// OpenCount returns the number of open items that the state tracks.
func (s *State) OpenCount() int { return len(s.open) }

// Pending yields the work that the execution waits for, in no particular order. It does not yield work whose outcome
// has arrived, even if the outcome is parked. It yields nothing if the execution has ended. The state must have
// TrackOpen.
func (s *State) Pending() iter.Seq[OpenItem] {
	return func(yield func(OpenItem) bool) {
		if s.Ended() {
			return
		}
		arrived := s.parkedEvents()
		for _, o := range s.open {
			if o.Kind == OrchestrationStarted || o.OutcomeParked || arrived[o.ID] {
				continue
			}
			if !yield(o) {
				return
			}
		}
	}
}

// Outstanding yields the open work in no particular order, even if the execution has ended. It includes work whose
// outcome is parked, and waits for external events that the code may have stopped. The state must have TrackOpen.
func (s *State) Outstanding() iter.Seq[OpenItem] { return maps.Values(s.open) }

// parkedEvents returns the waits for external events that parked events end.
func (s *State) parkedEvents() map[int64]bool {
	ended := map[int64]bool{}
	taken := map[string]int{}
	for _, name := range s.parked {
		if waiting := s.waits[name]; name != "" && taken[name] < len(waiting) {
			ended[waiting[taken[name]]] = true
			taken[name]++
		}
	}
	return ended
}

// CancelOutstanding returns the events that cancel all open work of an execution for the given reason. It is used for
// an execution that ends without a replay. One event cancels all activities, and one event cancels all timers. Each
// sub-orchestration and each unfinished update has a separate event. The events have no IDs and times. The state must
// have TrackOpen.
func (s *State) CancelOutstanding(reason string) []Event {
	var activities, timers []int64
	var children, updates []Event
	for _, id := range slices.Sorted(maps.Keys(s.open)) {
		o := s.open[id]
		if o.OutcomeParked || o.Cancelled {
			continue
		}
		switch o.Kind {
		case ActivityScheduled:
			activities = append(activities, id)
		case TimerCreated:
			timers = append(timers, id)
		case SubOrchestrationScheduled:
			children = append(children, Event{
				Kind: SubOrchestrationCancelRequested, SourceEventID: id, InstanceID: o.InstanceID, Reason: reason,
				RequestedBy: RequestedByEngine,
			})
		case UpdateAccepted:
			updates = append(updates, Event{
				Kind: UpdateCompleted, SourceEventID: id, Name: o.Name, EventID: o.EventID, Reason: reason,
				Callers: slices.Clone(s.awaited[o.EventID]),
			})
		default: // other work has no effect outside the execution
		}
	}

	var cancels []Event
	if len(activities) > 0 {
		cancels = append(cancels,
			about(Event{Kind: ActivityCancelRequested, Reason: reason, RequestedBy: RequestedByEngine}, activities))
	}
	if len(timers) > 0 {
		cancels = append(cancels, about(Event{Kind: TimerCancelled, Reason: reason}, timers))
	}
	return append(append(cancels, children...), updates...)
}

// about returns e with the IDs that it refers to, as one ID or as ranges.
func about(e Event, ids []int64) Event {
	if len(ids) == 1 {
		e.SourceEventID = ids[0]
		return e
	}
	for _, id := range ids {
		e.SourceEventIDs = AppendID(e.SourceEventIDs, id)
	}
	return e
}

// startTimer is the ID of a delayed start's timer, which is the ID of the first event of an execution.
const startTimer = 1

// ObsoleteTimers returns the timers that are unnecessary after the events, because the events cancel the timer or
// settle its activity or its start. It includes cancelled activities with WaitForCancellation, even if they have no
// timer. It does not include timers that the same events create. The state must have TrackTimers or TrackOpen.
func (s *State) ObsoleteTimers(events ...Event) (obsolete []OpenItem) {
	for i := range events {
		e := &events[i]
		if start, ok := s.open[startTimer]; ok && e.Kind.Terminal() {
			obsolete = append(obsolete, start)
		}
		if len(s.open) == 0 || e.Kind == TimerFired || !e.settles() {
			continue
		}
		e.eachSource(func(id int64) {
			o, ok := s.open[id]
			if o.WaitsForCancellation && e.Kind == ActivityCancelRequested {
				o.FireAt = time.Time{} // the schedule-to-close timer is still needed
			}
			// the activity may be pending and have a timer for its grace period
			waits := o.WaitsForCancellation && e.Kind == ActivityCancelRequested
			if o.MayHaveRetryTimer = o.MayHaveRetryTimer && e.endsRetries(); ok &&
				(o.MayHaveRetryTimer || waits || !o.FireAt.IsZero()) {
				obsolete = append(obsolete, o)
			}
		})
	}
	return obsolete
}

// endsRetries reports whether the event ends an activity while an attempt may wait for its retry timer. Such an event
// is a cancellation or a schedule-to-close timeout.
func (e *Event) endsRetries() bool {
	return e.Kind == ActivityCancelRequested || e.Kind == ActivityFailed && e.Attempt == 0
}

// track applies an event to the open work.
func (s *State) track(e *Event) {
	switch e.Kind {
	case OrchestrationStarted:
		if e.StartAt != nil {
			s.expect(e, e.StartAt)
		}
	case TimerCreated:
		s.expect(e, e.FireAt)
	case ActivityScheduled:
		s.schedule(e)
	default:
		if len(s.open) > 0 && e.settles() {
			e.eachSource(func(id int64) { s.settle(e, id) })
		}
	}
	if s.keep&TrackOpen != 0 {
		s.trackUntimed(e)
	}
}

// trackUntimed applies an event to open work without timers.
func (s *State) trackUntimed(e *Event) {
	s.trackParked(e)
	trackCallers(s, e)
	switch e.Kind {
	case SubOrchestrationScheduled, ExternalEventSent, UpdateSent, UpdateAccepted:
		s.expect(e, nil)
	case ExternalEventSubscribed:
		s.subscribe(e)
	case ExternalEventRaised:
		s.raise(e.Name)
	default: // other events do not affect this work
	}
}

func (s *State) schedule(e *Event) {
	by, limited := e.ScheduleToCloseDeadline()
	switch {
	case limited:
		at := by.Add(ScheduleToCloseGrace)
		s.expect(e, &at)
	case e.Retry != nil || e.WaitsForCancellation() || s.keep&TrackOpen != 0:
		s.expect(e, nil)
	}
}

// expect adds the work that an event schedules, with its timer if it has one.
func (s *State) expect(e *Event, fireAt *time.Time) {
	o := OpenItem{
		ID: e.ID, Kind: e.Kind, InstanceID: e.InstanceID, ScheduledAt: e.Time,
		MayHaveRetryTimer:    e.Kind == ActivityScheduled && e.Retry != nil,
		WaitsForCancellation: e.WaitsForCancellation(),
	}
	if fireAt != nil {
		o.FireAt = *fireAt
	}
	if s.keep&TrackOpen != 0 { // the name is only used with TrackOpen
		o.Name = e.DisplayName()
	}
	if e.Kind == UpdateAccepted {
		o.EventID = e.EventID
	}
	s.AddOpen(o)
}

// settle removes the work that an event ends. Cancelled work with WaitForCancellation stays open, without further
// attempts.
func (s *State) settle(e *Event, id int64) {
	o, ok := s.open[id]
	if !ok {
		return
	}
	stays := o.WaitsForCancellation && e.requestsCancel() && (s.keep&TrackOpen != 0 || !o.FireAt.IsZero())
	if !stays {
		delete(s.open, id)
		return
	}

	o.Cancelled = true
	o.MayHaveRetryTimer = false
	s.open[id] = o
}

func (e *Event) requestsCancel() bool {
	return e.Kind == ActivityCancelRequested || e.Kind == SubOrchestrationCancelRequested
}

// subscribe adds a wait for an external event, unless an event of its name has arrived.
func (s *State) subscribe(e *Event) {
	if s.mail[e.Name] > 0 {
		s.mail[e.Name]--
		return
	}
	if s.waits == nil {
		s.waits = map[string][]int64{}
	}
	s.waits[e.Name] = append(s.waits[e.Name], e.ID)
	s.expect(e, nil)
}

// raise ends the oldest wait for an external event of the name, or stores the event for the next wait.
func (s *State) raise(name string) {
	if waiting := s.waits[name]; len(waiting) > 0 {
		delete(s.open, waiting[0])
		s.waits[name] = waiting[1:]
		return
	}
	if s.mail == nil {
		s.mail = map[string]int{}
	}
	s.mail[name]++
}

// trackParked updates the parked inputs with an event. The turn that consumes parked inputs contains them as separate
// events.
func (s *State) trackParked(e *Event) {
	switch e.Kind {
	case OrchestrationStarted:
		for i := range e.CarriedEvents {
			s.raise(e.CarriedEvents[i].Name)
		}
	case TurnStarted:
		taken := len(s.parked)
		if e.ParkedConsumed > 0 {
			taken = min(int(e.ParkedConsumed), taken)
		}
		s.parked = s.parked[taken:]
	default:
	}

	for i := range e.Inputs {
		in := &e.Inputs[i]
		name := ""
		if in.Kind == ExternalEventRaised {
			name = in.Name
		}
		s.parked = append(s.parked, name)
		if in.settles() {
			in.eachSource(func(id int64) { s.park(in, id) })
		}
	}
}

func (s *State) park(in *Event, id int64) {
	o, ok := s.open[id]
	if !ok {
		return
	}
	if in.Kind == ActivityCancelRequested {
		o.CancelRequestParked = true
	} else {
		o.OutcomeParked = true
	}
	s.open[id] = o
}

// settles reports whether the event ends work. An activity that will be retried has not ended.
func (e *Event) settles() bool { return e.Kind.HasSource() && e.Kind != ActivityRetryScheduled }

// eachSource calls f with the IDs of Sources.
func (e *Event) eachSource(f func(id int64)) {
	if e.SourceEventID != 0 {
		f(e.SourceEventID)
		return
	}
	for _, r := range e.SourceEventIDs {
		for id := r.First; id <= r.Last; id++ {
			f(id)
		}
	}
}
