package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
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
no longer needs is listed until the event arrives.

  AGE        time since the task was scheduled
  NEXT       time until the next attempt, or until the task is due
  HEARTBEAT  age of the last heartbeat with details
  WORKER     what is known about the execution of the task. If an activity is not registered in the worker,
             deploy a worker that has it, or cancel it. If no worker reports for a queue, check that the
             queue has a function, that it starts, and that it may read the queue.`
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
	return c.print(describe(s) + describePending(answer.Pending, err))
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

// failureText returns a failure in words: its type, why it was cancelled if it was, and its message if it has one.
func failureText(f *history.Failure) string {
	text := f.Type
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
