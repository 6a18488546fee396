package replay

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/perdure/perdure/history"
)

// Turn is what a turn is given.
type Turn struct {
	// Now becomes the orchestration's time. It is raised to the last turn's and to the due time of each timer that fires.
	Now time.Time
	// Version and BuildID are recorded in TurnStarted.
	Version, BuildID string
	// Inputs are the input events of each message, in order. Their ID and Time are assigned by the turn.
	Inputs [][]history.Event
	// MostParked bounds how many parked inputs the turn takes. One that is bounded takes none of Inputs while any were parked, and
	// says in TurnStarted how many it took; what is left is for the next turn. 0: all of them, and then Inputs, unless the documents
	// of the parked are too much for one turn.
	MostParked int
	// Commits: the turn has something to commit even where nothing applies: that it took place.
	Commits bool
}

// Outcome is what a turn came to.
type Outcome struct {
	// Events are to be committed: TurnStarted, then each applied input followed by the decisions it caused. Empty when
	// nothing applied: then there is nothing to commit, unless Turn.Commits.
	Events []history.Event
	// Consumed counts the messages used up: all, unless one ended the execution (R2).
	Consumed int
	// Ended says that the execution is over: the last event is its end.
	Ended bool
	// Continued is not nil when the last event is OrchestrationContinuedAsNew. The caller names the next execution, in that
	// event, and starts it with what is in here.
	Continued *Continuation
}

// Continuation is what an execution hands on to the next of its instance (R3).
type Continuation struct {
	Input history.Payload
	// Events are the external events that nobody has observed, in the order in which they arrived.
	Events []history.CarriedEvent
	// EventIDs are the last 256 ids of external events that were seen, oldest first.
	EventIDs []string
	// Inputs were parked behind the one that the code continued as new on, and are about the instance: no message will bring
	// them again.
	Inputs []history.Event
}

// errNoStart is a caller's mistake: there is no turn without the start event.
var errNoStart = errors.New("no OrchestrationStarted was replayed")

// turn applies the inputs, each until the code can go no further.
func (x *execution) turn(t *Turn) {
	if !x.readable {
		x.void = fmt.Errorf("replay: instance %q: turn: %w", x.options.InstanceID, errNoStart)
		return
	}
	taken := x.unpark(t)
	x.now = x.timeOf(t)
	if taken > 0 || t.Commits {
		x.open(t)
		x.out[0].Parked = int64(taken)
	}
	x.doomed = !x.started && slices.ContainsFunc(t.Inputs, terminated)
	if x.mayBegin() && !x.doomed {
		x.open(t)
		x.begin()
		x.run()
	}
	for _, message := range t.Inputs {
		if x.stuck() || x.ended {
			return
		}
		x.consumed++ // before it is applied: code that ends by Goexit does not come back here
		for i := range message {
			if x.consumed == 0 {
				x.left = x.left[1:]
			}
			x.apply(t, &message[i])
		}
	}
}

// unpark puts parked inputs before those of the messages; or, where the turn is bounded, in their place, and tells how many.
func (x *execution) unpark(t *Turn) (alone int) {
	if len(x.parked) == 0 {
		return 0
	}
	x.left, x.consumed = x.parked, -1 // no message of this turn
	most := x.worth()
	if t.MostParked > 0 {
		most = min(most, t.MostParked)
	}
	if t.MostParked <= 0 && most == len(x.parked) {
		t.Inputs = append([][]history.Event{x.parked}, t.Inputs...)
		x.parked = nil
		return 0
	}
	alone = most
	t.Inputs = [][]history.Event{x.parked[:alone]}
	x.parked = x.parked[alone:]
	return alone
}

// inherited are the parked inputs that concern the next execution as well: what was for this one's own tasks is over.
func (x *execution) inherited() []history.Event {
	return slices.DeleteFunc(slices.Clone(x.left), func(ev history.Event) bool {
		return ev.Kind.Sourced()
	})
}

// mayBegin reports whether the body is to run for the first time.
func (x *execution) mayBegin() bool { return !x.started && !x.now.Before(x.startAt) }

// startTimer is what the timer of a delayed start fires for: the event that every execution begins with.
const startTimer = 1

// apply takes one input, if it has anything to say.
func (x *execution) apply(t *Turn, ev *history.Event) {
	if x.ended || x.stuck() {
		return
	}
	task, applies := x.concerns(ev)
	if !applies {
		return
	}
	x.open(t)
	if ev.Kind == history.OrchestrationTerminated { // nothing may follow it
		if x.void = x.release(ev.Kind); x.void != nil {
			return
		}
	}
	added := x.add()
	id, now := added.ID, added.Time
	*added = *ev
	added.ID, added.Time = id, now
	if x.void = x.accept(task, added); x.void == nil {
		x.run()
	}
}

// open writes TurnStarted, once there is something to follow it.
func (x *execution) open(t *Turn) {
	if len(x.out) > 0 {
		return
	}
	x.out = make([]history.Event, 0, turnEvents)
	ev := x.add()
	ev.Kind, ev.Version, ev.BuildID = history.TurnStarted, t.Version, t.BuildID
}

// turnEvents has room for the commonest turn: a result, and what is decided on it.
const turnEvents = 4

// timeOf is the time of the turn: it never goes back, and no timer finds itself early.
func (x *execution) timeOf(t *Turn) time.Time {
	now := later(x.now, t.Now.Round(0).UTC())
	for _, message := range t.Inputs {
		for i := range message {
			if message[i].Kind != history.TimerFired {
				continue
			}
			if message[i].SourceEventID == startTimer {
				now = later(now, x.startAt)
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

// stuck reports whether the execution may not go on.
func (x *execution) stuck() bool { return x.void != nil || x.foreign.Load() != nil }
