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

func (c *command) historyVerb() *cobra.Command {
	cmd := c.verb("history ID", "Show the events of an instance, one a line", "ID", c.history)
	cmd.Long = cmd.Short + ".\n\nOFFSET is the time since the start; TOOK, at the end of an activity or timer, the time since it was scheduled, and … at the\n" +
		"beginning of one that is not over. With --json it is a document (perdure.history/1) that can be replayed in a unit test."
	return cmd
}

func (c *command) history(ctx context.Context, cl *client.Client, id string) error {
	s, err := cl.Status(ctx, id)
	if err != nil {
		return err
	}
	var events []history.Event
	for e, err := range cl.History(ctx, id, client.WithExecution(s.ExecutionID)) {
		if err != nil {
			return err
		}
		events = append(events, e)
	}
	if c.json {
		return c.printDocument(s, events)
	}
	return c.print(describeHistory(s, events))
}

func describeHistory(s client.Status, events []history.Event) string {
	head := fmt.Sprintf("%s  %s  %s\nexecution %s, started %s\n\n", clean(s.InstanceID), clean(strings.TrimSpace(s.Orchestration+" "+s.Version)),
		standing(s), clean(s.ExecutionID), moment(s.CreatedAt))
	t := table{header: []string{">#", ">OFFSET", ">TOOK", "EVENT", "NAME", "DETAIL"}}
	l := newLog(events)
	for i := range events {
		e := &events[i]
		t.add(strconv.FormatInt(e.ID, 10), "+"+span(e.Time.Sub(events[0].Time)), l.took(e), clean(string(e.Kind)), excerpt(l.name(e), longestName), excerpt(l.detail(e), longestDetail))
	}
	return head + t.String()
}
