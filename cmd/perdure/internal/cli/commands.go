package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/admin"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/provider/dynamo/hubadmin"
)

// suggestedDistance is the maximum number of letters by which a suggestion differs from the unknown command.
const suggestedDistance = 2

// WithSubcommands makes cmd a command with subcommands. An unknown subcommand is an error. By default, cobra would
// print the help and exit with code 0.
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

// Names of arguments in usage lines.
const (
	ArgID   = "ID"
	ArgName = "NAME"
)

// ClientCommand returns a command that opens the hub and calls run with its client.
func (env *Env) ClientCommand(
	use, short string, argument string, run func(ctx context.Context, cl *client.Client, arg string) error,
) *cobra.Command {
	return env.HubCommand(use, short, argument, func(ctx context.Context, h Hub, arg string) error {
		return run(ctx, h.Client, arg)
	})
}

// AdminCommand returns a command that opens the hub and calls run with its admin client.
func (env *Env) AdminCommand(
	use, short string, argument string, run func(ctx context.Context, a *admin.Client, arg string) error,
) *cobra.Command {
	return env.HubCommand(use, short, argument, func(ctx context.Context, h Hub, arg string) error {
		return run(ctx, h.Admin, arg)
	})
}

// HubCommand returns a command that opens the hub and calls run with its clients.
func (env *Env) HubCommand(
	use, short string, argument string, run func(ctx context.Context, h Hub, arg string) error,
) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, ValidArgsFunction: env.completeArgument(argument),
		Args: func(cmd *cobra.Command, args []string) error { return CheckArgs(cmd, args, argument) },
		RunE: func(cmd *cobra.Command, args []string) error {
			h, err := env.Open(cmd.Context())
			if err != nil {
				return err
			}
			var arg string
			if len(args) > 0 {
				arg = args[0]
			}
			return run(cmd.Context(), h, arg)
		},
	}
}

// CheckArgs requires exactly one argument if argument is not empty, and no arguments otherwise.
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

// MoreArgs returns a check that requires one argument and the arguments for into. The check stores the latter. The last
// optional arguments may be missing.
func MoreArgs(optional int, into ...*string) cobra.PositionalArgs {
	most := 1 + len(into)
	least := most - optional
	expected := strconv.Itoa(most)
	if least < most {
		expected = fmt.Sprintf("%d or %d", least, most)
	}
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < least || len(args) > most {
			return fmt.Errorf("expected %s arguments; usage: %s", expected, cmd.UseLine())
		}
		for i, arg := range args[1:] {
			*into[i] = arg
		}
		return nil
	}
}

// DeploymentTimeout is the time limit of a command that reads or changes a deployment.
const DeploymentTimeout = 5 * time.Minute

// DeploymentCommand returns a command that calls run with the AWS resources of the hub.
func (env *Env) DeploymentCommand(
	use, short string, run func(ctx context.Context, h *hubadmin.Admin) error,
) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, ValidArgsFunction: env.completeArgument(""),
		Args: func(cmd *cobra.Command, args []string) error { return CheckArgs(cmd, args, "") },
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := env.RequireDirect(cmd, "it uses the hub's AWS resources"); err != nil {
				return err
			}
			h, err := env.OpenDeployment(cmd.Context(), env.HubName)
			if err != nil {
				return &OpenError{err}
			}
			limited, cancel := context.WithTimeout(cmd.Context(), DeploymentTimeout)
			defer cancel()
			return run(limited, h)
		},
	}
}
