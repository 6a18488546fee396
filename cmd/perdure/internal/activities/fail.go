package activities

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/cmd/perdure/internal/cli"
	"github.com/perdure/perdure/httpapi"
)

func failCommand(env *cli.Env) *cobra.Command {
	var why httpapi.ExternalError
	details := ""
	cmd := env.ClientCommand("fail TOKEN", "Fail a pending attempt", argToken,
		func(ctx context.Context, cl *client.Client, from string) error {
			if why.Message == "" {
				return errors.New("--message is required")
			}
			token, err := readToken(env, from, "--details", details)
			if err != nil {
				return err
			}
			if details != "" {
				if why.Details, err = env.ReadInput(details); err != nil {
					return err
				}
			}
			if err := cl.FailActivity(ctx, token, &why); err != nil {
				return err
			}
			return printEnded(env, "failed")
		})
	flags := cmd.Flags()
	flags.StringVar(&why.Message, "message", "", "error message (required)")
	flags.StringVar(&why.Type, "type", "", "error type, for orchestrations and retry policies")
	flags.BoolVar(&why.Permanent, "non-retryable", false, "error without further attempts")
	flags.StringVar(&details, "details", "", "error details, up to 4 KiB: JSON, @FILE, or - for stdin")
	cli.CompleteFlag[string](cmd, "message")
	cli.CompleteFlag[string](cmd, "type")
	cmd.Long = cmd.Short + `.

The retry policy of the activity decides whether another attempt follows. That attempt has a new token.` + aboutHolders
	cmd.Example = `  perdure fail - --type Declined --message 'no funds' --details '{"code": 51}' --non-retryable < token`
	return cmd
}
