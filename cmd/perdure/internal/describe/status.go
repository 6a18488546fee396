// Package describe formats instances, their histories and their pending tasks as text for a terminal.
package describe

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/cmd/perdure/internal/term"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/httpapi"
)

// Pause returns the time, the caller and the message of a pause.
func Pause(p *history.Pause) string {
	text := "since " + term.Time(p.At)
	if p.By != "" {
		text += " by " + p.By
	}
	if p.Message != "" {
		text += fmt.Sprintf(": %q", p.Message)
	}
	return text
}

// Note returns the time, the caller and the text of a note.
func Note(n client.Note) string {
	text := term.Time(n.At)
	if n.By != "" {
		text += " by " + n.By
	}
	return fmt.Sprintf("%s: %q", text, n.Text)
}

// Status returns a status as lines with labels.
func Status(s client.Status) string {
	var b term.Labels
	b.Line("Instance", s.InstanceID)
	b.Line("Orchestration", strings.TrimSpace(s.Orchestration+" "+s.Version))
	b.Line("Status", StatusLine(s))
	b.Line("Execution", Execution(s.ExecutionID, s.ExecutionNumber))
	if s.Parent != nil {
		p := s.Parent
		b.Line("Parent", fmt.Sprintf("%s, event #%d of execution %s", p.InstanceID, p.EventID, p.ExecutionID))
	}
	b.Line("Started", term.Time(s.CreatedAt))
	b.Line("Started by", s.StartedBy)
	if !s.StartAt.IsZero() {
		b.Line("Start at", term.Time(s.StartAt))
	}
	b.Line("Updated", term.Time(s.UpdatedAt))
	b.Line("Terminated by", s.TerminatedBy)
	b.Line("Tags", tagList(s.Tags))
	b.Line("Custom status", payloadText(s.CustomStatus, s.EncodedCustomStatus))
	b.Line("Output", payloadText(s.Output, s.EncodedOutput))

	if p := s.Paused; p != nil {
		b.Line("Paused", Pause(p))
	}
	for _, n := range s.Notes {
		b.Line("Note", Note(n))
	}

	label := "Failure"
	for f := s.Failure; f != nil; f = f.Cause {
		for text := range strings.SplitSeq(strings.TrimRight(Failure(f), "\n"), "\n") {
			b.Line(label, strings.ReplaceAll(text, "\t", "    "))
			label = ""
		}
		b.Line("  details", detailsText(f))
		label = "  caused by"
	}
	return b.String()
}

// Blocked returns the time and the build that blocked an instance, or "" for other instances. The builds are known only
// if the history could be read.
func Blocked(s *client.Status, p *httpapi.Pending) string {
	if s.Status != client.StatusBlocked {
		return ""
	}
	var b term.Labels
	if p == nil || p.Pending == nil || p.Blocked == nil {
		b.Line("Blocked", "since "+term.Time(s.UpdatedAt))
		return b.String()
	}
	text := "since " + term.Time(p.Blocked.Since)
	if id := p.Blocked.BuildID; id != "" {
		text += " in build " + term.BuildID(id)
	}
	b.Line("Blocked", text)
	b.Line("Last turn", strings.TrimSuffix("in build "+term.BuildID(p.Blocked.LastTurnBuildID), "in build "))
	b.Line("Parked inputs", strconv.Itoa(p.Blocked.ParkedInputs))
	return b.String()
}

// payloadText returns a payload, or a description of a payload that cannot be decoded.
func payloadText(doc json.RawMessage, sealed *client.EncodedPayload) string {
	if sealed != nil {
		return EncodedPayload(sealed)
	}
	return string(doc)
}

// StatusLine returns the status of an instance, and its duration if it has ended.
func StatusLine(s client.Status) string {
	if t := Took(s); t != "" {
		return fmt.Sprintf("%s after %s", s.Status, t)
	}
	return string(s.Status)
}

// Took returns the duration of an instance, or "" if the instance has not ended or is being deleted.
func Took(s client.Status) string {
	if !s.Status.Terminal() || s.Status == client.StatusDeleting {
		return ""
	}
	return term.Duration(s.UpdatedAt.Sub(s.CreatedAt))
}

func tagList(tags map[string]string) string {
	var list []string
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		list = append(list, key+"="+tags[key])
	}
	return strings.Join(list, ", ")
}
