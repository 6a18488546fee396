package journal

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/perdure/perdure/history"
)

// Decision is the part of a request of the code that must match the history on replay. The rest, such as queues and
// limits, may change.
type Decision struct {
	Kind history.Kind
	// Name is the name of the activity, the external event or the other orchestration.
	Name string
	// Label is the name of a timer. It is shown in errors, but not compared.
	Label string
	// Reason is the reason of a cancellation.
	Reason string
	// Source is the task of the decision, and Sources are the tasks if there are several.
	Source  int64
	Sources []history.Range
	// InstanceID is the ID of the other instance.
	InstanceID string
	// Input is the input of the activity or the other orchestration, or the data that is sent to another instance. It
	// is nil if there is nothing to compare.
	Input json.RawMessage
}

// inputOf returns the recorded input of a decision.
func inputOf(ev *history.Event) history.Payload {
	if ev.Kind == history.ExternalEventSent || ev.Kind == history.UpdateSent {
		return ev.Data
	}
	return ev.Input
}

// is reports whether an event of the history records the decision.
func (d *Decision) is(ev *history.Event) bool {
	return d.Kind == ev.Kind && !ev.IsInput() && d.Name == ev.Name && d.Reason == ev.Reason &&
		d.InstanceID == ev.InstanceID && d.Source == ev.SourceEventID && slices.Equal(d.Sources, ev.SourceEventIDs)
}

// Describe describes an event of the history like Decision.String.
func Describe(ev *history.Event) string {
	d := decisionOf(ev)
	return d.String()
}

func decisionOf(ev *history.Event) Decision {
	return Decision{
		Kind: ev.Kind, Name: cmp.Or(ev.Name, ev.ChangeID), Label: ev.DisplayName(), Reason: ev.Reason,
		Source: ev.SourceEventID, Sources: ev.SourceEventIDs, InstanceID: ev.InstanceID,
	}
}

// maxRanges is the number of ID ranges in a diagnosis, which must fit into a failure.
const maxRanges = 8

// String describes the decision for error messages.
func (d *Decision) String() string { return d.describe(0) }

// describe is like String. If there are too many ID ranges, it shows them from one before the first difference on. The
// first same ranges are equal on both sides of a diagnosis.
func (d *Decision) describe(same int) string {
	var b strings.Builder
	b.WriteString(string(d.Kind))
	if name := cmp.Or(d.Name, d.Label); name != "" {
		fmt.Fprintf(&b, " %q", name)
	}
	if d.InstanceID != "" {
		fmt.Fprintf(&b, " as instance %q", d.InstanceID)
	}
	if d.Source != 0 {
		fmt.Fprintf(&b, " of #%d", d.Source)
	}
	b.WriteString(showRanges(d.Sources, same))
	if d.Reason != "" {
		fmt.Fprintf(&b, " (%s)", d.Reason)
	}
	return b.String()
}

// showRanges describes ID ranges. The first same ranges are equal on the other side of the diagnosis.
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
