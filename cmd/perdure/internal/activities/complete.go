package activities

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/cmd/perdure/internal/cli"
)

func completeCommand(env *cli.Env) *cobra.Command {
	result := cli.NoInput
	cmd := env.ClientCommand("complete TOKEN", "Complete a pending attempt", argToken,
		func(ctx context.Context, cl *client.Client, from string) error {
			token, err := readToken(env, from, "--result", result)
			if err != nil {
				return err
			}
			doc, err := env.ReadInput(result)
			if err != nil {
				return err
			}
			if err := cl.CompleteActivity(ctx, token, doc); err != nil {
				return err
			}
			return printEnded(env, "completed")
		})
	cmd.Flags().StringVar(&result, "result", "null", "result of the activity: JSON, @FILE, or - for stdin")
	cmd.Long = cmd.Short + "." + aboutHolders
	cmd.Example = `  perdure complete - --result '{"approved": true}' < token`
	return cmd
}
