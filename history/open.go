package history

import (
	"iter"
	"maps"
	"slices"
	"time"
)

// Open is something that an execution has scheduled or waits for, and that has not ended.
type Open struct {
	// ID is the id of the event that scheduled it.
	ID int64
	// Kind is that event's kind: ActivityScheduled, TimerCreated, SubOrchestrationScheduled, ExternalEventSubscribed,
	// ExternalEventSent, UpdateSent or UpdateAccepted; OrchestrationStarted for the timer of a delayed start.
	Kind Kind
	// Name is what the event is called (Event.Label), where the state has KeepOpen. InstanceID is the id of a
	// sub-orchestration, or of the instance that an event or an update was sent to, EventID that of an update.
	Name, InstanceID, EventID string
	// ScheduledAt is the time of the event.
	ScheduledAt time.Time
	// FireAt is when a timer fires, which may be that of an activity's schedule-to-close time. Zero: there is no timer.
	FireAt time.Time
	// Retries reports that an attempt of the activity may wait by a timer of its own. History does not record until
	// when.
	Retries bool
	// Waits reports that its end is waited for when it is cancelled.
	Waits bool
	// Cancelled reports that it is cancelled and has not ended. Only what Waits can be.
	Cancelled bool
	// Arrived reports that its outcome is parked, CancelAsked that a request to cancel it is.
	Arrived, CancelAsked bool
}

// CloseLeeway is how much later than its worker an activity's timer ends its schedule-to-close time: the worker knows
// better how the activity ended.
const CloseLeeway = time.Second

// CloseBy returns when the schedule-to-close time ends of the activity that the event schedules, if it has one.
func (e *Event) CloseBy() (at time.Time, limited bool) {
	return e.Time.Add(time.Duration(e.ScheduleToCloseMs) * time.Millisecond), e.ScheduleToCloseMs > 0
}

// Expect adds something open that was scheduled before the first event that the state is given.
func (s *State) Expect(o Open) {
	if s.open == nil {
		s.open = map[int64]Open{}
	}
	s.open[o.ID] = o
}

// Open returns what is open under an id; ok is false where nothing is, or nothing that the state keeps.
func (s *State) Open(id int64) (o Open, ok bool) {
	o, ok = s.open[id]
	return o, ok
}

// HasTimer reports whether what is open under an id waits for a time: a timer, or an activity that has one.
func (s *State) HasTimer(id int64) bool {
	o := s.open[id]
	return o.Retries || !o.FireAt.IsZero()
}

// OpenCount returns how many open items the state keeps.
func (s *State) OpenCount() int { return len(s.open) }

// Pending yields what an execution waits for, in no order. What has arrived is no longer pending, even while it is
// parked, and after the end nothing is. It needs KeepOpen.
func (s *State) Pending() iter.Seq[Open] {
	return func(yield func(Open) bool) {
		if s.Over() {
			return
		}
		arrived := s.parkedEvents()
		for _, o := range s.open {
			if o.Kind == OrchestrationStarted || o.Arrived || arrived[o.ID] {
				continue
			}
			if !yield(o) {
				return
			}
		}
	}
}

// Left yields what is open, in no order: also after the end, which all of it ended with. What has arrived is among it
// while it is parked, and waits for external events that history shows no end of. It needs KeepOpen.
func (s *State) Left() iter.Seq[Open] { return maps.Values(s.open) }

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

// CancelOutstanding returns the events that end an execution which is not replayed any more: they cancel, for a reason,
// what is scheduled and neither settled nor cancelled. The activities share an event, and so do the timers; each child
// has its own, because it is sent a message, and so has each update whose handler has not returned, because it is
// answered. The events have no ids and no times yet. It needs KeepOpen.
func (s *State) CancelOutstanding(reason string) []Event {
	var activities, timers []int64
	var children, updates []Event
	for _, id := range slices.Sorted(maps.Keys(s.open)) {
		o := s.open[id]
		if o.Arrived || o.Cancelled {
			continue
		}
		switch o.Kind {
		case ActivityScheduled:
			activities = append(activities, id)
		case TimerCreated:
			timers = append(timers, id)
		case SubOrchestrationScheduled:
			children = append(children, Event{Kind: SubOrchestrationCancelRequested, SourceEventID: id, InstanceID: o.InstanceID, Reason: reason, RequestedBy: RequestedByEngine})
		case UpdateAccepted:
			updates = append(updates, Event{Kind: UpdateCompleted, SourceEventID: id, Name: o.Name, EventID: o.EventID, Reason: reason, Callers: slices.Clone(s.awaited[o.EventID])})
		default: // it has no effect outside the execution
		}
	}

	var cancels []Event
	if len(activities) > 0 {
		cancels = append(cancels, about(Event{Kind: ActivityCancelRequested, Reason: reason, RequestedBy: RequestedByEngine}, activities))
	}
	if len(timers) > 0 {
		cancels = append(cancels, about(Event{Kind: TimerCancelled, Reason: reason}, timers))
	}
	return append(append(cancels, children...), updates...)
}

