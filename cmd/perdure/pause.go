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

// paused is what pause and resume print with --json.
type paused struct {
	Mappings []hubadmin.Mapping `json:"mappings"`
	// Handled is about how many messages of each queue functions are still busy with.
	Handled map[string]int `json:"handled,omitempty"`
}

// pausePatience is how long pause and resume wait for Lambda.
const pausePatience = 5 * time.Minute

func pauseVerb(c *command) *cobra.Command {
	var yes bool
	hub := adminVerb(c, "pause", "Stop a hub's functions from taking messages", func(ctx context.Context, h *hubadmin.Hub) error {
		if !yes {
			fmt.Fprintf(c.err, "hub %s: no function takes messages of its queues until it is resumed.\n", clean(c.hub))
			if !c.confirmed("pause") {
				return errNotConfirmed
			}
		}
		mappings, err := h.Pause(ctx)
		if err != nil {
			return stopped("pause", err)
		}
		handled, err := h.Handled(ctx)
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
	cmd.Short = "Have an instance stand still, or a hub's functions take no messages"
	cmd.Long = cmd.Short + `.

With an ID it is that instance. Its code is not run until it is resumed, and what arrives for it is kept
in its history, so that nothing waits in a queue: events, outcomes, timers, a cancel. Activities that are
scheduled go on, with their retries and time limits, and so do its sub-orchestrations. Continue-as-new does not
end the pause; terminate ends the instance at once. perdure status shows who paused it, when and why, and
perdure list --status Paused all that are.

Without one it is the hub. It disables the event source mappings of the hub's queues and the rule that wakes its watch, and waits
until they are. Which those were is written down in the hub's table, so that resume enables these alone.
Should it die half way, repeat it.

Meanwhile nothing is lost: starts and messages are accepted and wait in their queues, schedules fire
into them, for 14 days. Timers are late by the pause. Functions go on with what they have taken, for
15 minutes at most: how much that is, is printed. What polls is not stopped, nor is the watch that such
a process keeps. The watch of the functions stands still: nothing is purged by its retention, and jobs
wait.`
	cmd.Example = `  perdure pause order-7 --message "the carrier asks to wait"
  perdure pause --hub staging`
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask, where it is a hub")
	return cmd
}

func resumeVerb(c *command) *cobra.Command {
	var all bool
	hub := adminVerb(c, "resume", "Let a paused hub's functions take messages again", func(ctx context.Context, h *hubadmin.Hub) error {
		mappings, err := h.Resume(ctx, all)
		if errors.Is(err, provider.ErrNotFound) {
			return &exit{exitError, fmt.Sprintf("hub %q was not paused by perdure pause, or its table was restored since: --all enables every mapping of its queues", c.hub)}
		}
		if pausing, ok := errors.AsType[*hubadmin.PausingError](err); ok {
			return &exit{exitError, fmt.Sprintf("%v. What is paused by now is enabled; if that pause has died nothing is left to do, and otherwise repeat perdure resume then", pausing)}
		}
		if missing, ok := errors.AsType[*hubadmin.MissingError](err); ok {
			return &exit{exitError, fmt.Sprintf("%v. The others are enabled; --all enables every mapping of the hub's queues", missing)}
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
	cmd.Short = "Let a paused instance, or a paused hub's functions, go on"
	cmd.Long = cmd.Short + `.

With an ID it is that instance: its code sees what has arrived meanwhile, in its order. One that is not
paused is left as it is, and told.

Without one it is the hub. It enables the event source mappings and the rule that pause has disabled, and waits until they are. It names those
that it leaves disabled, and fails where some that pause has disabled are not there any more.`
	cmd.Example = `  perdure resume order-7
  perdure resume --hub staging`
	cmd.Flags().BoolVar(&all, "all", false, "of a hub: enable every mapping of its queues and the watch, whoever has disabled it")
	return cmd
}

// orInstance makes a command that is about an instance where it has an argument, and about the hub where it has none.
func orInstance(c *command, hub *cobra.Command, use string, run func(ctx context.Context, cl *client.Client, id, message string) error) *cobra.Command {
	var message string
	cmd := c.verb(use, "", argID, func(ctx context.Context, cl *client.Client, id string) error { return run(ctx, cl, id, message) })
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 && cmd.Flags().Changed("message") {
			return fmt.Errorf("ID is missing: --message is for an instance, and %s without one is about the hub", cmd.CommandPath())
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
	cmd.Flags().StringVar(&message, "message", "", "of an instance: why, for those who find it so")
	return cmd
}

// onlyOfHub refuses a flag that is for a hub.
func onlyOfHub(cmd *cobra.Command, flag string) error {
	if cmd.Flags().Changed(flag) {
		return fmt.Errorf("--%s is for a hub, and an ID names an instance: see %s --help", flag, cmd.CommandPath())
	}
	return nil
}

// resumed says what the resume of an instance has come to. That it is not paused is no failure: it goes on, as it was asked to.
func resumed(c *command, id string, err error) error {
	notPaused := errors.Is(err, client.ErrNotPaused)
	switch {
	case err != nil && !notPaused:
		return err
	case c.json:
		return c.printJSON(httpapi.Accepted{InstanceID: id, NotPaused: notPaused})
	case notPaused:
		fmt.Fprintf(c.err, "%s does not show that it is paused: if a pause is on its way that ends, and else nothing changes\n", clean(id))
	}
	return nil
}

// pausedText says since when an instance is paused, who has paused it and why.
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

// adminVerb makes a command of a function that takes the deployed hub.
func adminVerb(c *command, use, short string, run func(ctx context.Context, h *hubadmin.Hub) error) *cobra.Command {
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

// warnDisabled names the mappings that a resume has left disabled.
func warnDisabled(c *command, mappings []hubadmin.Mapping) {
	var left []string
	for _, m := range mappings {
		if m.State == "Disabled" {
			left = append(left, fmt.Sprintf("%s of %s", clean(m.UUID), clean(m.Function)))
		}
	}
	if len(left) > 0 {
		fmt.Fprintf(c.err, "left disabled, since perdure pause has not disabled them: %s (--all enables them)\n", strings.Join(left, ", "))
	}
}

// stopped says what to do about a pause or resume that did not come to its end.
func stopped(verb string, err error) error {
	return &exit{exitError, fmt.Sprintf("%v: repeat perdure %s, which goes on from there", err, verb)}
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
		fmt.Fprintf(c.err, "messages that are still being handled: %s\n", strings.Join(busy, ", "))
	}
	return nil
}
