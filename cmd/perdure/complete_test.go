package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/cmd/perdure/internal/cli"
)

func TestCompletion_idsAndStatuses_areSuggested(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.mustRun("start", "fulfil", "--id", "order-7")
	h.mustRun("start", "hello", "--id", "bad\u2028id")
	h.Append("order-7", completed("1"))
	complete := func(args ...string) string { return h.mustRun(append([]string{"__complete"}, args...)...) }
	for _, verb := range []string{
		"status", "wait", "watch", "history", "executions", "raise", "cancel", "terminate", "purge",
	} {
		if got := complete(verb, ""); got != "order-7\tfulfil, Completed\n:36\n" {
			t.Errorf("%s: %q", verb, got)
		}
		if got := complete(verb, "order-7", ""); got != ":4\n" {
			t.Errorf("%s: after the id %q", verb, got)
		}
	}
	if got := complete("start", ""); got != ":4\n" {
		t.Errorf("start: %q", got)
	}
	if got := complete("list", "--status", ""); !strings.HasPrefix(got, "Pending\nRunning\n") {
		t.Errorf("list --status: %q", got)
	}
	for _, status := range []string{"Cancelling", "Cancelled"} {
		if got := complete("list", "--status", ""); !strings.Contains(got, "\n"+status+"\n") {
			t.Errorf("list --status: no %s in %q", status, got)
		}
	}
	if got := complete("cancel", "order-7", "--activity", ""); got != ":4\n" {
		t.Errorf("cancel --activity: %q", got)
	}
	h.openError = errors.New("no credentials")
	if got := complete("status", ""); got != ":1\n" || !strings.Contains(h.err.String(), "check AWS credentials") {
		t.Errorf("without a hub: %q, %s", got, h.err.String())
	}
}

// Each command has an example, and the commands and flags of the examples exist.
func TestCommands_examples_areValid(t *testing.T) {
	t.Parallel()
	env := &cli.Env{Getenv: func(string) string { return "" }}
	verbs := append(newRoot(env).Commands(), newRoot(env))
	for _, v := range verbs {
		if v.Name() == "help" || v.Name() == "completion" {
			continue
		}
		if !strings.Contains(v.Example, "  perdure") {
			t.Errorf("%s has no example", v.CommandPath())
		}
		for example := range strings.SplitSeq(v.Example, "\n") {
			tryExample(t, newRoot(env), example)
		}
	}
}

func tryExample(t *testing.T, root *cobra.Command, example string) {
	t.Helper()
	words := strings.Fields(example)
	if len(words) < 2 || words[0] != "perdure" {
		return
	}
	verb, rest, err := root.Find(words[1:])
	if err == nil {
		err = verb.ParseFlags(rest)
	}
	if err != nil || verb == root {
		t.Errorf("%s: %v", example, err)
	}
}
