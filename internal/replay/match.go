package replay

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/perdure/perdure/history"
)

// decision is the part of what the code asked for that must match history on replay. The rest, such as queues and limits, may change.
type decision struct {
	kind    history.Kind
	name    string          // of the activity, the external event or the other orchestration; shown, of the change
	label   string          // of a timer: shown, and not compared
	reason  string          // of a cancellation
	source  int64           // the task it is about, if that is one
	sources []history.Range // the tasks, if they are several
	// instanceID is that of the other orchestration.
	instanceID string
	// input is that of the activity or the other orchestration, or the data of an event for another instance; nil where
	// there is none to compare.
	input json.RawMessage
}

// match returns the event that history has next, if it is the decision, and moves behind it.
func (c *cursor) match(d *decision) (*history.Event, error) {
	ev := c.next()
	if ev == nil || !d.is(ev) {
		return nil, c.divergenceOf(d)
	}

	if d.input != nil {
		same, err := c.sameInput(ev, d.input)
		if err == nil && !same {
			err = c.differ(d, ev)
		}
		if err != nil {
			return nil, err
		}
	}

	c.pass()
	return ev, nil
}

// inputOf is what a decision gives to whatever it is about.
func inputOf(ev *history.Event) history.Payload {
	if ev.Kind == history.ExternalEventSent || ev.Kind == history.UpdateSent {
		return ev.Data
	}
	return ev.Input
}

// is reports whether the decision is the one that an event of history records.
func (d *decision) is(ev *history.Event) bool {
	return d.kind == ev.Kind && !ev.IsInput() && d.name == ev.Name && d.reason == ev.Reason &&
		d.instanceID == ev.InstanceID && d.source == ev.SourceEventID && slices.Equal(d.sources, ev.SourceEventIDs)
}

// divergence is the error for code that asks for something, or for nothing, where history has something else next.
func (c *cursor) divergence(got string) *NondeterminismError {
	want := c.next()
	if want == nil {
		return c.options.nondeterminism(c.lastID, "nothing more: it ends here", got)
	}

	expected := describe(want)
	if isInput(want) {
		expected = "nothing more before " + expected
	}
	return c.options.nondeterminism(want.ID, expected, got)
}

// divergenceOf is the divergence of a decision. Long lists of ids are shown from where the two sides part.
func (c *cursor) divergenceOf(d *decision) *NondeterminismError {
	ev := c.next()
	if ev == nil {
		return c.divergence(d.String())
	}

	want := decisionOf(ev)
	same := 0
	for same < min(len(d.sources), len(want.sources)) && d.sources[same] == want.sources[same] {
		same++
	}

	e := c.divergence(d.describe(same))
	if len(want.sources) > maxRanges {
		e.Expected = want.describe(same)
	}
	return e
}

// isInput reports whether an event is no decision, neither of the code nor of the engine.
func isInput(ev *history.Event) bool {
	switch ev.Kind {
	case history.OrchestrationStarted, history.TurnStarted, history.InputsParked:
		return true
	default:
		return ev.IsInput()
	}
}

// describeTasks shows the first tasks of a list.
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

// describe shows an event of history as decision.String shows what the code asked for.
func describe(ev *history.Event) string {
	d := decisionOf(ev)
	return d.String()
}

func decisionOf(ev *history.Event) decision {
	return decision{kind: ev.Kind, name: cmp.Or(ev.Name, ev.ChangeID), label: ev.DisplayName(), reason: ev.Reason, source: ev.SourceEventID, sources: ev.SourceEventIDs, instanceID: ev.InstanceID}
}

// maxRanges is how many runs of ids a diagnosis shows: it must fit into a failure.
const maxRanges = 8

// String describes the decision for error messages.
func (d *decision) String() string { return d.describe(0) }

// describe is String. Of too many runs of ids it shows those from where the two sides of a diagnosis part, and the one before: the first same runs
// are equal.
func (d *decision) describe(same int) string {
	var b strings.Builder
	b.WriteString(string(d.kind))
	if name := cmp.Or(d.name, d.label); name != "" {
		fmt.Fprintf(&b, " %q", name)
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

// showRanges shows runs of ids; the first same of them are equal on the other side.
func showRanges(rs []history.Range, same int) string {
	if len(rs) == 0 {
		return ""
	}

	from, to := 0, len(rs)
	if to > maxRanges {
		from = max(0, min(same, to-1)-1)
		to = min(to, from+maxRanges)
	}

	var b strings.Builder
	b.WriteString(" of ")
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
