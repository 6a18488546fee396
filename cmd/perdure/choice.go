package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// suggestedDistance is how many letters a suggestion may differ by from what was written.
const suggestedDistance = 2

// choice makes cmd a command with subcommands. An unknown subcommand is an error, where cobra prints the help and exits
// with 0.
func choice(cmd *cobra.Command) *cobra.Command {
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
