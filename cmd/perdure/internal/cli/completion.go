package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/cmd/perdure/internal/term"
)

const (
	// completions is how many instances a shell offers: the newest.
	maxCompletions = 50
	// completionPatience is how long a user who pressed Tab waits at most.
	completionTimeout = 3 * time.Second
)

// complete returns the completion of a verb's argument: the ids of instances, or nothing. An argument is never a file
// name.
func (c *Env) completeArgument(argument string) cobra.CompletionFunc {
	if argument != ArgID {
		return cobra.NoFileCompletions
	}
	return func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ids, err := c.instanceIDs(cmd.Context())
		if err != nil {
			fmt.Fprintln(c.Stderr, term.OneLine(ErrorText(err, c.HubName)))
			return nil, cobra.ShellCompDirectiveError
		}
		return ids, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	}
}

func (c *Env) instanceIDs(ctx context.Context) ([]cobra.Completion, error) {
	ctx, cancel := context.WithTimeout(ctx, completionTimeout)
	defer cancel()
	h, err := c.OpenHub(ctx, c.HubName)
	if err != nil {
		return nil, &OpenError{err}
	}
	page, err := h.Client.ListPage(ctx, client.ListQuery{}, client.Paging{Limit: maxCompletions})
	if err != nil {
		return nil, err
	}
	var ids []cobra.Completion
	for _, s := range page.Items {
		if term.Clean(s.InstanceID) == s.InstanceID { // an id that a terminal does not show cannot be typed either
			ids = append(ids, cobra.CompletionWithDesc(s.InstanceID, term.Excerpt(s.Orchestration, term.MaxName)+", "+string(s.Status)))
		}
	}
	return ids, nil
}

// completeWith registers a flag's completion: one of some words, or nothing.
func CompleteFlag[T ~string](cmd *cobra.Command, flag string, words ...T) {
	choices := make([]cobra.Completion, len(words))
	for i, w := range words {
		choices[i] = string(w)
	}
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(choices, cobra.ShellCompDirectiveNoFileComp)) // the flag exists
}
