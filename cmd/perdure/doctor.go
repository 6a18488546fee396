package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/provider/dynamo/hubadmin"
)

// The exit codes of doctor, beside 0 and 1.
const (
	exitWrong  = 2
	exitUnread = 3
)

// examined is what doctor prints with --json.
type examined struct {
	Findings []hubadmin.Finding `json:"findings"`
}

func doctorVerb(c *command) *cobra.Command {
	cmd := adminVerb(c, "doctor", "Look whether a hub is deployed right", func(ctx context.Context, h *hubadmin.Hub) error {
		found := h.Examine(ctx)
		if c.json {
			if err := c.printJSON(examined{append([]hubadmin.Finding{}, found...)}); err != nil {
				return err
			}
		} else if err := c.print(findingsText(found)); err != nil {
			return err
		}
		return verdictOf(found)
	})
	cmd.Long = cmd.Short + `: its table, queues, dead letters, mappings and the rule of its watch;
of its functions the configuration, limits and roles; the schedule group; whether the build that is
deployed has the orchestrations of living instances (the latest 1000), and work a worker; and this
machine's clock.

Of each thing that is wrong it says what it leads to, and what to do. It changes nothing. What the
caller may not read it says, and goes on.

Exits 0 when nothing is wrong, 2 when something is, 3 when nothing is as far as could be read,
and 1 when the hub cannot be found.`
	cmd.Example = "  perdure doctor --hub staging\n  perdure doctor --json"
	return cmd
}

func verdictOf(found []hubadmin.Finding) error {
	code := exitCompleted
	for _, f := range found {
		if !f.Unread {
			return &exit{code: exitWrong}
		}
		code = exitUnread
	}
	if code == exitCompleted {
		return nil
	}
	return &exit{code: code}
}

func findingsText(found []hubadmin.Finding) string {
	if len(found) == 0 {
		return "nothing is wrong\n"
	}
	var b strings.Builder
	for _, f := range found {
		if f.Unread {
			fmt.Fprintf(&b, "? %s could not be read: %s\n  do: %s\n", oneLine(f.Of), oneLine(f.What), f.Do)
			continue
		}
		fmt.Fprintf(&b, "! %s: %s\n  leads to: %s\n  do: %s\n", oneLine(f.Of), oneLine(f.What), f.LeadsTo, oneLine(f.Do))
	}
	return b.String()
}
