package history

import "fmt"

// RestartPointError means that a history cannot be cut after an event.
type RestartPointError struct {
	// EventID is the ID of the event. Before and After are the nearest events after which the history can be cut, or 0.
	EventID, Before, After int64
	// Reason is the reason, as a clause without a final period.
	Reason string
}

func (e *RestartPointError) Error() string {
	nearest := ""
	switch {
	case e.Before > 0 && e.After > 0:
		nearest = fmt.Sprintf("; the nearest possible events are %d and %d", e.Before, e.After)
	case e.Before+e.After > 0:
		nearest = fmt.Sprintf("; the nearest possible event is %d", e.Before+e.After)
	}
	return fmt.Sprintf("event %d: %s%s", e.EventID, e.Reason, nearest)
}

// CheckRestartPoint returns a *RestartPointError unless the history of an execution can be cut after the event with the
// ID at. The execution may have ended. A history can be cut after an input event, and after all decisions that an input
// event caused, if
//
//   - the code had processed the events before, and the turn neither ended the execution without its code nor consumed
//     parked inputs,
//   - no cancelled work was still running whose end is awaited, and
//   - the event does not end the execution.
func CheckRestartPoint(events []Event, at int64) error {
	c := cutting{events: events, waits: map[int64]bool{}, ending: map[int64]bool{}}
	e := RestartPointError{EventID: at}
	if at < 1 || at > int64(len(events)) {
		e.Reason = fmt.Sprintf("out of range; the history has events 1 to %d", len(events))
	}
	for i := range events {
		c.pass(i)
		why := c.hindrance(i)
		switch id := events[i].ID; {
		case id == at && why == "":
			return nil
		case id == at:
			e.Reason = why
		case why != "":
		case id < at:
			e.Before = id
		default:
			e.After = id
			return &e
		}
	}
	return &e
}

// cutting goes through a history, from where to where it can be cut.
type cutting struct {
	events   []Event
	standing Summary
	// whole: the turn under way is taken as a whole, or not at all; why is the reason.
	why string
	// waits is what is scheduled and waited for when it is cancelled; ending is what is cancelled of these and has not ended.
	waits, ending map[int64]bool
}

// pass takes an event into account.
func (c *cutting) pass(i int) {
	e := &c.events[i]
	switch {
	case e.Kind == TurnStarted:
		c.why = c.turn(i)
	case beginsSegment(e.Kind):
		c.why = ""
	}
	c.standing.apply(e)

	switch {
	case e.WaitsForCancellation():
		c.waits[e.ID] = true
	case e.requestsCancel():
		e.eachSource(func(id int64) {
			if c.waits[id] {
				c.ending[id] = true
			}
		})
	case e.settles():
		e.eachSource(func(id int64) {
			delete(c.waits, id)
			delete(c.ending, id)
		})
	}
}

// turn returns why nothing but the whole of a turn can be taken; empty: parts can.
func (c *cutting) turn(from int) string {
	if c.standing.Parked > 0 {
		return "its turn processed parked inputs"
	}
	for i := from + 1; i < len(c.events) && !beginsSegment(c.events[i].Kind); i++ {
		if c.events[i].EndsWithoutCode() {
			return "the execution ended in its turn without running the code"
		}
	}
	return ""
}

// hindrance returns why the history cannot be cut behind an event; empty: it can.
func (c *cutting) hindrance(i int) string {
	if c.events[i].Kind.Terminal() {
		return "the execution ends with this event"
	}
	if len(c.ending) > 0 {
		return "the execution was waiting for the end of cancelled work"
	}
	if i+1 == len(c.events) {
		return ""
	}
	next := &c.events[i+1]
	switch {
	case beginsSegment(next.Kind):
		return ""
	case c.why != "":
		return c.why
	case next.IsInput() && !next.Kind.Terminal(), c.events[i].parks(), c.events[i].runsNoCode():
		return ""
	default:
		return "the code made further decisions in the same turn"
	}
}

// parks reports whether an event is an input that can wait for a turn, as parked inputs do. What became of an update is answered: it stays what it is.
func (e *Event) parks() bool {
	switch e.Kind {
	case UpdateReceived, UpdateAccepted, UpdateRejected, UpdateAwaited, ActivityRetryScheduled:
		return false
	default:
		return e.IsInput() && !e.Kind.Terminal() && !beginsSegment(e.Kind) && !e.IsInlineOutcome()
	}
}

// runsNoCode reports whether an event is of a moment at which the code was not there: it had come to rest before, whatever follows.
func (e *Event) runsNoCode() bool { return beginsSegment(e.Kind) && e.Kind != TurnStarted }

// beginsSegment reports whether an event begins what is committed together.
func beginsSegment(k Kind) bool {
	switch k {
	case TurnStarted, InputsParked, ExecutionSuspended, ExecutionResumed, ExecutionRestarted:
		return true
	default:
		return false
	}
}
