package describe

import (
	"fmt"
	"strings"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/cmd/perdure/internal/term"
	"github.com/perdure/perdure/history"
)

// History returns an execution as a table of its events.
func History(s client.Status, execution string, events []history.Event) string {
	var out strings.Builder
	out.WriteString(InstanceHeader(s) + ExecutionHeader(execution, &events[0]) + "\n")
	for _, n := range s.Notes {
		out.WriteString("note, " + term.Clean(Note(n)) + "\n")
	}
	out.WriteString("\n" + EventTable(events))
	return out.String()
}

// EventTable returns consecutive events as a table. Offsets are relative to the first one. A name or a duration that
// depends on an earlier event is missing.
func EventTable(events []history.Event) string {
	t := term.Table{Header: []string{">#", ">OFFSET", ">TOOK", "EVENT", term.ColumnName, "DETAIL"}}
	l := NewEventLog(events)
	for i := range events {
		t.Add(l.Row(&events[i])...)
	}
	return t.String()
}

// InstanceHeader returns a line with the ID, the orchestration and the status of an instance.
func InstanceHeader(s client.Status) string {
	orchestration := strings.TrimSpace(s.Orchestration + " " + s.Version)
	return fmt.Sprintf("%s  %s  %s\n", term.Clean(s.InstanceID), term.Clean(orchestration), StatusLine(s))
}

// ExecutionHeader returns the ID and the start time of an execution.
func ExecutionHeader(execution string, start *history.Event) string {
	return fmt.Sprintf("execution %s, started %s", Execution(execution, start.Number), term.Time(start.Time))
}

// Execution returns the ID of an execution, and its number if it is not the first one.
func Execution(execution string, number int64) string {
	if number > 1 {
		return fmt.Sprintf("%s (number %d)", term.Clean(execution), number)
	}
	return term.Clean(execution)
}

// Row returns an event as a table row: ID, offset, duration, kind, name and detail.
func (l *EventLog) Row(e *history.Event) []string {
	return []string{
		term.Number(e.ID), "+" + term.Duration(e.Time.Sub(l.start)), l.took(e),
		term.Clean(string(e.Kind)), term.Excerpt(l.name(e), term.MaxName), term.Excerpt(l.Detail(e), term.MaxDetail),
	}
}
