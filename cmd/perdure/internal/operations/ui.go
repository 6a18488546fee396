package operations

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/cmd/perdure/internal/cli"
	"github.com/perdure/perdure/cmd/perdure/internal/webui"
)

// UI returns the command ui.
func UI(env *cli.Env) *cobra.Command {
	var port int
	cmd := &cobra.Command{
		Use: "ui", Short: "Serve the web UI",
		Long: `Serve the web UI until the command is interrupted.

The server listens on 127.0.0.1 only, and the browser gets no credentials. The command calls AWS with your
credentials or, with --api, calls an API endpoint. Every user of this
machine who can connect to the port has your permissions in the web UI. Requests from other web pages, and
with other host names, are rejected.`,
		Example: `  perdure ui
  perdure ui --hub staging --port 8090
  perdure ui --api https://a1b2c3d4.execute-api.eu-west-1.amazonaws.com`,
		Args: func(cmd *cobra.Command, args []string) error { return cli.CheckArgs(cmd, args, "") },
		RunE: func(cmd *cobra.Command, _ []string) error {
			if port < 0 || port > 65535 {
				return fmt.Errorf("--port must be 0 to 65535, is %d; see %s --help", port, cmd.CommandPath())
			}
			h, err := webui.API(cmd.Context(), env, env.API())
			if err != nil {
				return err
			}
			return webui.Serve(cmd.Context(), env, port, h)
		},
	}
	cmd.Flags().IntVar(&port, "port", 0, "port to listen on (default: a free port)")
	return cmd
}
