package client_test

import (
	"context"
	"errors"
	"iter"
	"testing"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
)

// torn is a hub in which an instance is purged while its history is read, so that events are missing.
type torn struct {
	client.Backend

	gone func(e *history.Event) bool
}

func (h torn) ReadHistory(
	ctx context.Context, instanceID, executionID string, after int64,
) iter.Seq2[history.Event, error] {
	return func(yield func(history.Event, error) bool) {
		for e, err := range h.Backend.ReadHistory(ctx, instanceID, executionID, after) {
			if err == nil && h.gone(&e) && e.ID > 1 {
				continue
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// If an instance is purged while Restart reads the history, Restart does not use the remaining events.
func TestRestart_fromEventOfIncompleteHistory_returnsErrNotFound(t *testing.T) {
	t.Parallel()
	for name, gone := range map[string]func(*history.Event) bool{
		"first segment is missing": func(e *history.Event) bool { return e.ID < 3 },
		"last segment is missing":  func(e *history.Event) bool { return e.ID > 4 },
	} {
		c, p := setup(t)
		if _, err := c.Start(t.Context(), "hello", 1, client.WithInstanceID("one"),
			client.WithVersion("1.0.0")); err != nil {
			t.Fatal(err)
		}
		for _, kind := range []history.Kind{
			history.TurnStarted, history.TurnStarted, history.TurnStarted, history.OrchestrationCompleted,
		} {
			p.Append("one", history.Event{Kind: kind, Time: began})
		}
		left := connect(torn{p, gone})
		if id, err := left.Restart(t.Context(), "one", client.FromEvent(3)); !errors.Is(err, client.ErrNotFound) {
			t.Errorf("%s: got new instance %q, error %v", name, id, err)
		}
		if id, err := c.Restart(t.Context(), "one", client.FromEvent(3)); err != nil || id == "" {
			t.Errorf("undamaged history: got %q, error %v", id, err)
		}
	}
}
