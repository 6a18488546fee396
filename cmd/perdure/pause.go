package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/httpapi"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/hubadmin"
)

// paused is the --json output of pause and resume.
type paused struct {
	Mappings []hubadmin.Mapping `json:"mappings"`
	// Handled is the approximate number of messages being processed, by queue.
	Handled map[string]int `json:"handled,omitempty"`
}

// pausePatience is how long pause and resume wait for Lambda.
const pausePatience = 5 * time.Minute

func pauseVerb(c *command) *cobra.Command {
	var yes bool
	hub := adminVerb(c, "pause", "Pause a hub", func(ctx context.Context, h *hubadmin.Admin) error {
		if !yes {
			fmt.Fprintf(c.err, "hub %s: its functions stop receiving messages until it is resumed\n", clean(c.hub))
			if !c.confirmed("pause") {
				return errNotConfirmed
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
		return printPaused(c, paused{mappings, handled})
	})
	cmd := orInstance(c, hub, "pause [ID]", func(ctx context.Context, cl *client.Client, id, message string) error {
		if err := cl.Pause(ctx, id, message); err != nil {
			return err
		}
		return c.accepted(id)
	})
	cmd.Short = "Pause an instance or a hub"
	cmd.Long = cmd.Short + `.

With an ID, the code of the instance does not run until it is resumed, and its inputs are parked. Its activities
and sub-orchestrations continue, and perdure terminate ends it immediately.

Without an ID, the event source mappings of the hub's queues and the rule of its sweeper are disabled. Messages
and schedules wait for up to 14 days, timers fire late, and retention and bulk jobs wait. Functions finish the
messages that they have received, within 15 minutes. Polling processes and their sweepers are not paused. If the
command fails, repeat it.`
	cmd.Example = `  perdure pause order-7 --message "the carrier asks to wait"
  perdure pause --hub staging`
	cmd.Flags().BoolVar(&yes, "yes", false, "no confirmation prompt for a hub")
	return cmd
}

func resumeVerb(c *command) *cobra.Command {
	var all bool
	hub := adminVerb(c, "resume", "Resume a hub", func(ctx context.Context, h *hubadmin.Admin) error {
		mappings, err := h.Resume(ctx, all)
		if errors.Is(err, provider.ErrNotFound) {
			return &exit{
				exitError,
				fmt.Sprintf("hub %q was not paused by perdure pause, or its table was restored since; "+
					"use --all to enable all mappings of its queues", c.hub),
			}
		}
		if pausing, ok := errors.AsType[*hubadmin.PauseInProgressError](err); ok {
			return &exit{exitError, fmt.Sprintf("%v; what it had disabled is enabled again; "+
				"if that pause is still running, repeat perdure resume when it has ended", pausing)}
		}
		if missing, ok := errors.AsType[*hubadmin.MissingTriggersError](err); ok {
			return &exit{exitError, fmt.Sprintf("%v; the others are enabled; "+
				"use --all to enable all mappings of the hub's queues", missing)}
		}
		if err != nil {
			return stopped("resume", err)
		}
		if err := printPaused(c, paused{Mappings: mappings}); err != nil {
			return err
		}
		warnDisabled(c, mappings)
		return nil
	})
	cmd := orInstance(c, hub, "resume [ID]", func(ctx context.Context, cl *client.Client, id, message string) error {
		return resumed(c, id, cl.Resume(ctx, id, message))
	})
	cmd.Short = "Resume an instance or a hub"
	cmd.Long = cmd.Short + `.

With an ID, the command resumes the instance. Its code receives the parked inputs in the order of their
arrival. If the instance is not paused, the command says so and succeeds.

Without an ID, the command resumes the hub. It enables the mappings and the rule that pause disabled, and
waits until they are enabled. It lists the ones that it leaves disabled, and fails if some that pause
disabled no longer exist.`
	cmd.Example = `  perdure resume order-7
  perdure resume --hub staging`
	cmd.Flags().BoolVar(&all, "all", false,
		"all mappings of a hub, even if pause did not disable them, and the sweeper's rule")
	return cmd
}

// orInstance returns a command that applies to an instance if it has an argument, and otherwise to the hub.
func orInstance(c *command, hub *cobra.Command, use string, run func(ctx context.Context, cl *client.Client, id, message string) error) *cobra.Command {
	var message string
	cmd := c.verb(use, "", argID, func(ctx context.Context, cl *client.Client, id string) error { return run(ctx, cl, id, message) })
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 && cmd.Flags().Changed("message") {
			return fmt.Errorf("--message requires an instance ID; see %s --help", cmd.CommandPath())
		}
		if len(args) == 0 {
			return nil
		}
		return errors.Join(checkArgs(cmd, args, argID), onlyOfHub(cmd, "yes"), onlyOfHub(cmd, "all"))
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

// resumed prints the result of resuming an instance. An instance that is not paused is not an error.
func resumed(c *command, id string, err error) error {
	notPaused := errors.Is(err, client.ErrNotPaused)
	switch {
	case err != nil && !notPaused:
		return err
	case c.json:
		return c.printJSON(httpapi.AcceptedResponse{InstanceID: id, NotPaused: notPaused})
	case notPaused:
		fmt.Fprintf(c.err, "%s is not recorded as paused; a pause in flight is resumed\n", clean(id))
	}
	return nil
}

// pausedText returns when an instance was paused, by whom, and why.
func pausedText(p *history.Pause) string {
	text := "since " + moment(p.At)
	if p.By != "" {
		text += " by " + p.By
	}
	if p.Message != "" {
		text += fmt.Sprintf(": %q", p.Message)
	}
	return text
}

// adminVerb returns a command that calls run with the resources of a deployed hub.
func adminVerb(c *command, use, short string, run func(ctx context.Context, h *hubadmin.Admin) error) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, ValidArgsFunction: c.complete(""),
		Args: func(cmd *cobra.Command, args []string) error { return checkArgs(cmd, args, "") },
		RunE: func(cmd *cobra.Command, _ []string) error {
			h, err := c.admin(cmd.Context(), c.hub)
			if err != nil {
				return &openError{err}
			}
			limited, cancel := context.WithTimeout(cmd.Context(), pausePatience)
			defer cancel()
			return run(limited, h)
		},
	}
}

// warnDisabled prints the mappings that a resume left disabled.
func warnDisabled(c *command, mappings []hubadmin.Mapping) {
	var left []string
	for _, m := range mappings {
		if m.State == "Disabled" {
			left = append(left, fmt.Sprintf("%s of %s", clean(m.UUID), clean(m.Function)))
		}
	}
	if len(left) > 0 {
		fmt.Fprintf(c.err, "left disabled, because perdure pause did not disable them: %s (use --all to enable them)\n",
			strings.Join(left, ", "))
	}
}

// stopped returns the error of a pause or resume that was interrupted.
func stopped(verb string, err error) error {
	return &exit{exitError, fmt.Sprintf("%v; repeat perdure %s to continue", err, verb)}
}

func printPaused(c *command, p paused) error {
	if c.json {
		return c.printJSON(p)
	}
	t := table{header: []string{"QUEUE", "FUNCTION", "MAPPING", "STATE"}}
	for _, m := range p.Mappings {
		t.add(dash(clean(m.Queue)), clean(m.Function), clean(m.UUID), clean(m.State))
	}
	if err := c.print(t.String()); err != nil {
		return err
	}
	var busy []string
	for _, queue := range slices.Sorted(maps.Keys(p.Handled)) {
		busy = append(busy, fmt.Sprintf("%s about %d", clean(queue), p.Handled[queue]))
	}
	if len(busy) > 0 {
		fmt.Fprintf(c.err, "messages still being processed: %s\n", strings.Join(busy, ", "))
	}
	return nil
}
