package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
)

func historyVerb(c *command) *cobra.Command {
	var execution string
	cmd := c.verb("history ID", "Show an instance's events", argID,
		func(ctx context.Context, cl *client.Client, id string) error {
			return c.history(ctx, cl, id, execution)
		})
	cmd.Long = cmd.Short + `.

OFFSET is the time since the start of the execution. TOOK is the time between the scheduling and the end of
an activity or timer, or … if it has not ended. The command shows the current execution unless --execution
selects another one. With --json it prints a document (perdure.history/1) of all executions, the oldest
first, which a unit test can replay.`
	cmd.Example = `  perdure history order-7
  perdure history order-7 --execution 01K0XR9B6W0T6J3V5Q8N2M4P7S
  perdure history order-7 --json > testdata/order-7.json`
	cmd.Flags().StringVar(&execution, "execution", "", "execution ID (default: the current one; with --json, all)")
	return cmd
}

func (c *command) history(ctx context.Context, cl *client.Client, id, execution string) error {
	s, err := cl.Status(ctx, id)
	if err != nil {
		return err
	}
	if c.json {
		return c.printDocument(ctx, cl, s, execution)
	}
	if execution == "" {
		execution = s.ExecutionID
	}
	events, err := readEvents(ctx, cl, s, execution)
	if err != nil {
		return err
	}
	return c.print(describeHistory(s, execution, events))
}

func describeHistory(s client.Status, execution string, events []history.Event) string {
	head := fmt.Sprintf("%s  %s  %s\n%s\n", clean(s.InstanceID), clean(strings.TrimSpace(s.Orchestration+" "+s.Version)), standing(s), executionHead(execution, &events[0]))
	t := table{header: []string{">#", ">OFFSET", ">TOOK", "EVENT", columnName, "DETAIL"}}
	l := newLog(events)
	for i := range events {
		t.add(l.cells(&events[i])...)
	}
	return head + "\n" + t.String()
}

// executionHead names an execution by the event it began with.
func executionHead(execution string, start *history.Event) string {
	return fmt.Sprintf("execution %s, started %s", executionText(execution, start.Number), moment(start.Time))
}

// executionText returns an execution's id and, for one that another continued as, its number.
func executionText(execution string, number int64) string {
	if number > 1 {
		return fmt.Sprintf("%s (number %d)", clean(execution), number)
	}
	return clean(execution)
}

// cells returns an event as a row: id, offset, took, kind, name and detail.
func (l *eventLog) cells(e *history.Event) []string {
	return []string{
		strconv.FormatInt(e.ID, 10), "+" + span(e.Time.Sub(l.began)), l.took(e),
		clean(string(e.Kind)), excerpt(l.name(e), longestName), excerpt(l.detail(e), longestDetail),
	}
}
