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
	cmd := adminVerb(c, "pause", "Stop a hub's functions from taking messages", func(ctx context.Context, h *hubadmin.Hub) error {
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
	cmd.Long = cmd.Short + `.

It disables the event source mappings of the hub's queues and the rule that wakes its watch, and waits
until they are. Which those were is written down in the hub's table, so that resume enables these alone.
Should it die half way, repeat it.

Meanwhile nothing is lost: starts and messages are accepted and wait in their queues, schedules fire
into them, for 14 days. Timers are late by the pause. Functions go on with what they have taken, for
15 minutes at most: how much that is, is printed. What polls is not stopped, nor is the watch that such
a process keeps. The watch of the functions stands still: nothing is purged by its retention, and jobs
wait.`
	cmd.Example = "  perdure pause --hub staging"
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

func resumeVerb(c *command) *cobra.Command {
	var all bool
	cmd := adminVerb(c, "resume", "Let a paused hub's functions take messages again", func(ctx context.Context, h *hubadmin.Hub) error {
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
	cmd.Long = cmd.Short + `.

It enables the event source mappings and the rule that pause has disabled, and waits until they are. It names those
that it leaves disabled, and fails where some that pause has disabled are not there any more.`
	cmd.Example = "  perdure resume --hub staging"
	cmd.Flags().BoolVar(&all, "all", false, "enable every mapping of the hub's queues and the watch, whoever has disabled it")
	return cmd
}

// adminVerb makes a command of a function that takes the deployed hub. It takes no argument: one would name an instance.
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
