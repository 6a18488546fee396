package scenarios

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
)

// swept removes a file.
func swept(file string) Check {
	return func(context.Context, *client.Client, client.Status) error { return os.Remove(file) }
}

// decided: all that was cancelled under this name was cancelled for this reason, and something was.
func decided(name, reason string) Check {
	return func(ctx context.Context, c *client.Client, s client.Status) error {
		return decidedIn(ctx, c, s, "", name, reason)
	}
}

// decidedBefore: the same of the instance's first execution.
func decidedBefore(name, reason string) Check {
	return func(ctx context.Context, c *client.Client, s client.Status) error {
		first, err := firstExecution(ctx, c, s.InstanceID)
		if err != nil {
			return err
		}
		return decidedIn(ctx, c, s, first, name, reason)
	}
}

// firstExecution is the instance's: the last of the list.
func firstExecution(ctx context.Context, c *client.Client, instanceID string) (first string, err error) {
	for x, err := range c.Executions(ctx, instanceID) {
		if err != nil {
			return "", err
		}
		first = x.ExecutionID
	}
	return first, nil
}

func decidedIn(ctx context.Context, c *client.Client, s client.Status, execution, name, reason string) error {
	found, err := client.Collect(c.Cancellations(ctx, s.InstanceID, execution))
	if err != nil {
		return err
	}
	n := 0
	for _, x := range found {
		if x.Name != name {
			continue
		}
		if n++; x.Reason != reason {
			return fmt.Errorf("%s #%d was cancelled for %s, want %s", name, x.ID, x.Reason, reason)
		}
	}
	if n == 0 {
		return fmt.Errorf("nothing called %s was cancelled: %+v", name, found)
	}
	return nil
}

// ended: it is known what became of the activities of this name that were cancelled, and none was left to itself.
func ended(name string) Check {
	return func(ctx context.Context, c *client.Client, s client.Status) error {
		return endedIn(ctx, c, s.InstanceID, "", name)
	}
}

// endedBefore: the same of the instance's first execution.
func endedBefore(name string) Check {
	return func(ctx context.Context, c *client.Client, s client.Status) error {
		first, err := firstExecution(ctx, c, s.InstanceID)
		if err != nil {
			return err
		}
		return endedIn(ctx, c, s.InstanceID, first, name)
	}
}

func endedIn(ctx context.Context, c *client.Client, instanceID, execution, name string) error {
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

// heard: the watches that were cancelled ended so, and those that ran have told history that they saw the reason.
func heard(reason string) Check {
	return func(ctx context.Context, c *client.Client, s client.Status) error {
		found, err := client.Collect(c.Cancellations(ctx, s.InstanceID, ""))
		if err != nil {
			return err
		}
		said := map[int64]string{}
		for e, err := range c.History(ctx, s.InstanceID) {
			if err != nil {
				return err
			}
			if e.Kind == history.ActivityCompleted {
				doc, _ := e.Result.Document()
				said[e.SourceEventID] = string(doc)
			}
		}
		want, err := json.Marshal(reason)
		if err != nil {
			return err
		}
		for _, x := range found {
			if x.Name == watchName && x.End == client.OutcomeCompleted && said[x.ID] != string(want) {
				return fmt.Errorf("%s #%d said %s, want %s", watchName, x.ID, said[x.ID], want)
			}
		}
		return ended(watchName)(ctx, c, s)
	}
}

// neverFires: no timer that was cancelled has fired.
func neverFires(ctx context.Context, c *client.Client, s client.Status) error {
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
