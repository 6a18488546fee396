package schedules

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/cmd/perdure/internal/cli"
	"github.com/perdure/perdure/schedule"
)

func resumeCommand(env *cli.Env) *cobra.Command {
	cmd := messageCommand(env, "resume SCHEDULE", "Resume a schedule",
		func(ctx context.Context, cl *client.Client, id, message string) error {
			err := cl.Schedules().Resume(ctx, id, message)
			return scheduleError(env, env.PrintResumed(schedule.InstanceID(id), err))
		})
	cmd.Long = cmd.Short + `.

The catch-up policy of the schedule decides which missed times run now. If the instance of the schedule is
paused with perdure pause schedule:ID, the command also resumes the instance.`
	cmd.Example = "  perdure schedule resume nightly"
	return cmd
}
