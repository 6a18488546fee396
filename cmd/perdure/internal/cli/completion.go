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
	// maxCompletions is the maximum number of instances that a completion suggests. It suggests the newest instances.
	maxCompletions = 50
	// completionTimeout limits the wait after the user has pressed Tab.
	completionTimeout = 3 * time.Second
)

// completeArgument returns the completion of an argument. It suggests instance IDs for ArgID, and nothing for other
// arguments. It never suggests file names.
func (env *Env) completeArgument(argument string) cobra.CompletionFunc {
	if argument != ArgID {
		return cobra.NoFileCompletions
	}
	return func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ids, err := env.instanceIDs(cmd.Context())
		if err != nil {
			fmt.Fprintln(env.Stderr, term.OneLine(env.ErrorText(err)))
			return nil, cobra.ShellCompDirectiveError
		}
		return ids, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	}
}

func (env *Env) instanceIDs(ctx context.Context) ([]cobra.Completion, error) {
	ctx, cancel := context.WithTimeout(ctx, completionTimeout)
	defer cancel()
	h, err := env.Open(ctx)
	if err != nil {
		return nil, err
	}
	page, err := h.Client.ListPage(ctx, client.ListQuery{}, client.Paging{Limit: maxCompletions})
	if err != nil {
		return nil, err
	}
	var ids []cobra.Completion
	for _, s := range page.Items {
		if term.Clean(s.InstanceID) != s.InstanceID {
			continue // an ID that a terminal cannot show cannot be typed either
		}
		description := term.Excerpt(s.Orchestration, term.MaxName) + ", " + string(s.Status)
		ids = append(ids, cobra.CompletionWithDesc(s.InstanceID, description))
	}
	return ids, nil
}

// CompleteFlag registers the words that complete the value of a flag. Without words, the completion suggests nothing.
func CompleteFlag[T ~string](cmd *cobra.Command, flag string, words ...T) {
	choices := make([]cobra.Completion, len(words))
	for i, w := range words {
		choices[i] = string(w)
	}
	complete := cobra.FixedCompletions(choices, cobra.ShellCompDirectiveNoFileComp)
	_ = cmd.RegisterFlagCompletionFunc(flag, complete) // fails only for an unknown flag
}
