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

Its catch-up policy decides which missed times run now. The command also resumes the instance of the schedule
if it is paused with perdure pause schedule:ID.`
	cmd.Example = "  perdure schedule resume nightly"
	return cmd
}
