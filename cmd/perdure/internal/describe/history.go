package describe

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/cmd/perdure/internal/term"
	"github.com/perdure/perdure/history"
)

func History(s client.Status, execution string, events []history.Event) string {
	head := fmt.Sprintf("%s  %s  %s\n%s\n", term.Clean(s.InstanceID), term.Clean(strings.TrimSpace(s.Orchestration+" "+s.Version)), StatusLine(s), ExecutionHeader(execution, &events[0]))
	t := term.Table{Header: []string{">#", ">OFFSET", ">TOOK", "EVENT", term.ColumnName, "DETAIL"}}
	l := NewEventLog(events)
	for i := range events {
		t.Add(l.Row(&events[i])...)
	}
	return head + "\n" + t.String()
}

// ExecutionHeader names an execution by the event it began with.
func ExecutionHeader(execution string, start *history.Event) string {
	return fmt.Sprintf("execution %s, started %s", Execution(execution, start.Number), term.Time(start.Time))
}

// Execution returns an execution's id and, for one that another continued as, its number.
func Execution(execution string, number int64) string {
	if number > 1 {
		return fmt.Sprintf("%s (number %d)", term.Clean(execution), number)
	}
	return term.Clean(execution)
}

// Row returns an event as a row: id, offset, took, kind, name and detail.
func (l *EventLog) Row(e *history.Event) []string {
	return []string{
		strconv.FormatInt(e.ID, 10), "+" + term.Duration(e.Time.Sub(l.began)), l.took(e),
		term.Clean(string(e.Kind)), term.Excerpt(l.name(e), term.MaxName), term.Excerpt(l.Detail(e), term.MaxDetail),
	}
}
