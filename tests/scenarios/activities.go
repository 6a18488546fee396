package scenarios

import (
	"context"
	"fmt"
	"time"

	"github.com/perdure/perdure"
)

// addActivities adds those that scenarios share.
func addActivities(r *perdure.Registry) {
	perdure.AddActivity(r, "Inc", inc)
	perdure.AddActivity(r, "Echo", echo)
	perdure.AddActivity(r, "Nap", nap)
	perdure.AddActivity(r, "Say", say)
	perdure.AddActivity(r, "Reserve", reserve)
	perdure.AddActivity(r, "Undo", undo)
	perdure.AddActivity(r, "Flaky", flaky)
	perdure.AddActivity(r, "Explode", explode)
}

func inc(_ context.Context, n int) (int, error) { return n + 1, nil }

func echo(_ context.Context, s string) (string, error) { return s, nil }

// nap takes its time, unless it is told to stop.
func nap(ctx context.Context, d time.Duration) (string, error) {
	select {
	case <-time.After(d):
		return "rested", nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// Saying is what say says, and when.
type Saying struct {
	Text  string
	After time.Duration
}

func say(ctx context.Context, s Saying) (string, error) {
	_, err := nap(ctx, s.After)
	return s.Text, err
}

// StockError is a user's own error.
type StockError struct{ Item string }

func (e *StockError) Error() string { return "no " + e.Item + " in stock" }

// Shortage is what comes with it.
type Shortage struct {
	Item string
	Days int
}

// soldOut is what there is none of.
const soldOut = "car"

// reserve has everything in stock but one thing.
func reserve(_ context.Context, item string) (string, error) {
	if item == soldOut {
		return "", fmt.Errorf("reserving: %w",
			perdure.WithErrorDetails(&StockError{Item: item}, Shortage{Item: item, Days: 3}))
	}
	return "reserved " + item, nil
}

func undo(_ context.Context, item string) (string, error) {
	if item == stuck {
		return "", perdure.NonRetryable(&StuckError{item})
	}
	return "gave back " + item, nil
}

// flaky succeeds in its n-th attempt.
func flaky(ctx context.Context, n int) (int, error) {
	if attempt := perdure.ActivityInfoFrom(ctx).Attempt; attempt < n {
		return 0, fmt.Errorf("attempt %d of %d", attempt, n)
	}
	return n, nil
}

func explode(_ context.Context, s string) (int, error) { return 1 / len(s), nil }
