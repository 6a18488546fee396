package history

import "fmt"

// RestartPointError means that an execution cannot be restarted from an event.
type RestartPointError struct {
	// EventID is the ID of the event. Before and After are the nearest valid events, or 0.
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

// CheckRestartPoint returns a *RestartPointError unless a restart can copy the history of an execution up to and
// including the event with the ID at. The execution may have ended. The event must be an input event or the last
// decision that an input event caused. These conditions must also be true:
//
//   - The code had processed the earlier events. The turn neither ended the execution without running its code nor
//     consumed parked inputs.
//   - No cancelled work with WaitForCancellation was still running.
//   - The event does not end the execution.
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

// restartPoints reads a history and finds the events from which the execution can be restarted.
type restartPoints struct {
	events  []Event
	summary Summary
	// cutObstacle is the reason why the history cannot end within the current turn, or empty.
	cutObstacle string
	// waits contains scheduled work with WaitForCancellation. ending contains the part of it that is cancelled and has
	// not ended.
	waits, ending map[int64]bool
}

// apply applies an event.
func (c *restartPoints) apply(i int) {
	e := &c.events[i]
	switch {
	case e.Kind == TurnStarted:
		c.cutObstacle = c.checkTurn(i)
	case beginsSegment(e.Kind):
		c.cutObstacle = ""
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

// checkTurn returns the reason why the history cannot end within a turn, or an empty string.
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

// obstacle returns the reason why the execution cannot be restarted from an event, or an empty string.
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
	case c.cutObstacle != "":
		return c.cutObstacle
	case next.IsInput() && !next.Kind.Terminal(), c.events[i].parks(), c.events[i].runsNoCode():
		return ""
	default:
		return "the code made further decisions in the same turn"
	}
}

// parks reports whether an event is an input that can be parked. The outcome of an update cannot be parked, because its
// callers have received it.
func (e *Event) parks() bool {
	switch e.Kind {
	case UpdateReceived, UpdateAccepted, UpdateRejected, UpdateAwaited, ActivityRetryScheduled:
		return false
	default:
		return e.IsInput() && !e.Kind.Terminal() && !beginsSegment(e.Kind) && !e.IsInlineOutcome()
	}
}

// runsNoCode reports whether an event is the first event of a commit in which the code did not run.
func (e *Event) runsNoCode() bool { return beginsSegment(e.Kind) && e.Kind != TurnStarted }

// beginsSegment reports whether an event is the first event of a commit.
func beginsSegment(k Kind) bool {
	switch k {
	case TurnStarted, InputsParked, ExecutionSuspended, ExecutionResumed, ExecutionRestarted:
		return true
	default:
		return false
	}
}
