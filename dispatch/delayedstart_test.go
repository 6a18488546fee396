package dispatch_test

import (
	"context"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// 1. A client sends the timer of a delayed start, and its write of the start is slow.
// 2. The timer fires when it is due and finds no instance.
// 3. The write succeeds, and the client sends a wake, which runs the first turn.
func TestR11_delayedStartWrittenAfterItsDueTime_runsAtOnce(t *testing.T) {
	t.Parallel()
	for name, takes := range map[string]time.Duration{
		"in time": time.Second, "shortly before the start time": 6 * time.Second, "when due": 10 * time.Second,
		"1 ms late": 10*time.Second + time.Millisecond, "late": time.Minute, "hours late": 5 * time.Hour,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, simhub.Options{Registry: endingRegistry()}, func(ctx context.Context, h *hub) {
				h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
					if c.Operation == "TransactWriteItems" {
						time.Sleep(takes)
					}
					return next()
				})
				due := time.Now().Add(10 * time.Second)
				var end time.Time
				begun := make(chan error, 1)
				var in provider.Instance
				go func() {
					var err error
					s := provider.Start{
						InstanceID: "i-1", Name: "sleeper", Input: encoded(t, 0), StartID: "start-1", StartAt: due,
					}
					in, err = h.Provider.StartOrchestration(ctx, s)
					begun <- err
				}()
				h.serveFor(24 * time.Hour)
				if err := <-begun; err != nil {
					t.Fatal(err)
				}
				h.over(in)
				for _, e := range h.events(h.read(in)) {
					if e.Kind == history.TurnStarted {
						end = e.Time
					}
				}
				want := due
				if written := due.Add(takes - 10*time.Second); written.After(due) {
					want = written
				}
				if end.Before(due) || end.Sub(want) > 2*time.Second {
					t.Errorf("the first turn was due at %v and ran %v later, want at most 2s", want, end.Sub(want))
				}
			})
		})
	}
}

// A session writes a delayed start by message. Each call fails or loses its response, in one run each. The timer of the
// start is sent.
func TestR11_delayedStartByMessageFailsAtAnyCall_timerIsSent(t *testing.T) {
	t.Parallel()
	for _, after := range []bool{false, true} {
		for n := int64(1); ; n++ {
			intercept, calls := simhub.FailAt(n, after)
			inBubble(t, simhub.Options{Registry: endingRegistry(), Intercept: intercept},
				func(_ context.Context, h *hub) {
					due := time.Now().Add(time.Hour)
					m := startMessage(h, "i-1", "s1")
					m.Name, m.StartAt, m.Parent, m.Detached = "sleeper", &due, nil, true
					h.send(m)
					h.serveFor(2 * time.Hour)
					if now := h.read(provider.Instance{InstanceID: "i-1"}); now.Status != provider.StatusCompleted {
						t.Errorf("call %d failed: the instance is %s an hour after its start time", n, now.Status)
					}
				})
			if calls.Load() < n || t.Failed() {
				break
			}
		}
	}
}

// The response to the write of a delayed start by message is lost. The repeated write finds its own instance.
func TestR11_responseToDelayedStartByMessageIsLost_timerIsSent(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{Registry: endingRegistry()}, func(_ context.Context, h *hub) {
		lost := false
		h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
			err := next()
			if tx, ok := c.Input.(*dynamodb.TransactWriteItemsInput); ok && !lost {
				lost, tx.ClientRequestToken = true, nil
				return &ddbtypes.RequestLimitExceeded{Message: aws.String("the response was lost")}
			}
			return err
		})
		due := time.Now().Add(time.Hour)
		m := startMessage(h, "i-1", "s1")
		m.Name, m.StartAt, m.Parent, m.Detached = "sleeper", &due, nil, true
		h.send(m)
		h.serveFor(2 * time.Hour)
		if now := h.read(provider.Instance{InstanceID: "i-1"}); now.Status != provider.StatusCompleted || !lost {
			t.Errorf("the instance is %s an hour after its start time, response lost: %v", now.Status, lost)
		}
	})
}
