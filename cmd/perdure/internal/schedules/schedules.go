// Package schedules contains the commands that manage schedules.
package schedules

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/cmd/perdure/internal/cli"
	"github.com/perdure/perdure/schedule"
)

// argSchedule is the argument for a schedule ID. It has no shell completion.
const argSchedule = "SCHEDULE"

// New returns the command schedule.
func New(env *cli.Env) *cobra.Command {
	cmd := cli.WithSubcommands(&cobra.Command{
		Use: "schedule", Short: "Manage schedules",
		Long: `Manage schedules, which start orchestrations by a rate or cron expression.

A schedule is the instance schedule:ID, so perdure history and perdure status support schedules. The runs of
a schedule are the instances ID@TIME.`,
		Example: `  perdure schedule put nightly --orchestration report --expression "0 2 * * *" --time-zone Asia/Tokyo
  perdure schedule list
  perdure schedule pause nightly --message "for the migration"
  perdure list --parent schedule:nightly`,
	})
	cmd.AddCommand(putCommand(env), listCommand(env), showCommand(env), runCommand(env), backfillCommand(env),
		deleteCommand(env), pauseCommand(env), resumeCommand(env))
	return cmd
}

// messageCommand returns a command with a --message flag.
func messageCommand(
	env *cli.Env, use, short string, send func(ctx context.Context, cl *client.Client, id, message string) error,
) *cobra.Command {
	var message string
	cmd := env.ClientCommand(use, short, argSchedule, func(ctx context.Context, cl *client.Client, id string) error {
		return send(ctx, cl, id, message)
	})
	cmd.Flags().StringVar(&message, "message", "", "reason, stored with the schedule")
	return cmd
}

// printAccepted prints the result of a change of a schedule, or returns its error.
func printAccepted(env *cli.Env, id string, err error) error {
	if err != nil {
		return scheduleError(env, err)
	}
	return env.PrintAccepted(schedule.InstanceID(id))
}

// scheduleError replaces errors about an instance by errors about a schedule.
func scheduleError(env *cli.Env, err error) error {
	switch {
	case errors.Is(err, client.ErrUnknownOrchestration):
		return cli.Exitf(cli.CodeError, "no build deployed to %s supports schedules; "+
			"deploy functions of this release", env.Place())
	case errors.Is(err, client.ErrNotFound):
		return cli.Exitf(cli.CodeError, "schedule not found in %s; "+
			"run perdure schedule list to see its schedules", env.Place())
	case errors.Is(err, client.ErrEnded):
		return &cli.ExitError{
			Code: cli.CodeError,
			Text: "schedule has ended; see perdure schedule show, or create it again with perdure schedule put",
		}
	default:
		return err
	}
}
