package instances

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/cmd/perdure/internal/cli"
	"github.com/perdure/perdure/cmd/perdure/internal/term"
	"github.com/perdure/perdure/provider/dynamo/hubadmin"
)

// paused is the --json output of pause and resume of a hub.
type paused struct {
	Mappings []hubadmin.Mapping `json:"mappings"`
	// Handled is the approximate number of messages being processed, by queue.
	Handled map[string]int `json:"handled,omitempty"`
}

// Pause returns the command pause.
func Pause(env *cli.Env) *cobra.Command {
	var yes bool
	hub := env.DeploymentCommand("pause", "Pause a hub", func(ctx context.Context, h *hubadmin.Admin) error {
		if !yes {
			fmt.Fprintf(env.Stderr, "hub %s: functions stop receiving messages until the hub is resumed\n",
				term.Clean(env.HubName))
			if err := env.Confirm(ctx, "pause"); err != nil {
				return err
			}
		}
		mappings, err := h.Pause(ctx)
		if err != nil {
			return stopped("pause", err)
		}
		handled, err := h.InFlight(ctx)
		if err != nil {
			return err
		}
		return printPaused(env, paused{mappings, handled})
	})
	cmd := orInstance(env, hub, "pause [ID]", func(ctx context.Context, cl *client.Client, id, message string) error {
		if err := cl.Pause(ctx, id, message); err != nil {
			return err
		}
		return env.PrintAccepted(id)
	})
	cmd.Short = "Pause an instance or a hub"
	cmd.Long = cmd.Short + `.

With an ID, the command pauses the instance. Its code does not run, and its inputs are parked. Activities and
sub-orchestrations continue. perdure terminate still ends the instance immediately.

Without an ID, the command pauses the hub. It disables the event source mappings of the queues and the rule of
the sweeper. Within 15 minutes, functions finish the messages that they have received. Messages and schedules
wait for at most 14 days. Timers fire late, and retention and bulk jobs wait. Polling processes and their
sweepers continue. If the command fails, repeat it.`
	cmd.Example = `  perdure pause order-7 --message "waiting for the carrier"
  perdure pause --hub staging`
	cmd.Flags().BoolVar(&yes, "yes", false, "no confirmation prompt for a hub")
	return cmd
}

// orInstance returns a command that applies to an instance if it has an argument, and otherwise to the hub.
func orInstance(
	env *cli.Env, hub *cobra.Command, use string,
	run func(ctx context.Context, cl *client.Client, id, message string) error,
) *cobra.Command {
	var message string
	cmd := env.ClientCommand(use, "", cli.ArgID, func(ctx context.Context, cl *client.Client, id string) error {
		return run(ctx, cl, id, message)
	})
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 && cmd.Flags().Changed("message") {
			return fmt.Errorf("--message requires an instance ID; see %s --help", cmd.CommandPath())
		}
		if len(args) == 0 {
			return nil
		}
		return errors.Join(cli.CheckArgs(cmd, args, cli.ArgID), onlyOfHub(cmd, "yes"), onlyOfHub(cmd, "all"))
	}
	instance := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return hub.RunE(cmd, args)
		}
		return instance(cmd, args)
	}
	cmd.Flags().StringVar(&message, "message", "", "reason, stored with the instance")
	return cmd
}

// onlyOfHub rejects a flag that applies to a hub.
func onlyOfHub(cmd *cobra.Command, flag string) error {
	if cmd.Flags().Changed(flag) {
		return fmt.Errorf("--%s applies to a hub, not to an instance; see %s --help", flag, cmd.CommandPath())
	}
	return nil
}

// stopped returns the error of a pause or resume that was interrupted.
func stopped(verb string, err error) error {
	return cli.Exitf(cli.CodeError, "%v; repeat perdure %s to continue", err, verb)
}

func printPaused(env *cli.Env, p paused) error {
	if env.JSON {
		return env.PrintJSON(p)
	}
	t := term.Table{Header: []string{"QUEUE", "FUNCTION", "MAPPING", "STATE"}}
	for _, m := range p.Mappings {
		t.Add(term.OrDash(term.Clean(m.Queue)), term.Clean(m.Function), term.Clean(m.UUID), term.Clean(m.State))
	}
	if err := env.Print(t.String()); err != nil {
		return err
	}
	var busy []string
	for _, queue := range slices.Sorted(maps.Keys(p.Handled)) {
		busy = append(busy, fmt.Sprintf("%s about %d", term.Clean(queue), p.Handled[queue]))
	}
	if len(busy) > 0 {
		fmt.Fprintf(env.Stderr, "messages still being processed: %s\n", strings.Join(busy, ", "))
	}
	return nil
}
