package replay

import (
	"slices"

	"github.com/perdure/perdure/history"
)

// end decides the end that the body came to.
func (x *execution) end(e Ending) {
	x.scheduler.enter()
	if err := x.conclude(e); err != nil {
		x.scheduler.fail(err)
	}
}

// conclude decides the end of the execution, and before it the cancels of what is outstanding.
func (x *execution) conclude(e Ending) error {
	from := x.journal.cursor.at
	if err := releaseAll(x, e.Kind); err != nil {
		if x.journal.cursor.at == from && !x.journal.cursor.endsHere(e.Kind) { // history has not come to the end at all
			return x.journal.cursor.divergence(string(e.Kind))
		}
		return err
	}

	d := decision{kind: e.Kind}
	if e.Kind == history.OrchestrationCancelled {
		d.reason = x.scopes.root.cancelled.Reason
	}
	ev, added, err := x.journal.decide(&d)
	if err != nil {
		return err
	}
	if added {
		ev.Output = inline(e.Output)
		ev.Error = e.Error
		if e.Kind != history.OrchestrationContinuedAsNew { // else the next execution has what waits
			ev.Callers = unheard(x)
		}
		if e.Kind == history.OrchestrationCancelled {
			ev.Message = x.scopes.root.cancelled.Message
		}
	}

	if e.Kind == history.OrchestrationContinuedAsNew {
		x.journal.draft.setContinuation(continuation(x, e))
	}
	x.life.end()
	return nil
}

// continuation is what an execution hands on that continues as new.
func continuation(x *execution, e Ending) *Continuation {
	queued := x.updates.queuedIDs()
	c := &Continuation{
		Input:    inline(e.Input),
		Events:   x.tasks.mail.carry(),
		EventIDs: x.tasks.mail.lastIDs(queued),
		Inputs:   x.updates.notTaken(&x.payloads),
		taken:    func(id string) bool { return x.tasks.mail.knows(id) && !slices.Contains(queued, id) },
	}
	for _, in := range x.parking.inherited() {
		c.HandOn(in)
	}
	return c
}

// endsHere reports whether the next event is the end of an execution, or a cancel that is decided before it.
func (c *cursor) endsHere(end history.Kind) bool {
	next := c.next()
	return next != nil && (next.Kind == end || next.Reason == history.TerminalReason(end))
}

// releases reports whether an event is a cancel that the engine decides before an order to terminate. These are the only decisions that come
// before their cause, since nothing may follow the end.
func releases(ev *history.Event) bool {
	switch ev.Kind {
	case history.ActivityCancelRequested, history.TimerCancelled, history.SubOrchestrationCancelRequested, history.UpdateCompleted:
		return !ev.IsInput() && ev.Reason == history.TerminalReason(history.OrchestrationTerminated)
	default:
		return false
	}
}

// replayRelease decides again what came before an order to terminate.
func (x *execution) replayRelease() error {
	if err := releaseAll(x, history.OrchestrationTerminated); err != nil {
		return err
	}
	if next := x.journal.cursor.next(); next == nil || next.Kind != history.OrchestrationTerminated {
		return x.journal.cursor.divergence(string(history.OrchestrationTerminated))
	}
	return nil
}

// endsWithoutCode reports whether the events that are not applied are an end that no code took part in. Code that was terminated while it was
// not blocked must match what it left outstanding.
func (c *cursor) endsWithoutCode(blocked bool) bool {
	terminated := c.last().Kind == history.OrchestrationTerminated
	return (blocked || !terminated) && endsWithoutCode(c.remaining())
}

// endsWithoutCode reports whether all that follows in a history is an end that no code took part in: an order to terminate while it was blocked,
// a failure because the code differs from history, or because its turn was too large for any commit. Code is not held to what the engine
// cancelled then.
func endsWithoutCode(events []history.Event) bool {
	if len(events) == 0 {
		return false
	}

	end := &events[len(events)-1]
	if !end.EndsWithoutCode() {
		return false
	}

	reason := history.TerminalReason(end.Kind)
	return !slices.ContainsFunc(events[:len(events)-1], func(ev history.Event) bool { return ev.Reason != reason || ev.IsInput() })
}
