package instances

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/cmd/perdure/internal/cli"
	"github.com/perdure/perdure/history"
)

// printDocument prints a history document of one execution, or of all executions if execution is empty.
func printDocument(ctx context.Context, env *cli.Env, cl *client.Client, s client.Status, execution string) error {
	ids := []string{execution}
	if execution == "" {
		ids = nil
		for x, err := range cl.Executions(ctx, s.InstanceID) {
			if errors.Is(err, client.ErrNotFound) {
				return NoExecution(s, s.ExecutionID)
			}
			if err != nil {
				return err
			}
			ids = append(ids, x.ExecutionID)
		}
		slices.Reverse(ids) // the oldest first
	}

	executions := make([]history.DocumentExecution, len(ids))
	for i, id := range ids {
		events, err := readEvents(ctx, cl, s, id)
		if err != nil {
			return err
		}
		executions[i] = history.DocumentExecution{ExecutionID: id, Number: events[0].Number, Events: events}
	}
	doc, err := history.NewDocument(s.InstanceID, s.Orchestration, executions...)
	if err != nil {
		return err
	}
	return env.PrintJSON(doc)
}

// NoExecution returns the error for a missing history. While an instance is being purged, its history may already be
// deleted.
func NoExecution(s client.Status, execution string) error {
	id := s.InstanceID
	if s.Status == client.StatusDeleting {
		return cli.Exitf(cli.CodeError, "instance %s is being purged and its history is deleted; "+
			"the hub finishes the purge within minutes, or run perdure purge %s", id, id)
	}
	return cli.Exitf(cli.CodeError, "instance %s has no execution %s; see perdure executions %s", id, execution,
		id)
}

// readEvents returns the events of an execution. The instance exists, so ErrNotFound means a missing history.
func readEvents(ctx context.Context, cl *client.Client, s client.Status, execution string) ([]history.Event, error) {
	var events []history.Event
	for e, err := range cl.History(ctx, s.InstanceID, client.WithExecutionID(execution)) {
		if errors.Is(err, client.ErrNotFound) {
			return nil, NoExecution(s, execution)
		}
		if err != nil {
			return nil, err
		}
		events = append(events, e)
	}
	if len(events) == 0 {
		return nil, fmt.Errorf("instance %q: execution %s has no events", s.InstanceID, execution)
	}
	return events, nil
}
