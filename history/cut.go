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
	c := restartPoints{events: events, waits: map[int64]bool{}, ending: map[int64]bool{}}
	e := RestartPointError{EventID: at}
	if at < 1 || at > int64(len(events)) {
		e.Reason = fmt.Sprintf("out of range; the history has events 1 to %d", len(events))
	}
	for i := range events {
		c.apply(i)
		why := c.obstacle(i)
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

// restartPoints reads a history and determines the events after which it can be cut.
type restartPoints struct {
	events  []Event
	summary Summary
	// turnObstacle is the reason why the current turn cannot be cut, or empty.
	turnObstacle string
	// waits holds scheduled work with WaitForCancellation, and ending such work that is cancelled and has not ended.
	waits, ending map[int64]bool
}

// apply applies an event.
func (c *restartPoints) apply(i int) {
	e := &c.events[i]
	switch {
	case e.Kind == TurnStarted:
		c.turnObstacle = c.checkTurn(i)
	case beginsSegment(e.Kind):
		c.turnObstacle = ""
	}
	c.summary.apply(e)

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

// checkTurn returns the reason why a turn cannot be cut, or an empty string if it can.
func (c *restartPoints) checkTurn(from int) string {
	if c.summary.Parked > 0 {
		return "its turn processed parked inputs"
	}
	for i := from + 1; i < len(c.events) && !beginsSegment(c.events[i].Kind); i++ {
		if c.events[i].EndsWithoutCode() {
			return "the execution ended in its turn without running the code"
		}
	}
	return ""
}

// obstacle returns the reason why the history cannot be cut after an event, or an empty string if it can.
func (c *restartPoints) obstacle(i int) string {
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
	case c.turnObstacle != "":
		return c.turnObstacle
	case next.IsInput() && !next.Kind.Terminal(), c.events[i].parks(), c.events[i].runsNoCode():
		return ""
	default:
		return "the code made further decisions in the same turn"
	}
}

// parks reports whether an event is an input that can be parked. The outcome of an update cannot, because its callers
// have received it.
func (e *Event) parks() bool {
	switch e.Kind {
	case UpdateReceived, UpdateAccepted, UpdateRejected, UpdateAwaited, ActivityRetryScheduled:
		return false
	default:
		return e.IsInput() && !e.Kind.Terminal() && !beginsSegment(e.Kind) && !e.IsInlineOutcome()
	}
}

// runsNoCode reports whether an event is the first one of a commit in which the code did not run.
func (e *Event) runsNoCode() bool { return beginsSegment(e.Kind) && e.Kind != TurnStarted }

// beginsSegment reports whether an event is the first one of a commit.
func beginsSegment(k Kind) bool {
	switch k {
	case TurnStarted, InputsParked, ExecutionSuspended, ExecutionResumed, ExecutionRestarted:
		return true
	default:
		return false
	}
}