// about sets the ids that an event concerns: one id, or several packed.
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

// startTimer is the id of a delayed start's timer: that of the event with which every execution begins.
const startTimer = 1

// Needless returns the waiting timers that the next events leave without a purpose: the events cancel a timer, settle
// its activity, or end what it was to start. Activities that are waited for are among them when they are cancelled, whether
// or not they have one. Timers that the same events create have not been sent anywhere. It needs
// KeepTimers or KeepOpen.
func (s *State) Needless(events ...Event) (needless []Open) {
	for i := range events {
		e := &events[i]
		if start, ok := s.open[startTimer]; ok && e.Kind.Terminal() {
			needless = append(needless, start)
		}
		if len(s.open) == 0 || e.Kind == TimerFired || !e.settles() {
			continue
		}
		e.eachSource(func(id int64) {
			o, ok := s.open[id]
			if o.Waits && e.Kind == ActivityCancelRequested {
				o.FireAt = time.Time{} // its schedule-to-close timer stays
			}
			waits := o.Waits && e.Kind == ActivityCancelRequested // it may be pending, and have a timer for its grace
			if o.Retries = o.Retries && e.givesUp(); ok && (o.Retries || waits || !o.FireAt.IsZero()) {
				needless = append(needless, o)
			}
		})
	}
	return needless
}

// givesUp reports whether the event ends an activity while an attempt of it may wait: the outcome of an attempt comes
// after that attempt's wait.
func (e *Event) givesUp() bool {
	return e.Kind == ActivityCancelRequested || e.Kind == ActivityFailed && e.Attempt == 0 // the latter: its schedule-to-close time is over
}

// track applies an event to what is open.
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
	if s.keep&KeepOpen != 0 {
		s.trackUntimed(e)
	}
}

// trackUntimed applies an event to what does not wait for a time.
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
	default: // others do not concern these
	}
}

func (s *State) schedule(e *Event) {
	by, limited := e.CloseBy()
	switch {
	case limited:
		at := by.Add(CloseLeeway)
		s.expect(e, &at)
	case e.Retry != nil || e.Waits() || s.keep&KeepOpen != 0:
		s.expect(e, nil)
	}
}

// expect adds what an event schedules, with its timer if there is one.
func (s *State) expect(e *Event, fireAt *time.Time) {
	o := Open{ID: e.ID, Kind: e.Kind, InstanceID: e.InstanceID, ScheduledAt: e.Time, Retries: e.Kind == ActivityScheduled && e.Retry != nil, Waits: e.Waits()}
	if fireAt != nil {
		o.FireAt = *fireAt
	}
	if s.keep&KeepOpen != 0 { // else names would be kept for nothing
		o.Name = e.Label()
	}
	if e.Kind == UpdateAccepted {
		o.EventID = e.EventID
	}
	s.Expect(o)
}

// settle removes what an event ends. What is cancelled and waited for stays, and no other attempt of it follows.
func (s *State) settle(e *Event, id int64) {
	o, ok := s.open[id]
	if !ok {
		return
	}
	stays := o.Waits && e.requestsCancel() && (s.keep&KeepOpen != 0 || !o.FireAt.IsZero())
	if !stays {
		delete(s.open, id)
		return
	}

	o.Cancelled = true
	o.Retries = false
	s.open[id] = o
}

func (e *Event) requestsCancel() bool {
	return e.Kind == ActivityCancelRequested || e.Kind == SubOrchestrationCancelRequested
}

// subscribe adds a wait for an external event, unless one of its name has arrived.
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

// raise ends the oldest wait for an external event of the name, or keeps the event for the next wait.
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

// trackParked applies what an event says of parked inputs. When their turn comes, they come again as its events.
func (s *State) trackParked(e *Event) {
	switch e.Kind {
	case OrchestrationStarted:
		for i := range e.CarriedEvents {
			s.raise(e.CarriedEvents[i].Name)
		}
	case TurnStarted:
		taken := len(s.parked)
		if e.Parked > 0 {
			taken = min(int(e.Parked), taken)
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
		o.CancelAsked = true
	} else {
		o.Arrived = true
	}
	s.open[id] = o
}

// settles reports whether something is over with the event. An activity that is tried again is not.
func (e *Event) settles() bool { return e.Kind.Sourced() && e.Kind != ActivityRetryScheduled }

// eachSource calls f with the ids of the events that this one concerns, as Sources returns them.
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
