package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/httpapi"
	"github.com/perdure/perdure/internal/errdetails"
)

func statusVerb(c *command) *cobra.Command {
	var limit int
	var pending bool
	cmd := c.verb("status ID", "Show an instance's status", argID,
		func(ctx context.Context, cl *client.Client, id string) error {
			return c.status(ctx, cl, id, pending, limit)
		})
	cmd.Long = cmd.Short + `.

The status includes the tasks that the instance waits for, which are read from its history. Failure shows why
an instance is Failed or Blocked. perdure list --help explains each status. A wait for an event that the code
no longer needs is listed until the event arrives. Next names the most important step, with its command.

  Updated    time of the last change of the status or the custom status, not of attempts
  ATTEMPT    current attempt, which is due, queued or running, and the limit of the retry policy
  AGE        time since the task was scheduled
  NEXT       time until the next attempt, or until the task is due
  STATUS     status of a child, or what is known about an activity. Only the first 10 children are read, which
             costs one read each, and one more for a child that has ended.`
	cmd.Example = `  perdure status order-7
  perdure status order-7 --limit 1000 --json | jq '.pending.items[] | select(.lastError)'
  perdure status order-7 --pending=false --json | jq .customStatus`
	cmd.Flags().BoolVar(&pending, "pending", true, "list of pending tasks, which are read from the history")
	cmd.Flags().IntVar(&limit, "limit", 100, "maximum number of pending tasks, 1 to 1000")
	return cmd
}

func (c *command) status(ctx context.Context, cl *client.Client, id string, pending bool, limit int) error {
	if err := checkLimit(limit); err != nil {
		return err
	}
	s, err := cl.Status(ctx, id)
	if err != nil {
		return err
	}
	answer := httpapi.Instance{Status: s}
	if pending {
		answer.Pending, err = httpapi.ReadPending(ctx, cl, s, limit)
	}
	if c.json {
		return c.printJSON(answer)
	}
	children := readChildren(ctx, cl, answer.Pending)
	return c.print(describe(s) + describeBlocked(&s, answer.Pending) + describePending(answer.Pending, children, err) +
		describeNextSteps(c, &s, answer.Pending, children))
}

// describe returns a status as lines with labels.
func describe(s client.Status) string {
	var b labelled
	b.line("Instance", s.InstanceID)
	b.line("Orchestration", strings.TrimSpace(s.Orchestration+" "+s.Version))
	b.line("Status", standing(s))
	b.line("Execution", executionText(s.ExecutionID, s.ExecutionNumber))
	if s.Parent != nil {
		b.line("Parent", fmt.Sprintf("%s, event #%d of execution %s", s.Parent.InstanceID, s.Parent.EventID, s.Parent.ExecutionID))
	}
	b.line("Started", moment(s.CreatedAt))
	b.line("Started by", s.StartedBy)
	if !s.StartAt.IsZero() {
		b.line("Start at", moment(s.StartAt))
	}
	b.line("Updated", moment(s.UpdatedAt))
	b.line("Terminated by", s.TerminatedBy)
	b.line("Tags", tagList(s.Tags))
	b.line("Custom status", payloadText(s.CustomStatus, s.EncodedCustomStatus))
	b.line("Output", payloadText(s.Output, s.EncodedOutput))

	if p := s.Paused; p != nil {
		b.line("Paused", pausedText(p))
	}

	label := "Failure"
	for f := s.Failure; f != nil; f = f.Cause {
		for text := range strings.SplitSeq(strings.TrimRight(failureText(f), "\n"), "\n") {
			b.line(label, strings.ReplaceAll(text, "\t", "    "))
			label = ""
		}
		b.line("  details", detailsText(f))
		label = "  caused by"
	}
	return b.String()
}

// describeBlocked returns since when, and by which build, an instance is blocked, and "" for other instances. The
// builds are known if the history could be read.
func describeBlocked(s *client.Status, p *httpapi.Pending) string {
	if s.Status != client.StatusBlocked {
		return ""
	}
	var b labelled
	if p == nil || p.Pending == nil || p.Blocked == nil {
		b.line("Blocked", "since "+moment(s.UpdatedAt))
		return b.String()
	}
	text := "since " + moment(p.Blocked.Since)
	if id := p.Blocked.BuildID; id != "" {
		text += " in build " + buildText(id)
	}
	b.line("Blocked", text)
	b.line("Last turn", strings.TrimSuffix("in build "+buildText(p.Blocked.LastTurnBuildID), "in build "))
	b.line("Parked inputs", strconv.Itoa(p.Blocked.ParkedInputs))
	return b.String()
}

// payloadText returns a payload, or a description of one that cannot be decoded.
func payloadText(doc json.RawMessage, sealed *client.EncodedPayload) string {
	if sealed != nil {
		return sealedText(sealed)
	}
	return string(doc)
}

// standing returns the status and, for an instance that is over, how long it took.
func standing(s client.Status) string {
	if t := took(s); t != "" {
		return fmt.Sprintf("%s after %s", s.Status, t)
	}
	return string(s.Status)
}

// took returns how long an instance took; empty when it is not over, or that is no longer known.
func took(s client.Status) string {
	if !s.Status.Terminal() || s.Status == client.StatusDeleting {
		return ""
	}
	return span(s.UpdatedAt.Sub(s.CreatedAt))
}

// errorText is failureText, without the type of an error that has none of its own.
func errorText(f *history.Failure) string {
	if f.Type == history.TypeError && f.Message != "" {
		return f.Message
	}
	return failureText(f)
}

// failureText returns a failure in words: its type, why it was cancelled if it was, and its message if it has one. It
// omits the type if the message begins with it.
func failureText(f *history.Failure) string {
	text := f.Type
	if f.Reason == "" && strings.HasPrefix(f.Message, f.Type+" ") {
		return f.Message
	}
	if f.Reason != "" {
		text += " (" + f.Reason + ")"
	}
	if f.Message != "" {
		text += ": " + f.Message
	}
	return text
}

// detailsText returns the details of a failure, or why they are not shown; empty where there are none.
func detailsText(f *history.Failure) string {
	if s, sealed := client.EncodedPayloadOf(f.Details); sealed {
		return sealedText(&s)
	}
	switch d := errdetails.Own(f); {
	case d == nil:
		return ""
	case d.Omitted != "":
		return "omitted: " + d.Omitted
	default:
		return string(d.Doc)
	}
}

func tagList(tags map[string]string) string {
	var list []string
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		list = append(list, key+"="+tags[key])
	}
	return strings.Join(list, ", ")
}
