package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/admin"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/provider/dynamo/hubadmin"
)

// suggestedDistance is how many letters a suggestion may differ by from what was written.
const suggestedDistance = 2

// choice makes cmd a command with subcommands. An unknown subcommand is an error, where cobra prints the help and exits
// with 0.
func WithSubcommands(cmd *cobra.Command) *cobra.Command {
	cmd.SuggestionsMinimumDistance, cmd.DisableFlagsInUseLine = suggestedDistance, true
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		return fmt.Errorf("unknown command %q%s; see %s --help", args[0], suggestion(cmd.SuggestionsFor(args[0])),
			cmd.CommandPath())
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	return cmd
}

func suggestion(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return " (did you mean " + strings.Join(names, " or ") + "?)"
}

// The names of arguments in usage lines.
const (
	ArgID   = "ID"
	ArgName = "NAME"
)

// verb returns a command that opens the hub and calls run with its client.
func (c *Env) ClientCommand(
	use, short string, argument string, run func(ctx context.Context, cl *client.Client, arg string) error,
) *cobra.Command {
	return c.HubCommand(use, short, argument, func(ctx context.Context, h Hub, arg string) error {
		return run(ctx, h.Client, arg)
	})
}

// operatorVerb returns a command that opens the hub and calls run with its admin client.
func (c *Env) AdminCommand(
	use, short string, argument string, run func(ctx context.Context, a *admin.Client, arg string) error,
) *cobra.Command {
	return c.HubCommand(use, short, argument, func(ctx context.Context, h Hub, arg string) error {
		return run(ctx, h.Admin, arg)
	})
}

// hubVerb returns a command that opens the hub and calls run with its clients.
func (c *Env) HubCommand(
	use, short string, argument string, run func(ctx context.Context, h Hub, arg string) error,
) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, ValidArgsFunction: c.completeArgument(argument),
		Args: func(cmd *cobra.Command, args []string) error { return CheckArgs(cmd, args, argument) },
		RunE: func(cmd *cobra.Command, args []string) error {
			h, err := c.OpenHub(cmd.Context(), c.HubName)
			if err != nil {
				return &OpenError{err}
			}
			if argument == "" {
				return run(cmd.Context(), h, "")
			}
			return run(cmd.Context(), h, args[0])
		},
	}
}

// checkArgs requires exactly one argument if it has a name, and none otherwise.
func CheckArgs(cmd *cobra.Command, args []string, argument string) error {
	switch {
	case argument == "" && len(args) > 0:
		return fmt.Errorf("unexpected argument %q; see %s --help", args[0], cmd.CommandPath())
	case argument != "" && len(args) == 0:
		return fmt.Errorf("missing argument %s; usage: %s", argument, cmd.UseLine())
	case len(args) > 1:
		return fmt.Errorf("unexpected argument %q; see %s --help", args[1], cmd.CommandPath())
	default:
		return nil
	}
}

// pausePatience is how long pause and resume wait for Lambda.
const DeploymentTimeout = 5 * time.Minute

// adminVerb returns a command that calls run with the resources of a deployed hub.
func (c *Env) DeploymentCommand(
	use, short string, run func(ctx context.Context, h *hubadmin.Admin) error,
) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, ValidArgsFunction: c.completeArgument(""),
		Args: func(cmd *cobra.Command, args []string) error { return CheckArgs(cmd, args, "") },
		RunE: func(cmd *cobra.Command, _ []string) error {
			h, err := c.OpenDeployment(cmd.Context(), c.HubName)
			if err != nil {
				return &OpenError{err}
			}
			limited, cancel := context.WithTimeout(cmd.Context(), DeploymentTimeout)
			defer cancel()
			return run(limited, h)
		},
	}
}
