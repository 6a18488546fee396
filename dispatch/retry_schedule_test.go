package dispatch_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// An attempt that waits for hours has a schedule. When its activity ends in any way, cached and uncached instances
// delete the schedule.
func TestR15_activityEndsWhileItsRetryWaits_scheduleIsDeleted(t *testing.T) {
	t.Parallel()
	for name, end := range endings() {
		for _, cold := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", cold=", cold), func(t *testing.T) {
				t.Parallel()
				o := simhub.Options{}
				if cold {
					o.CacheBytes = 1
				}
				withRetryHub(t, o, func(_ context.Context, tr *retryHub) {
					in := tr.startAs("a", "tries-until", retryInput{Every: 5 * time.Hour})
					tr.serveFor(6 * time.Hour)
					if n := tr.Cloud.Schedules.Count(); n != 1 {
						t.Fatalf("got %d schedules, want 1", n)
					}
					end(tr, in)
					tr.serveFor(time.Minute)
					if n := tr.Cloud.Schedules.Count(); n != 0 {
						t.Errorf("got %d schedules, want 0", n)
					}
					tr.serveFor(24 * time.Hour)
					tr.wantRuns("a#3.1", "a#3.2")
					tr.checkIdle()
				})
			})
		}
	}
}

// The schedule-to-close timeout of the activity expires while it waits for its next attempt. Workers of an earlier
// release send such attempts.
func TestR15_scheduleToCloseExpiresWhileARetryWaits_scheduleIsDeleted(t *testing.T) {
	t.Parallel()
	withRetryHub(t, simhub.Options{}, func(ctx context.Context, tr *retryHub) {
		in := tr.startAs("a", "tries-in-time", retryInput{Every: 5 * time.Hour}) // 17.5 hours
		tr.serveFor(11 * time.Hour)
		tr.send(provider.Message{
			Kind: provider.MessageTimerFired, InstanceID: in.InstanceID, ExecutionID: in.ExecutionID, Segment: 1,
			TimerID: 3, Activity: true,
		})
		tr.serveFor(time.Minute)
		if n := tr.Cloud.Schedules.Count(); n != 0 {
			t.Errorf("got %d schedules, want 0", n)
		}
		if end, err := tr.Provider.ReadTerminalEvent(ctx, in.ExecutionID); err != nil ||
			end.Kind != history.OrchestrationFailed {
			t.Errorf("ended with %s, error %v, want failed", end.String(), err)
		}
	})
}

// When a turn cancels an activity without retries or a recently scheduled activity, it does not read the retry state.
func TestR15_noRetryPossible_retryStateIsNotRead(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		policy bool
		after  time.Duration
		reads  int
	}{
		"no policy":                   {false, 5 * time.Hour, 0},
		"recent activity":             {true, 10 * time.Minute, 0},
		"policy":                      {true, 5 * time.Hour, 1},
		"one read for all activities": {true, 6 * time.Hour, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := perdure.NewRegistry()
			perdure.AddOrchestration(r, "patient", func(ctx *perdure.OrchestrationContext, n int) (int, error) {
				for i := range n {
					if c.policy {
						perdure.CallActivityByName[int](ctx, "unknown", i,
							perdure.WithRetry(perdure.RetryPolicy{InitialInterval: time.Hour}))
					} else {
						perdure.CallActivityByName[int](ctx, "unknown", i)
					}
				}
				return perdure.WaitForExternalEvent[int](ctx, "add").Await(ctx)
			})
			inBubble(t, simhub.Options{Registry: r}, func(_ context.Context, h *hub) {
				in := h.start("patient", 10)
				h.turn(0)
				time.Sleep(c.after)
				h.raise(in, "e", 7)
				before := len(h.made())
				h.turn(0)
				reads := 0
				for _, call := range h.made()[before:] {
					if q, ok := call.Input.(*dynamodb.QueryInput); ok {
						sk, _ := q.ExpressionAttributeValues[":sk"].(*ddbtypes.AttributeValueMemberS)
						if sk != nil && sk.Value[:2] == "r#" {
							reads++
						}
					}
				}
				if reads != c.reads {
					t.Errorf("got %d reads, want %d: %v", reads, c.reads, h.operations(before))
				}
				if deletes := slices.Contains(h.operations(before), "DeleteSchedule"); deletes {
					t.Error("a schedule was deleted that did not exist")
				}
			})
		})
	}
}
