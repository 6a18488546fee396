package dispatch_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/internal/simhub"
)

// deepError has several causes with long messages, in characters that JSON escapes in six bytes.
type deepError struct{ causes int }

// Error implements error.
func (e *deepError) Error() string { return strings.Repeat("\x01", 16<<10) }

// Unwrap returns the next of the causes.
func (e *deepError) Unwrap() error {
	if e.causes == 0 {
		return nil
	}
	return &deepError{e.causes - 1}
}

// The outcome of an activity with WaitForCancellation or AtMostOnce is stored in the same item as its last heartbeat
// details. Together, the longest ones exceed an item. A result replaces the details, and a failure is truncated,
// because the next attempt needs the details.
func TestR23_longestOutcomeAndDetails_fitTheRecord(t *testing.T) {
	t.Parallel()
	details := strings.Repeat("d", perdure.MaxPayloadBytes-2)
	for name, option := range map[string]perdure.ActivityCallOption{
		"awaited":      perdure.WaitForCancellation(),
		"at most once": perdure.AtMostOnce(),
	} {
		for fails := range 2 {
			t.Run(fmt.Sprintf("%s, fails %d times", name, fails), func(t *testing.T) {
				t.Parallel()
				var runs atomic.Int64
				log := &journal{}
				r := registry()
				perdure.AddActivity(r, "copy", func(ctx context.Context, _ int) (string, error) {
					if n := int(runs.Add(1)); n <= fails {
						perdure.Heartbeat(ctx, details)
						time.Sleep(2 * time.Second)
						return "", &deepError{4}
					}
					if left, _ := perdure.HeartbeatDetails[string](ctx); fails > 0 && left != details {
						t.Errorf("got %d bytes of details", len(left))
					}
					perdure.Heartbeat(ctx, details)
					time.Sleep(2 * time.Second)
					return strings.Repeat("r", perdure.MaxPayloadBytes-2), nil
				})
				perdure.AddOrchestration(r, "copies", func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
					s, err := perdure.CallActivityByName[string](ctx, "copy", 0, option,
						perdure.WithRetry(perdure.RetryPolicy{})).Await(ctx)
					return len(s), err
				})
				inBubble(t, simhub.Options{
					Registry: r, Logger: slog.New(slog.NewTextHandler(log, nil)),
				}, func(_ context.Context, h *hub) {
					if end := h.finish(h.start("copies", 0)); string(end.Output) != "204798" ||
						runs.Load() != int64(1+fails) {
						t.Errorf("got output %s, error %v, %d runs", end.Output, end.Error, runs.Load())
					}
					h.checkRest()
				})
				if n := log.count(logevent.ActivityOutcomeNotStored) +
					log.count(logevent.ActivityOutcomeSentUnstored); n > 0 {
					t.Errorf("got %d outcomes that could not be stored", n)
				}
			})
		}
	}
}
