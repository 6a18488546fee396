package kit

import (
	"context"
	"fmt"
	"time"

	"github.com/perdure/perdure"
)

// addActivities adds the activities that scenarios share.
func addActivities(r *perdure.Registry) {
	perdure.AddActivity(r, "Inc", Inc)
	perdure.AddActivity(r, "Echo", Echo)
	perdure.AddActivity(r, "Nap", Nap)
	perdure.AddActivity(r, "Say", Say)
	perdure.AddActivity(r, "Reserve", Reserve)
	perdure.AddActivity(r, "Undo", Undo)
	perdure.AddActivity(r, "Flaky", Flaky)
	perdure.AddActivity(r, "Explode", Explode)
}

// Inc adds 1.
func Inc(_ context.Context, n int) (int, error) { return n + 1, nil }

// Echo returns its input.
func Echo(_ context.Context, s string) (string, error) { return s, nil }

// Nap returns after d, or when its context ends.
func Nap(ctx context.Context, d time.Duration) (string, error) {
	select {
	case <-time.After(d):
		return "rested", nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// SayInput is the input of Say: a text and the delay before it.
type SayInput struct {
	Text  string
	After time.Duration
}

// Say returns a text after a delay.
func Say(ctx context.Context, s SayInput) (string, error) {
	_, err := Nap(ctx, s.After)
	return s.Text, err
}

// StockError is an error of user code.
type StockError struct{ Item string }

func (e *StockError) Error() string { return "no " + e.Item + " in stock" }

// Shortage has the details of a StockError.
type Shortage struct {
	Item string
	Days int
}

// SoldOut is the item that Reserve cannot reserve.
const SoldOut = "car"

// Reserve reserves an item, unless it is SoldOut.
func Reserve(_ context.Context, item string) (string, error) {
	if item == SoldOut {
		return "", fmt.Errorf("reserving: %w",
			perdure.WithErrorDetails(&StockError{Item: item}, Shortage{Item: item, Days: 3}))
	}
	return "reserved " + item, nil
}

// Undo undoes a reservation, unless the item is NonRefundable.
func Undo(_ context.Context, item string) (string, error) {
	if item == NonRefundable {
		return "", perdure.NonRetryable(&StuckError{item})
	}
	return "released " + item, nil
}

// Flaky succeeds in its n-th attempt.
func Flaky(ctx context.Context, n int) (int, error) {
	if attempt := perdure.ActivityInfoFrom(ctx).Attempt; attempt < n {
		return 0, fmt.Errorf("attempt %d of %d", attempt, n)
	}
	return n, nil
}

// Explode panics if s is empty.
func Explode(_ context.Context, s string) (int, error) { return 1 / len(s), nil }

// NonRefundable is the item whose reservation Undo cannot undo.
const NonRefundable = "non-refundable"

// StuckError is the error of Undo for NonRefundable.
type StuckError struct{ Item string }

func (e *StuckError) Error() string { return e.Item + " cannot be released" }

// Texts of the first execution and of later executions.
const (
	First  = "first"
	Second = "second"
)
