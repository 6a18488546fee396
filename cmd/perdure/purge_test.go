package main

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/cmd/perdure/internal/cli"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/fakeprovider"
	"github.com/perdure/perdure/provider"
)

func TestPurge_runningInstance_requiresForce(t *testing.T) {
	t.Parallel()
	h := setup(t)
	for _, id := range []string{"one", "two", "over"} {
		h.mustRun("start", "hello", "--id", id)
	}
	h.Append("over", at(0, history.Event{Kind: history.OrchestrationCompleted}))
	h.wantError(cli.CodeError, "purge it with --force", "purge", "one")
	for _, args := range [][]string{
		{"purge", "over"}, {"purge", "one", "--force"}, {"purge", "two", "--force", "--json"},
	} {
		if got := h.mustRun(args...); got != "" {
			t.Errorf("%v printed %q", args, got)
		}
		h.wantError(cli.CodeError, "instance not found", args...)
	}
	h.wantError(cli.CodeError, "missing argument ID", "purge")
	h.wantError(cli.CodeError, `unexpected argument "x"`, "purge", "one", "x")
}

func TestPurge_withChildren_deletesChildren(t *testing.T) {
	t.Parallel()
	h := setup(t)
	for _, id := range []string{"parent", "child"} {
		h.mustRun("start", "hello", "--id", id)
	}
	h.SetParent("child", history.Parent{InstanceID: "parent", ExecutionID: "x1", EventID: 2})
	h.Append("parent", at(0, history.Event{Kind: history.SubOrchestrationScheduled, InstanceID: "child"}))
	h.Append("child", at(0, history.Event{Kind: history.OrchestrationCompleted}))
	h.wantError(cli.CodeError, "instance has not ended", "purge", "parent", "--with-children")
	h.Append("parent", at(0, history.Event{Kind: history.OrchestrationCompleted}))
	h.wantError(cli.CodeError, "cannot be combined with force", "purge", "parent", "--with-children", "--force")
	h.wantError(cli.CodeError, "requires an instance ID; use --parent", "purge", "--name", "hello", "--with-children",
		"--yes")
	h.mustRun("purge", "parent", "--with-children")
	for _, id := range []string{"parent", "child"} {
		h.wantError(cli.CodeError, "instance not found", "status", id)
	}
}

// damaged is a hub of instances whose history is missing or unreadable.
type damaged struct {
	*fakeprovider.Provider
	status provider.RuntimeStatus
	why    error
}

func (d damaged) ReadInstance(ctx context.Context, id string) (provider.Instance, error) {
	in, err := d.Provider.ReadInstance(ctx, id)
	in.Status = d.status
	return in, err
}

func (d damaged) ReadHistory(context.Context, string, string, int64) iter.Seq2[history.Event, error] {
	return func(yield func(history.Event, error) bool) { yield(history.Event{}, d.why) }
}

func (d damaged) ListExecutions(context.Context, string) iter.Seq2[provider.Execution, error] {
	return func(yield func(provider.Execution, error) bool) { yield(provider.Execution{}, d.why) }
}

func TestHistoryAndWhy_instanceIsBeingPurged_suggestPurge(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.mustRun("start", "hello", "--id", "one")
	h.client = client.New(damaged{h.Provider, provider.StatusDeleting, provider.ErrNotFound})
	for _, args := range [][]string{{"history", "one"}, {"history", "one", "--json"}, {"why", "one"}} {
		h.wantError(cli.CodeError, "or run perdure purge one", args...)
	}
	if got := h.mustRun("status", "one"); !strings.Contains(got, "Deleting\n") {
		t.Errorf("its status:\n%s", got)
	}
}

func TestHistoryAndWhy_corruptHistory_errorNamesFix(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.mustRun("start", "hello", "--id", "one")
	h.client = client.New(damaged{
		h.Provider, provider.StatusBlocked, fmt.Errorf("%w: item h#0000000001", provider.ErrCorrupt),
	})
	for _, args := range [][]string{{"history", "one"}, {"history", "one", "--json"}, {"why", "one"}} {
		h.wantError(cli.CodeError,
			"h#0000000001; deploy a newer build, restore the item from a backup, or delete the instance with "+
				"perdure purge --force", args...)
	}
}
