package client_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/fakeprovider"
	"github.com/perdure/perdure/provider"
)

// overtaking is a hub that rejects each heartbeat, because it has just written another one.
type overtaking struct {
	*fakeprovider.Provider

	other provider.ActivityRecord
}

func (h *overtaking) HeartbeatPending(_ context.Context, executionID string, b provider.PendingHeartbeat) (
	bool, error,
) {
	h.other.ActivityID = b.ActivityID
	h.SetActivityRecords(executionID, h.other)
	return false, nil
}

func TestHeartbeat_anotherIsWrittenFirst_failsIfThatIsOfALaterAttempt(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		other provider.ActivityRecord
		over  bool
	}{
		"next attempt": {provider.ActivityRecord{HeartbeatAttempt: 3, LastHeartbeatAt: began}, true},
		"same attempt": {
			provider.ActivityRecord{HeartbeatAttempt: 2, LastHeartbeatAt: began.Add(time.Hour)}, false,
		},
		"attempt has ended": {
			provider.ActivityRecord{HeartbeatAttempt: 2, LastHeartbeatAt: began, EndedAttempt: 2}, true,
		},
	} {
		h := &overtaking{fakeprovider.New(func() time.Time { return began }, "hello"), tt.other}
		c := connect(h, client.WithClock(func() time.Time { return began }))
		mustStart(t, c, "one")
		h.Append("one", history.Event{Kind: history.ActivityScheduled, Time: began, Name: "charge", Queue: "default"})
		h.SetCompletionToken("c1.two", &provider.WorkItem{
			InstanceID: "one", ExecutionID: "x1", Segment: 1, ActivityID: 2, Attempt: 2, Queue: "default",
		})
		_, err := c.HeartbeatActivity(t.Context(), "c1.two", 7)
		problem, failed := errors.AsType[*client.TokenError](err)
		if failed != tt.over || failed && problem.Reason != client.TokenActivityEnded || !failed && err != nil {
			t.Errorf("%s: got error %v", name, err)
		}
	}
}

func TestCompleteActivity_executionHasEnded_interceptorSeesTokenError(t *testing.T) {
	t.Parallel()
	var seen error
	observe := perdure.Interceptor{
		ClientCall: func(ctx context.Context, _ perdure.ClientCall, next func(context.Context) error) {
			seen = next(ctx)
		},
	}
	h := fakeprovider.New(func() time.Time { return began }, "hello")
	c := connect(h, client.WithInterceptors(observe))
	mustStart(t, c, "one")
	h.Append("one", history.Event{Kind: history.ActivityScheduled, Time: began, Name: "charge", Queue: "default"})
	h.Append("one", history.Event{Kind: history.OrchestrationTerminated, Time: began})
	h.SetCompletionToken("c1.two", &provider.WorkItem{
		InstanceID: "one", ExecutionID: "x1", Segment: 1, ActivityID: 2, Attempt: 1, Queue: "default",
	})
	err := c.CompleteActivity(t.Context(), "c1.two", 7)
	want, ok := errors.AsType[*client.TokenError](err)
	if !ok {
		t.Fatalf("got error %v, want a TokenError", err)
	}
	if got, ok := errors.AsType[*client.TokenError](seen); !ok || *got != *want {
		t.Errorf("the interceptor got error %v, want %v", seen, want)
	}
}
