package replay

import (
	"fmt"
	"slices"
	"strings"

	"github.com/perdure/perdure/history"
)

// decision is what replay compares: what the code asked for, but not what it said about it.
type decision struct {
	kind    history.Kind
	name    string // of the activity
	reason  string // of a cancellation
	source  int64  // the one task it is about, or
	sources []history.Range
}

// decide takes a decision of the code. Live it adds an event, which the caller completes: added is true. On replay it
// returns the event that history has there, which must be left as it is.
func (x *execution) decide(d decision) (ev *history.Event, added bool) {
	if x.replaying {
		return x.match(&d), false
	}
	ev = x.add()
	ev.Kind, ev.Name, ev.Reason, ev.SourceEventID, ev.SourceEventIDs = d.kind, d.name, d.reason, d.source, d.sources
	return ev, true
}

// add adds an empty event to those of the turn, and gives it its id and time. An Event is large: it is filled in where it
// lies, so that no coroutine's stack must have room for one.
func (x *execution) add() *history.Event {
	n := len(x.out)
	x.out = slices.Grow(x.out, 1)[:n+1]
	x.lastID++
	x.out[n].ID, x.out[n].Time = x.lastID, x.now
	return &x.out[n]
}

func (x *execution) match(d *decision) *history.Event {
	if x.next == len(x.past) || !d.is(&x.past[x.next]) {
		x.fail(x.divergence(d.String()))
	}
	ev := &x.past[x.next]
	x.next++
	x.lastID = ev.ID
	return ev
}

// is reports whether the decision is the one in history.
func (d *decision) is(ev *history.Event) bool {
	return d.kind == ev.Kind && !ev.IsInput() && d.name == ev.Name && d.reason == ev.Reason &&
		d.source == ev.SourceEventID && slices.Equal(d.sources, ev.SourceEventIDs)
}

// divergence tells both sides of the place where the code left history.
func (x *execution) divergence(got string) error {
	e := &NondeterminismError{InstanceID: x.options.InstanceID, ExecutionID: x.options.ExecutionID, EventID: x.lastID, Got: got}
	if x.next == len(x.past) {
		e.Expected = "nothing more: it ends here"
		return e
	}
	want := &x.past[x.next]
	e.EventID = want.ID
	e.Expected = describe(want)
	if isInput(want) {
		e.Expected = "nothing more before " + e.Expected
	}
	return e
}

// isInput reports whether an event is none of the code's decisions.
func isInput(ev *history.Event) bool {
	switch ev.Kind {
	case history.OrchestrationStarted, history.TurnStarted, history.InputsParked:
		return true
	default:
		return ev.IsInput()
	}
}

// idle says what the code does when it asks for nothing.
func (x *execution) idle() string {
	if x.ended {
		return "nothing more: it has ended"
	}
	for _, c := range x.coroutines {
		if len(c.awaits) > 0 {
			return "nothing more: it waits for " + c.describeAwaits()
		}
	}
	return "nothing more"
}

func (c *coroutine) describeAwaits() string {
	const most = 3
	var names []string
	for _, t := range c.awaits[:min(len(c.awaits), most)] {
		d := decision{kind: t.kind, name: t.name}
		names = append(names, fmt.Sprintf("%s #%d", d.String(), t.id))
	}
	if n := len(c.awaits) - most; n > 0 {
		names = append(names, fmt.Sprintf("%d more", n))
	}
	return strings.Join(names, ", ")
}

// describe names an event of history as decision.String names what the code asked for.
func describe(ev *history.Event) string {
	d := decision{kind: ev.Kind, name: ev.Name, reason: ev.Reason, source: ev.SourceEventID, sources: ev.SourceEventIDs}
	return d.String()
}

// String is the decision as diagnoses show it.
func (d *decision) String() string {
	var b strings.Builder
	b.WriteString(string(d.kind))
	if d.name != "" {
		fmt.Fprintf(&b, " %q", d.name)
	}
	if d.source != 0 {
		fmt.Fprintf(&b, " of #%d", d.source)
	}
	for i, r := range d.sources {
		fmt.Fprintf(&b, "%s#%d-#%d", [...]string{" of ", ","}[min(i, 1)], r.First, r.Last)
	}
	if d.reason != "" {
		fmt.Fprintf(&b, " (%s)", d.reason)
	}
	return b.String()
}
