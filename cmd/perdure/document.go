package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
)

// printDocument prints the history that perduretest.Replay reads: of one execution, or of all.
func (c *command) printDocument(ctx context.Context, cl *client.Client, s client.Status, execution string) error {
	ids := []string{execution}
	if execution == "" {
		ids = nil
		for x, err := range cl.Executions(ctx, s.InstanceID) {
			if errors.Is(err, client.ErrNotFound) {
				return noExecution(s, s.ExecutionID)
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
	return c.printJSON(doc)
}

// noExecution returns why there is no history to read: an instance that is being purged loses its history first.
func noExecution(s client.Status, execution string) error {
	id := s.InstanceID
	if s.Status == client.StatusDeleting {
		return &exit{exitError, fmt.Sprintf("instance %s is being purged: its history is gone. perdure purge %s finishes it, or the hub does within minutes", id, id)}
	}
	return &exit{exitError, fmt.Sprintf("instance %s has no execution %s: perdure executions %s shows those it has", id, execution, id)}
}

// readEvents reads an execution of an instance that is known to exist.
func readEvents(ctx context.Context, cl *client.Client, s client.Status, execution string) ([]history.Event, error) {
	var events []history.Event
	for e, err := range cl.History(ctx, s.InstanceID, client.WithExecution(execution)) {
		if errors.Is(err, client.ErrNotFound) {
			return nil, noExecution(s, execution)
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
