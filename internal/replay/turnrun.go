package replay

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/perdure/perdure/history"
)

// errNoStart is the error of a turn before the replay of the start.
var errNoStart = errors.New("no OrchestrationStarted was replayed")

// startTimer is the source of the timer of a delayed start: the first event of every execution.
const startTimer = 1

// turnRun is a running turn.
type turnRun struct {
	x *execution
	t *Turn
}

// run applies the inputs. After each input it runs the code until the code waits.
func (r turnRun) run() {
	x, t := r.x, r.t
	if !x.lifecycle.read {
		x.scheduler.Void(fmt.Errorf("replay: instance %q: turn: %w", x.options.InstanceID, errNoStart))
		return
	}

	arrived, alone := r.takePending()
	x.journal.Draft.SetTime(r.time())
	x.journal.Draft.SetLargePayloads(x.options.LargePayloads)
	if arrived > 0 || alone > 0 || t.Commits {
		r.record()
		x.journal.Draft.RecordParked(alone)
	}

	x.lifecycle.setTerminating(!x.lifecycle.hasStarted() && slices.ContainsFunc(t.Inputs, isTerminated))
	if x.lifecycle.mayStart(x.journal.Draft.Now()) {
		r.record()
		x.start()
		x.scheduler.Run(&x.lifecycle.ended)
		for _, in := range x.updates.Received() {
			r.apply(&in)
		}
	}

	x.scheduler.Void(x.applyArrived(arrived))
	for _, message := range t.Inputs {
		if x.scheduler.IsVoid() || x.lifecycle.hasEnded() {
			return
		}
		x.journal.Draft.StartMessage()
		for i := range message {
			if x.journal.Draft.TakesParked() {
				x.parked.next()
			}
			r.apply(&message[i])
		}
	}
}

// takePending takes the outcomes that have arrived, whose number is arrived, and then parked inputs, which it puts
// before the messages. If the turn takes only some of these inputs, they replace the messages, and alone is their
// number.
func (r turnRun) takePending() (arrived, alone int) {
	x, t := r.x, r.t
	arrived = x.tasks.Arrivals.Count()
	if t.MostParked > 0 && arrived > 0 && (arrived >= t.MostParked || x.parked.count() == 0) {
		arrived = min(arrived, t.MostParked)
		t.Inputs = [][]history.Event{nil}
		x.journal.Draft.ExpectParked()
		return arrived, arrived
	}
	if x.parked.count() == 0 {
		return arrived, 0
	}

	if t.MostParked > 0 {
		t.MostParked -= arrived
	}
	x.journal.Draft.ExpectParked()
	if alone = x.parked.take(t); alone > 0 {
		alone += arrived
	}
	return arrived, alone
}

// record records TurnStarted, unless the turn has recorded it.
func (r turnRun) record() { r.x.journal.StartTurn(r.t.Version, r.t.BuildID, r.t.Buffer) }

// apply records and applies an input, if it applies, and runs the code.
func (r turnRun) apply(ev *history.Event) {
	x := r.x
	if x.lifecycle.hasEnded() || x.scheduler.IsVoid() {
		return
	}
	task, applies := x.find(ev)
	if !applies {
		if ev.Kind == history.UpdateAccepted || ev.Kind == history.UpdateAwaited {
			x.makeUpdates().RecordRepeated(ev)
		}
		return
	}
	if ev.Kind == history.UpdateAccepted {
		var err error
		if ev, err = x.makeUpdates().Decide(ev); ev == nil {
			x.scheduler.Void(err)
			return
		}
	}

	r.record()
	if ev.Kind == history.OrchestrationTerminated { // nothing may follow it
		if err := x.cancelAll(ev.Kind); err != nil {
			x.scheduler.Void(err)
			return
		}
	}

	added := x.journal.Add()
	id := added.ID
	now := added.Time
	*added = *ev
	added.ID = id
	added.Time = now
	if ev.Kind == history.OrchestrationTerminated {
		added.Callers = x.waitingCallers()
	}

	x.scheduler.Void(x.apply(task, added))
	x.scheduler.Run(&x.lifecycle.ended)
}

// time returns the time of the turn. It is not before the last turn, or before the due time of a timer that fires in
// this turn.
func (r turnRun) time() time.Time {
	now := later(r.x.journal.Draft.Now(), r.t.Now.Round(0).UTC())
	for _, message := range r.t.Inputs {
		for i := range message {
			if message[i].Kind != history.TimerFired {
				continue
			}
			if message[i].SourceEventID == startTimer {
				now = later(now, r.x.lifecycle.startAt)
			}
			if timer, applies := r.x.find(&message[i]); applies {
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
