package schedules

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/cmd/perdure/internal/cli"
)

func pauseCommand(env *cli.Env) *cobra.Command {
	cmd := messageCommand(env, "pause SCHEDULE", "Pause a schedule",
		func(ctx context.Context, cl *client.Client, id, message string) error {
			return printAccepted(env, id, cl.Schedules().Pause(ctx, id, message))
		})
	cmd.Long = cmd.Short + `.

A paused schedule starts no runs at its times. A run in progress continues, and perdure schedule run can
start another run. If the instance of the schedule is paused, the pause takes effect when the instance is
resumed.`
	cmd.Example = `  perdure schedule pause nightly --message "for the migration"`
	return cmd
}
