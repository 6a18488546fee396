package cancellation

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/tests/scenarios/internal/kit"
)

// removeFile removes a file.
func removeFile(file string) kit.Check {
	return func(context.Context, *client.Client, client.Status) error { return os.Remove(file) }
}

// cancelledBecauseBefore is CancelledBecause for the first execution.
func cancelledBecauseBefore(name, reason string) kit.Check {
	return func(ctx context.Context, c *client.Client, s client.Status) error {
		first, err := kit.FirstExecution(ctx, c, s.InstanceID)
		if err != nil {
			return err
		}
		return kit.CancelledBecauseIn(ctx, c, s, first, name, reason)
	}
}

// outcomesKnown checks that the outcome of each cancelled activity with this name is known, and that none was
// abandoned.
func outcomesKnown(name string) kit.Check {
	return func(ctx context.Context, c *client.Client, s client.Status) error {
		return outcomesKnownIn(ctx, c, s.InstanceID, "", name)
	}
}

// outcomesKnownBefore is outcomesKnown for the first execution.
func outcomesKnownBefore(name string) kit.Check {
	return func(ctx context.Context, c *client.Client, s client.Status) error {
		first, err := kit.FirstExecution(ctx, c, s.InstanceID)
		if err != nil {
			return err
		}
		return outcomesKnownIn(ctx, c, s.InstanceID, first, name)
	}
}

func outcomesKnownIn(ctx context.Context, c *client.Client, instanceID, execution, name string) error {
	found, err := client.Collect(c.Cancellations(ctx, instanceID, execution))
	if err != nil {
		return err
	}
	for _, x := range found {
		if x.Name == name &&
			(x.SeenAt.IsZero() || x.End != client.OutcomeCompleted && x.End != client.OutcomeNeverStarted) {
			return fmt.Errorf("%s #%d: seen %v, end %q", name, x.ID, x.SeenAt, x.End)
		}
	}
	return nil
}

// reasonsReported checks that the cancelled watches ended, and that those that ran reported the reason.
func reasonsReported(reason string) kit.Check {
	return func(ctx context.Context, c *client.Client, s client.Status) error {
		found, err := client.Collect(c.Cancellations(ctx, s.InstanceID, ""))
		if err != nil {
			return err
		}
		completed, err := kit.EventsOf(ctx, c, s.InstanceID, history.ActivityCompleted)
		if err != nil {
			return err
		}
		reasons := map[int64]string{}
		for _, e := range completed {
			doc, _ := e.Result.Document()
			reasons[e.SourceEventID] = string(doc)
		}
		want, err := json.Marshal(reason)
		if err != nil {
			return err
		}
		for _, x := range found {
			if x.Name == watchName && x.End == client.OutcomeCompleted && reasons[x.ID] != string(want) {
				return fmt.Errorf("%s #%d returned %s, want %s", watchName, x.ID, reasons[x.ID], want)
			}
		}
		return outcomesKnown(watchName)(ctx, c, s)
	}
}

// timerNeverFired checks that no cancelled timer fired.
func timerNeverFired(ctx context.Context, c *client.Client, s client.Status) error {
	gone := map[int64]bool{}
	for e, err := range c.History(ctx, s.InstanceID) {
		if err != nil {
			return err
		}
		switch {
		case e.Kind == history.TimerCancelled:
			for _, id := range e.Sources() {
				gone[id] = true
			}
		case e.Kind == history.TimerFired && gone[e.SourceEventID]:
			return fmt.Errorf("timer #%d has fired", e.SourceEventID)
		}
	}
	if len(gone) != 1 {
		return fmt.Errorf("%d timers were cancelled", len(gone))
	}
	return nil
}
