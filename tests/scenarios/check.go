package scenarios

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/perdure/perdure/client"
)

// gives: the instance completed with this output.
func gives(want any) Check {
	return func(_ context.Context, _ *client.Client, s client.Status) error {
		doc, err := json.Marshal(want)
		if err != nil {
			return err
		}
		if s.Status != client.StatusCompleted || string(s.Output) != string(doc) {
			return fmt.Errorf("%s with %s, failure %+v; want %s", s.Status, s.Output, s.Failure, doc)
		}
		return nil
	}
}

// fails: the instance failed with an error of this type, whose message has all these words.
func fails(errorType string, words ...string) Check {
	return func(_ context.Context, _ *client.Client, s client.Status) error {
		if s.Status != client.StatusFailed || s.Failure == nil || s.Failure.Type != errorType {
			return fmt.Errorf("%s with %s, failure %+v; want a failure of type %s", s.Status, s.Output, s.Failure,
				errorType)
		}
		for _, w := range words {
			if !strings.Contains(s.Failure.Message, w) {
				return fmt.Errorf("the failure %q does not say %q", s.Failure.Message, w)
			}
		}
		return nil
	}
}

// all checks one after the other.
func all(checks ...Check) Check {
	return func(ctx context.Context, c *client.Client, s client.Status) error {
		for _, check := range checks {
			if err := check(ctx, c, s); err != nil {
				return err
			}
		}
		return nil
	}
}

// executions: the instance came to its n-th execution.
func executions(n int64) Check {
	return func(_ context.Context, _ *client.Client, s client.Status) error {
		if s.ExecutionNumber != n {
			return fmt.Errorf("it is in execution %d, want %d", s.ExecutionNumber, n)
		}
		return nil
	}
}

// customStatus: this is the last custom status.
func customStatus(want string) Check {
	return func(_ context.Context, _ *client.Client, s client.Status) error {
		if string(s.CustomStatus) != want {
			return fmt.Errorf("custom status %s, want %s", s.CustomStatus, want)
		}
		return nil
	}
}
