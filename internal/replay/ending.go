package replay

import (
	"slices"

	"github.com/perdure/perdure/history"
)

// end is the body's.
func (x *execution) end(e Ending) {
	x.enter()
	if err := x.conclude(e); err != nil {
		x.fail(err)
	}
}

// conclude decides the end of the execution, and before it that nothing which is outstanding is needed any more.
func (x *execution) conclude(e Ending) error {
	from := x.next
	if err := x.release(e.Kind); err != nil {
		if x.next == from && !x.endsHere(e.Kind) { // it has not come to the end at all
			return x.divergence(string(e.Kind))
		}
		return err
	}
	d := decision{kind: e.Kind}
	if e.Kind == history.OrchestrationCancelled {
		d.reason = x.root.cancelled.Reason
	}
	ev, added, err := x.tryDecide(&d)
	if err != nil {
		return err
	}
	if added {
		ev.Output, ev.Error = inline(e.Output), e.Error
		if e.Kind == history.OrchestrationCancelled {
			ev.Message = x.root.cancelled.Message
		}
	}
	if e.Kind == history.OrchestrationContinuedAsNew {
		x.continued = &Continuation{Input: inline(e.Input), Events: x.carry(), EventIDs: x.mail.lastIDs(), Inputs: x.inherited()}
	}
	x.ended = true
	return nil
}

// endsHere reports whether history has the end of an execution, or what is decided before it.
func (x *execution) endsHere(end history.Kind) bool {
	return x.next < len(x.past) && (x.past[x.next].Kind == end || x.past[x.next].Reason == history.TerminalReason(end))
}

// release cancels all that is outstanding, in whatever scope. Nobody is left to be told.
func (x *execution) release(end history.Kind) error {
	tasks := x.scheduled(true)
	if len(tasks) == 0 {
		return nil
	}
	slices.SortFunc(tasks, byKind)
	reason := history.TerminalReason(end)
	f := &history.Failure{Type: history.TypeCancelled, Reason: reason}
	return x.giveUpAll(tasks, cancel{f: f, children: reason, by: history.RequestedByEngine})
}

// releases reports whether an event is what the engine decides before an order to terminate: the one decision that comes before its
// cause, since nothing may follow the end.
func releases(ev *history.Event) bool {
	switch ev.Kind {
	case history.ActivityCancelRequested, history.TimerCancelled, history.SubOrchestrationCancelRequested:
		return !ev.IsInput() && ev.Reason == history.TerminalReason(history.OrchestrationTerminated)
	default:
		return false
	}
}

// reliveRelease decides again what came before an order to terminate.
func (x *execution) reliveRelease() error {
	if err := x.release(history.OrchestrationTerminated); err != nil {
		return err
	}
	if x.next == len(x.past) || x.past[x.next].Kind != history.OrchestrationTerminated {
		return x.divergence(string(history.OrchestrationTerminated))
	}
	return nil
}

// endsWithoutCode reports whether what follows in history is an end that no code took part in.
func (x *execution) endsWithoutCode() bool {
	terminated := x.past[len(x.past)-1].Kind == history.OrchestrationTerminated
	return (x.blocked || !terminated) && endsWithoutCode(x.past[x.next:]) // code that was not blocked is held to what it left outstanding
}

// endsWithoutCode reports whether all that follows in a history is an end that no code took part in: an order to terminate while it was
// blocked, a failure because it parted from its history, or because its turn was too large for any commit. Code cannot be held against
// what the engine gave up then.
func endsWithoutCode(events []history.Event) bool {
	if len(events) == 0 {
		return false
	}
	end := &events[len(events)-1]
	switch {
	case end.Kind == history.OrchestrationTerminated:
	case end.Kind == history.OrchestrationFailed && end.Error != nil &&
		(end.Error.Type == history.TypeNondeterminism || end.Error.Type == history.TypePayloadTooLarge):
	default:
		return false
	}
	reason := history.TerminalReason(end.Kind)
	return !slices.ContainsFunc(events[:len(events)-1], func(ev history.Event) bool { return ev.Reason != reason || ev.IsInput() })
}
