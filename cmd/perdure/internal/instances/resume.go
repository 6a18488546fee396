package instances

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/cmd/perdure/internal/cli"
	"github.com/perdure/perdure/cmd/perdure/internal/term"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/hubadmin"
)

// Resume returns the command resume.
func Resume(env *cli.Env) *cobra.Command {
	var all bool
	hub := env.DeploymentCommand("resume", "Resume a hub", func(ctx context.Context, h *hubadmin.Admin) error {
		mappings, err := h.Resume(ctx, all)
		if errors.Is(err, provider.ErrNotFound) {
			return cli.Exitf(cli.CodeError, "hub %q was not paused by perdure pause, or its table was restored since; "+
				"use --all to enable all mappings of its queues", env.HubName)
		}
		if pausing, ok := errors.AsType[*hubadmin.PauseInProgressError](err); ok {
			return cli.Exitf(cli.CodeError, "%v; the mappings that the pause disabled are enabled; "+
				"if the pause is still running, repeat perdure resume after it ends", pausing)
		}
		if missing, ok := errors.AsType[*hubadmin.MissingTriggersError](err); ok {
			return cli.Exitf(cli.CodeError, "%v; the other mappings are enabled; "+
				"use --all to enable all mappings of the hub's queues", missing)
		}
		if err != nil {
			return stopped("resume", err)
		}
		if err := printPaused(env, paused{Mappings: mappings}); err != nil {
			return err
		}
		warnDisabled(env, mappings)
		return nil
	})
	cmd := orInstance(env, hub, "resume [ID]", func(ctx context.Context, cl *client.Client, id, message string) error {
		return env.PrintResumed(id, cl.Resume(ctx, id, message))
	})
	cmd.Short = "Resume an instance or a hub"
	cmd.Long = cmd.Short + `.

With an ID, the command resumes the instance. Its code receives the parked inputs in the order of their
arrival. If the instance is not paused, the command reports this on stderr and succeeds.

Without an ID, the command resumes the hub. It enables the mappings and the rule that pause disabled, and
waits until they are enabled. It lists the mappings that remain disabled. It fails if a mapping that pause
disabled no longer exists.`
	cmd.Example = `  perdure resume order-7
  perdure resume --hub staging`
	cmd.Flags().BoolVar(&all, "all", false,
		"all mappings of a hub, even if pause did not disable them, and the sweeper's rule")
	return cmd
}

// warnDisabled prints the mappings that a resume left disabled.
func warnDisabled(env *cli.Env, mappings []hubadmin.Mapping) {
	var left []string
	for _, m := range mappings {
		if m.State == "Disabled" {
			left = append(left, fmt.Sprintf("%s of %s", term.Clean(m.UUID), term.Clean(m.Function)))
		}
	}
	if len(left) > 0 {
		fmt.Fprintf(env.Stderr, "left disabled, because perdure pause did not disable them: %s "+
			"(use --all to enable them)\n", strings.Join(left, ", "))
	}
}
