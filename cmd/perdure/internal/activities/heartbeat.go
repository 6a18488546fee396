package activities

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/cmd/perdure/internal/cli"
	"github.com/perdure/perdure/cmd/perdure/internal/term"
	"github.com/perdure/perdure/httpapi"
)

func heartbeatCommand(env *cli.Env) *cobra.Command {
	details := ""
	cmd := env.ClientCommand("heartbeat TOKEN", "Send a heartbeat for an attempt", argToken,
		func(ctx context.Context, cl *client.Client, from string) error {
			token, err := readToken(env, from, "--details", details)
			if err != nil {
				return err
			}
			var given any
			if details != "" {
				if given, err = env.ReadInput(details); err != nil {
					return err
				}
			}
			cancel, err := cl.HeartbeatActivity(ctx, token, given)
			switch {
			case err != nil:
				return err
			case env.JSON:
				return env.PrintJSON(httpapi.NewHeartbeatResponse(cancel))
			case cancel.Requested:
				why := strings.TrimSpace(cancel.Reason + " " + cancel.Message)
				return env.Print(fmt.Sprintf("cancelled: %s\n", term.Clean(why)))
			default:
				return env.Print("continue\n")
			}
		})
	cmd.Flags().StringVar(&details, "details", "",
		"progress for the next attempt: JSON, @FILE, or - for stdin (default: last details)")
	cmd.Long = cmd.Short + `.

The command prints "continue", or "cancelled" and the reason. After a cancellation, stop the work and complete
or fail the attempt.` + aboutHolders
	cmd.Example = `  perdure heartbeat - --details '{"page": 7}' < token`
	return cmd
}
