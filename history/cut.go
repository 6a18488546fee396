package history

import "fmt"

// CutError is why a history cannot be cut behind an event.
type CutError struct {
	// EventID is that event. Before and After are the nearest ones behind which the history can be cut; 0: there is none.
	EventID, Before, After int64
	// Why is a sentence.
	Why string
}

func (e *CutError) Error() string {
	nearest := ""
	switch {
	case e.Before > 0 && e.After > 0:
		nearest = fmt.Sprintf("; the nearest that are possible are %d and %d", e.Before, e.After)
	case e.Before+e.After > 0:
		nearest = fmt.Sprintf("; the nearest that is possible is %d", e.Before+e.After)
	}
	return fmt.Sprintf("event %d: %s%s", e.EventID, e.Why, nearest)
}

// CheckCut returns a *CutError unless the history of an execution, which may be over, can be cut behind an event: what is up to it is then what
// the execution had been through at some moment, at which its code had come to rest, or has received (Takeover hands that to the code anew). That is
// behind an input, or behind all that one has caused, where
//
//   - the code has run on what is before: not in a turn which ends the execution without it, nor in one that takes parked inputs, of which no part would
//     be left for another turn;
//   - nothing is cancelled whose end is waited for: whoever would tell of it tells the old execution;
//   - the execution is not over.
func CheckCut(events []Event, at int64) error {
	c := cutting{events: events, waits: map[int64]bool{}, ending: map[int64]bool{}}
	e := CutError{EventID: at}
	if at < 1 || at > int64(len(events)) {
		e.Why = fmt.Sprintf("the history has the events 1 to %d", len(events))
	}
	for i := range events {
		c.pass(i)
		why := c.hindrance(i)
		switch id := events[i].ID; {
		case id == at && why == "":
			return nil
		case id == at:
			e.Why = why
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
	standing Standing
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
	case e.Waits():
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
		return "it is in a turn that took what had been parked"
	}
	for i := from + 1; i < len(c.events) && !beginsSegment(c.events[i].Kind); i++ {
		if c.events[i].EndsWithoutCode() {
			return "it is in the turn in which the execution ended without its code"
		}
	}
	return ""
}

// hindrance returns why the history cannot be cut behind an event; empty: it can.
func (c *cutting) hindrance(i int) string {
	if c.events[i].Kind.Terminal() {
		return "the execution ends with it"
	}
	if len(c.ending) > 0 {
		return "something is cancelled there whose end is waited for"
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
		return "the code had not come to rest behind it, it went on to decide what follows"
	}
}

// parks reports whether an event is an input that can wait for a turn, as parked inputs do. What became of an update is answered: it stays what it is.
func (e *Event) parks() bool {
	switch e.Kind {
	case UpdateReceived, UpdateAccepted, UpdateRejected, UpdateAwaited, ActivityRetryScheduled:
		return false
	default:
		return e.IsInput() && !e.Kind.Terminal() && !beginsSegment(e.Kind) && !e.Arrives()
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
