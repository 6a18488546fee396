package schedules

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/cmd/perdure/internal/cli"
)

func deleteCommand(env *cli.Env) *cobra.Command {
	cmd := env.ClientCommand("delete SCHEDULE", "Delete a schedule", argSchedule,
		func(ctx context.Context, cl *client.Client, id string) error {
			return printAccepted(env, id, cl.Schedules().Delete(ctx, id))
		})
	cmd.Long = cmd.Short + `.

The schedule ends after its current run, at least a minute later, so that a concurrent put cannot restore it.
To cancel the run as well, use perdure cancel schedule:ID. A schedule that has already ended is purged.`
	cmd.Example = "  perdure schedule delete nightly"
	return cmd
}
