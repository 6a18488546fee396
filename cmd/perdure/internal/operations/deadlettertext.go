package operations

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/perdure/perdure/admin"
	"github.com/perdure/perdure/cmd/perdure/internal/term"
	"github.com/perdure/perdure/httpapi"
)

// DeadLetterItems returns dead letters in the form of the HTTP API.
func DeadLetterItems(found []admin.DeadLetter) []httpapi.DeadLetter {
	all := make([]httpapi.DeadLetter, len(found))
	for i := range found {
		all[i] = httpapi.NewDeadLetter(&found[i])
	}
	return all
}

// DeadLetterTable returns dead letters as a table.
func DeadLetterTable(found []admin.DeadLetter) string {
	if len(found) == 0 {
		return "no dead letters found\n"
	}
	t := term.Table{Header: []string{"QUEUE", "DEAD LETTER", "SENT", "INSTANCE", "MESSAGE", "REASON"}}
	for i := range found {
		d := &found[i]
		t.Add(term.Clean(d.Queue), term.Clean(d.Record.ID), sentText(d),
			term.Excerpt(d.Subject.InstanceID, term.MaxName), term.Excerpt(messageText(d), term.MaxName),
			term.Excerpt(reasonText(d), 2*term.MaxName))
	}
	return t.String()
}

func sentText(d *admin.DeadLetter) string {
	if d.SentAt.IsZero() {
		return ""
	}
	return term.Time(d.SentAt)
}

func messageText(d *admin.DeadLetter) string {
	about := &d.Subject
	switch {
	case about.ActivityID > 0 && about.Name != "":
		return fmt.Sprintf("activity %s #%d", about.Name, about.ActivityID)
	case about.Kind == "" && about.TimerID > 0:
		return fmt.Sprintf("timer #%d", about.TimerID)
	case about.Name != "":
		return string(about.Kind) + " " + about.Name
	default:
		return string(about.Kind)
	}
}

func reasonText(d *admin.DeadLetter) string {
	if d.Reason == "" {
		return "(none: moved by SQS, the sweeper sends it again)"
	}
	return d.Reason
}

func deadLetterText(d *admin.DeadLetter) string {
	var b strings.Builder
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%-14s %s\n", name, term.OneLine(value))
		}
	}
	line("Dead letter", d.Record.ID)
	line("Queue", d.Queue)
	line("Reason", reasonText(d))
	line("Sent", sentText(d))
	line("Deliveries", strconv.Itoa(d.Record.ReceiveCount))
	line("Instance", d.Subject.InstanceID)
	line("Execution", d.Subject.ExecutionID)
	line("Message", messageText(d))

	var body bytes.Buffer
	if err := json.Indent(&body, []byte(d.Record.Body), "", "  "); err != nil {
		return b.String() + term.Clean(d.Record.Body) + "\n"
	}
	for text := range strings.Lines(body.String()) {
		b.WriteString(term.Clean(strings.TrimSuffix(text, "\n")) + "\n")
	}
	return b.String()
}
