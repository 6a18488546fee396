package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/client"
)

func sweepVerb(c *command) *cobra.Command {
	cmd := c.verb("sweep", "Delete large payloads that nobody refers to", "", func(ctx context.Context, cl *client.Client, _ string) error {
		pages, deleted := 0, 0
		for n, err := range cl.SweepPayloads(ctx) {
			if deleted += n; err != nil {
				return fmt.Errorf("%w (%d were deleted; begin again)", err, deleted)
			}
			if pages++; c.attended && pages%10 == 0 {
				fmt.Fprintf(c.err, "%d pages, %d deleted\n", pages, deleted)
			}
		}
		if c.json {
			return c.printJSON(map[string]int{"deleted": deleted})
		}
		return c.print(fmt.Sprintf("%d payloads deleted\n", deleted))
	})
	cmd.Example = `  perdure sweep
  perdure sweep --json`
	cmd.Long = cmd.Short + `.

What an instance refers to goes with it, by a purge or a retention. This is for the little that is
left in the hub's bucket otherwise: of starts whose process died before the instance was there, and
of what was stored late, after a purge. It looks at every key of the bucket that is two days old, a
thousand a call, and reads one item for each execution. Once a month is plenty.`
	return cmd
}
