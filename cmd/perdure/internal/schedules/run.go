package schedules

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/cmd/perdure/internal/cli"
	"github.com/perdure/perdure/cmd/perdure/internal/term"
	"github.com/perdure/perdure/httpapi"
)

func runCommand(env *cli.Env) *cobra.Command {
	cmd := env.ClientCommand("run SCHEDULE", "Start a run now", argSchedule,
		func(ctx context.Context, cl *client.Client, id string) error {
			run, err := cl.Schedules().Trigger(ctx, id)
			if err != nil {
				return scheduleError(env, err)
			}
			return env.PrintResult(httpapi.AcceptedResponse{InstanceID: run}, term.Clean(run)+"\n")
		})
	cmd.Long = cmd.Short + `.

The command prints the ID of the run. The run starts after the current run, or as the overlap policy of the
schedule decides, even if the schedule is paused. If the instance of the schedule is paused with perdure
pause schedule:ID, the run starts when the instance is resumed.`
	cmd.Example = "  perdure schedule run nightly"
	return cmd
}
