package replay

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/perdure/perdure/history"
)

// Turn are the arguments of a turn.
type Turn struct {
	// Now becomes the orchestration's time. It is raised to the last turn's and to the due time of each timer that fires.
	Now time.Time
	// Version and BuildID are recorded in TurnStarted.
	Version, BuildID string
	// Inputs are the input events of each message, in order. Their ID and Time are assigned by the turn.
	Inputs [][]history.Event
	// MostParked bounds how many the turn takes of the outcomes that have arrived, and of the parked inputs. A bounded turn takes none of Inputs
	// while any of these waited, and records in TurnStarted how many it took; the others are for the next turn. 0: all of them, and then Inputs,
	// unless the documents of the parked inputs are too much for one turn.
	MostParked int
	// Commits: the turn commits TurnStarted even where nothing applies.
	Commits bool
	// Room is where Outcome.Events are put, as far as they fit, in the place of whatever it holds. Once the turn is over the instance does not
	// refer to it, nor to Inputs. After an error its caller must not use them again: code that was given up may still do so. Nil is new memory.
	Room []history.Event
}

// Outcome is what a turn has come to.
type Outcome struct {
	// Events are to be committed: TurnStarted, then each applied input followed by the decisions it caused. Without any that applied there
	// are none, unless Turn.Commits.
	Events []history.Event
	// Consumed counts the messages that were used up: all, unless one ended the execution (R2).
	Consumed int
	// Ended: the execution is over, and the last event is its end.
	Ended bool
	// Continued is not nil when the last event is OrchestrationContinuedAsNew. The caller names the next execution, in that
	// event, and starts it with what is in here.
	Continued *Continuation
	// Repeated are updates that came again and are over, unless this turn has answered them: their names, by their ids.
	Repeated map[string]string
	// Callers are the orchestrations that have sent updates which came again and are over, by their ids.
	Callers map[string][]history.Parent
	// TurnedAway are the orchestrations that would wait for an update which is under way, where too many do.
	TurnedAway []history.Parent
	// Waits are the waits for external events that have ended, in the order in which they did, where Options.WaitEnds asks for them.
	Waits []WaitEnd
}

// Continuation is what an execution hands on to the next of its instance (R3).
type Continuation struct {
	Input history.Payload
	// Events are the external events that the code has not observed, in the order of arrival.
	Events []history.CarriedEvent
	// EventIDs are the last 256 ids of external events that were seen, oldest first, behind those older ones that Inputs bring again.
	EventIDs []string
	// Inputs were parked behind the one that the code continued as new on, or are updates that came before it began. No message will bring them
	// again.
	Inputs []history.Event
	// taken reports whether an id was seen of what is not itself among Inputs.
	taken func(id string) bool
}

// HandOn adds an input. One that repeats what this execution has taken must not be new to the next.
func (c *Continuation) HandOn(in history.Event) {
	c.Inputs = append(c.Inputs, in)
	id := in.EventID
	if in.Kind == history.UpdateAccepted || in.Kind == history.UpdateAwaited {
		id = history.UpdateIDPrefix + id
	}
	if c.taken(id) && !slices.Contains(c.EventIDs, id) {
		c.EventIDs = slices.Insert(c.EventIDs, 0, id)
	}
}

// errNoStart is the error of a caller that takes a turn before it has replayed the start.
var errNoStart = errors.New("no OrchestrationStarted was replayed")

// turn applies the inputs, each until the code can go no further.
func (x *execution) turn(t *Turn) {
	if !x.life.read {
		x.scheduler.voidWith(fmt.Errorf("replay: instance %q: turn: %w", x.options.InstanceID, errNoStart))
		return
	}

	arrived, alone := unpark(x, t)
	x.journal.draft.setTime(x.timeOf(t))
	x.journal.draft.setLarge(x.options.LargePayloads)
	if arrived > 0 || alone > 0 || t.Commits {
		x.journal.startTurn(t)
		x.journal.draft.recordParked(alone)
	}

	x.life.setDoomed(!x.life.hasBegun() && slices.ContainsFunc(t.Inputs, terminated))
	if x.life.mayBegin(x.journal.draft.now) {
		x.journal.startTurn(t)
		x.begin()
		x.scheduler.run(&x.life)
		takeReceived(x, t)
	}

	x.scheduler.voidWith(seeArrived(x, arrived))
	for _, message := range t.Inputs {
		if x.scheduler.stuck() || x.life.hasEnded() {
			return
		}
		x.journal.draft.startMessage()
		for i := range message {
			if x.journal.draft.isParked() {
				x.parking.takeNext()
			}
			x.apply(t, &message[i])
		}
	}
}

// startTimer is what the timer of a delayed start fires for: the event that every execution begins with.
const startTimer = 1

// apply takes one input, if it applies.
func (x *execution) apply(t *Turn, ev *history.Event) {
	if x.life.hasEnded() || x.scheduler.stuck() {
		return
	}
	task, applies := x.concerns(ev)
	if !applies {
		noteRepeated(x, ev)
		return
	}
	if ev.Kind == history.UpdateAccepted {
		var err error
		if ev, err = judge(x, ev); ev == nil {
			x.scheduler.voidWith(err)
			return
		}
	}

	x.journal.startTurn(t)
	if ev.Kind == history.OrchestrationTerminated { // nothing may follow it
		if err := releaseAll(x, ev.Kind); err != nil {
			x.scheduler.voidWith(err)
			return
		}
	}

	added := x.journal.add()
	id := added.ID
	now := added.Time
	*added = *ev
	added.ID = id
	added.Time = now
	if ev.Kind == history.OrchestrationTerminated {
		added.Callers = unheard(x)
	}

	x.scheduler.voidWith(x.accept(task, added))
	x.scheduler.run(&x.life)
}

// timeOf is the time of a turn: never before that of the last one, nor before a timer that fires in it is due.
func (x *execution) timeOf(t *Turn) time.Time {
	now := later(x.journal.draft.now, t.Now.Round(0).UTC())
	for _, message := range t.Inputs {
		for i := range message {
			if message[i].Kind != history.TimerFired {
				continue
			}
			if message[i].SourceEventID == startTimer {
				now = later(now, x.life.startAt)
			}
			if timer, applies := x.concerns(&message[i]); applies {
				now = later(now, timer.FireAt())
			}
		}
	}
	return now
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
