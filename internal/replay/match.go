package replay

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/perdure/perdure/history"
)

// decision is what replay compares: what the code asked for and with what input, but not what else it said about it.
type decision struct {
	kind    history.Kind
	name    string // of the activity, the external event or the other orchestration
	reason  string // of a cancellation
	source  int64  // the one task it is about, or
	sources []history.Range
	// instanceID is that of the other orchestration.
	instanceID string
	// input is what the activity or the other orchestration is given; nil where there is none to compare.
	input json.RawMessage
}

// decide takes a decision of the code. Live it adds an event, which the caller completes: added is true. On replay it
// returns the event that history has there, which must be left as it is.
func (x *execution) decide(d decision) (ev *history.Event, added bool) {
	ev, added, err := x.tryDecide(&d)
	if err != nil {
		x.fail(err)
	}
	return ev, added
}

// tryDecide is decide for the engine's own decisions, which no coroutine takes.
func (x *execution) tryDecide(d *decision) (ev *history.Event, added bool, err error) {
	if x.replaying {
		ev, err = x.match(d)
		return ev, false, err
	}
	ev = x.add()
	ev.Kind, ev.Name, ev.Reason, ev.SourceEventID, ev.SourceEventIDs = d.kind, d.name, d.reason, d.source, d.sources
	ev.InstanceID = d.instanceID
	return ev, true, nil
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

func (x *execution) match(d *decision) (*history.Event, error) {
	if x.next == len(x.past) || !d.is(&x.past[x.next]) {
		return nil, x.divergenceOf(d)
	}
	ev := &x.past[x.next]
	if d.input != nil && !sameInput(ev.Input, d.input) {
		if err := x.differ(d, ev); err != nil {
			return nil, err
		}
	}
	x.next++
	x.lastID = ev.ID
	return ev, nil
}

// is reports whether the decision is the one in history.
func (d *decision) is(ev *history.Event) bool {
	return d.kind == ev.Kind && !ev.IsInput() && d.name == ev.Name && d.reason == ev.Reason &&
		d.instanceID == ev.InstanceID && d.source == ev.SourceEventID && slices.Equal(d.sources, ev.SourceEventIDs)
}

// divergenceOf is divergence. Of long lists of ids both sides tell where they part.
func (x *execution) divergenceOf(d *decision) error {
	if x.next == len(x.past) {
		return x.divergence(d.String())
	}
	want := decisionOf(&x.past[x.next])
	same := 0
	for same < min(len(d.sources), len(want.sources)) && d.sources[same] == want.sources[same] {
		same++
	}
	e, _ := x.divergence(d.describe(same)).(*NondeterminismError) //nolint:errorlint // just made
	if len(want.sources) > maxRanges {
		e.Expected = want.describe(same)
	}
	return e
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
	var awaits []*Task
	for _, c := range x.coroutines {
		awaits = append(awaits, c.awaits...)
	}
	if len(awaits) == 0 {
		return "nothing more"
	}
	return "nothing more: it waits for " + describeTasks(awaits)
}

func describeTasks(tasks []*Task) string {
	const most = 3
	var names []string
	for _, t := range tasks[:min(len(tasks), most)] {
		names = append(names, t.String())
	}
	if n := len(tasks) - most; n > 0 {
		names = append(names, fmt.Sprintf("%d more", n))
	}
	return strings.Join(names, ", ")
}

// describe names an event of history as decision.String names what the code asked for.
func describe(ev *history.Event) string {
	d := decisionOf(ev)
	return d.String()
}

func decisionOf(ev *history.Event) decision {
	return decision{kind: ev.Kind, name: ev.Name, reason: ev.Reason, source: ev.SourceEventID, sources: ev.SourceEventIDs, instanceID: ev.InstanceID}
}

// maxRanges is how many runs of ids a diagnosis shows: it must fit where failures do.
const maxRanges = 8

// String is the decision as diagnoses show it.
func (d *decision) String() string { return d.describe(0) }

// describe is String. Of ids that are too many, those after the first that are the same elsewhere are shown, with one before them.
func (d *decision) describe(same int) string {
	var b strings.Builder
	b.WriteString(string(d.kind))
	if d.name != "" {
		fmt.Fprintf(&b, " %q", d.name)
	}
	if d.instanceID != "" {
		fmt.Fprintf(&b, " as instance %q", d.instanceID)
	}
	if d.source != 0 {
		fmt.Fprintf(&b, " of #%d", d.source)
	}
	b.WriteString(showRanges(d.sources, same))
	if d.reason != "" {
		fmt.Fprintf(&b, " (%s)", d.reason)
	}
	return b.String()
}

func showRanges(rs []history.Range, same int) string {
	if len(rs) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString(" of ")
	from, to := 0, len(rs)
	if to > maxRanges {
		from = max(0, min(same, to-1)-1)
		to = min(to, from+maxRanges)
	}
	if from > 0 {
		fmt.Fprintf(&b, "%d runs,", from)
	}
	for i, r := range rs[from:to] {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "#%d-#%d", r.First, r.Last)
	}
	if n := len(rs) - to; n > 0 {
		fmt.Fprintf(&b, ",%d runs more", n)
	}
	return b.String()
}
