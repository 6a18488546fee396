package instances

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/cmd/perdure/internal/cli"
)

// Annotate returns the command annotate.
func Annotate(env *cli.Env) *cobra.Command {
	var note string
	cmd := env.ClientCommand("annotate ID NOTE", "Add a note to an instance", cli.ArgID,
		func(ctx context.Context, cl *client.Client, id string) error {
			return cl.Annotate(ctx, id, note)
		})
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) != 2 {
			return fmt.Errorf("expected 2 arguments; usage: %s", cmd.UseLine())
		}
		note = args[1]
		return nil
	}
	cmd.Long = cmd.Short + `, which may have ended.

perdure status and perdure history show the newest 20 notes, until the instance is purged.`
	cmd.Example = `  perdure annotate order-7 "charged twice; refund is ticket 4711"`
	return cmd
}
