package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/client"
)

const (
	// completions is how many instances a shell offers: the newest.
	completions = 50
	// completionPatience is how long a user who pressed Tab waits at most.
	completionPatience = 3 * time.Second
)

// complete returns the completion of a verb's argument: the ids of instances, or nothing. An argument is never a file
// name.
func (c *command) complete(argument string) cobra.CompletionFunc {
	if argument != argID {
		return cobra.NoFileCompletions
	}
	return func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ids, err := c.instanceIDs(cmd.Context())
		if err != nil {
			fmt.Fprintln(c.err, oneLine(advise(err, c.hub)))
			return nil, cobra.ShellCompDirectiveError
		}
		return ids, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	}
}

func (c *command) instanceIDs(ctx context.Context) ([]cobra.Completion, error) {
	ctx, cancel := context.WithTimeout(ctx, completionPatience)
	defer cancel()
	h, err := c.open(ctx, c.hub)
	if err != nil {
		return nil, &openError{err}
	}
	page, err := h.client.ListPage(ctx, client.ListQuery{}, client.Paging{Limit: completions})
	if err != nil {
		return nil, err
	}
	var ids []cobra.Completion
	for _, s := range page.Items {
		if clean(s.InstanceID) == s.InstanceID { // an id that a terminal does not show cannot be typed either
			ids = append(ids, cobra.CompletionWithDesc(s.InstanceID, excerpt(s.Orchestration, longestName)+", "+string(s.Status)))
		}
	}
	return ids, nil
}

// completeWith registers a flag's completion: one of some words, or nothing.
func completeWith[T ~string](cmd *cobra.Command, flag string, words ...T) {
	choices := make([]cobra.Completion, len(words))
	for i, w := range words {
		choices[i] = string(w)
	}
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(choices, cobra.ShellCompDirectiveNoFileComp)) // the flag exists
}
