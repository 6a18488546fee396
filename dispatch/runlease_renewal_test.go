package dispatch_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/outputs"
)

// atOnce counts the concurrent attempts of activities that may outlive their context.
type atOnce struct {
	now, most, runs atomic.Int64
}

// work returns an activity that runs for a day, or until its context has been done for the given time. The worker
// reports no outcome before the activity returns.
func (a *atOnce) work(longer time.Duration) func(context.Context, spec) (string, error) {
	return func(ctx context.Context, _ spec) (string, error) {
		a.runs.Add(1)
		n := a.now.Add(1)
		defer a.now.Add(-1)
		a.most.Store(max(a.most.Load(), n))
		select {
		case <-time.After(24 * time.Hour):
		case <-ctx.Done():
			time.Sleep(longer)
		}
		return "over", nil
	}
}

// tokenOf returns the token of the run lease that a call takes or renews, or "" for any other call.
func tokenOf(c simaws.Call) string {
	in, ok := c.Input.(*dynamodb.UpdateItemInput)
	if !ok || in.ExpressionAttributeNames["#outcome"] != "runOutcome" {
		return ""
	}
	return text(in.ExpressionAttributeValues, ":token")
}

// The run leases of one worker, or of all workers, cannot be written for 15 minutes. The worker stops the activity
// before its lease expires. No delivery of a copy of the work item runs the activity concurrently, and the compensation
// waits for the end of the activity. The log has one warning for the failed renewal and one for the expired lease.
func TestR23_runLeaseCannotBeRenewed_activityStopsBeforeAnotherStarts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		longer time.Duration
		all    bool
	}{{0, false}, {9 * time.Second, false}, {9 * time.Second, true}} {
		for _, cancelled := range []time.Duration{
			0, 12 * time.Second, 25 * time.Second, 6 * time.Minute,
			20 * time.Minute,
		} {
			t.Run(fmt.Sprintf("%+v, cancelled after %v", c, cancelled), func(t *testing.T) {
				t.Parallel()
				s, a, log := &sagas{}, &atOnce{}, &journal{}
				r := s.registry()
				perdure.AddActivity(r, "undo-once", func(context.Context, string) (string, error) {
					s.note(&s.undone)
					if a.now.Load() > 0 {
						t.Error("undo runs while the activity runs")
					}
					return "", nil
				})
				perdure.AddActivity(r, "do-once", a.work(c.longer))
				perdure.AddOrchestration(r, "once", func(ctx *perdure.OrchestrationContext, _ int) (_ string,
					err error,
				) {
					doing := perdure.CallActivityByName[string](ctx, "do-once", spec{}, perdure.WaitForCancellation())
					defer perdure.Compensate(ctx, &err, func(ctx *perdure.OrchestrationContext) error {
						_, err := perdure.CallActivityByName[string](ctx, "undo-once", "").Await(ctx)
						return err
					})
					return doing.Await(ctx)
				})
				var throttled atomic.Bool
				var first atomic.Value
				intercept := func(_ context.Context, call simaws.Call, next func() error) error {
					if token := tokenOf(call); token != "" {
						first.CompareAndSwap(nil, token)
						if throttled.Load() && (c.all || token == first.Load()) {
							return simaws.Throttled()
						}
					}
					return next()
				}
				o := simhub.Options{Registry: r, Intercept: intercept, Logger: slog.New(slog.NewTextHandler(log, nil))}
				inBubble(t, o, func(ctx context.Context, h *hub) {
					s.hub = h
					in := h.startAs("a", "once", 0)
					s.meanwhile(time.Hour, func() {
						time.Sleep(time.Minute)
						again := h.copyOf(in, 3)
						throttled.Store(true)
						time.AfterFunc(15*time.Minute, func() { throttled.Store(false) })
						time.AfterFunc(cancelled, func() { s.cancelIt(in) })
						for range 20 {
							if err := h.Provider.PutWorkItems(ctx, again); err != nil {
								t.Error(err)
							}
							time.Sleep(3 * time.Second)
						}
					})
					if n := len(s.seen(&s.undone)); n != 1 || a.most.Load() != 1 {
						t.Errorf("got %d undos, want 1; %d attempts ran concurrently, want 1 (%d attempts)",
							n, a.most.Load(), a.runs.Load())
					}
					h.checkRest()
					time.Sleep(24 * time.Hour)
				})
				if cancelled < 6*time.Minute {
					return
				}
				for _, line := range []string{logevent.ActivityClaimRenewalFailed, logevent.ActivityClaimExpired} {
					if n := log.count("event="+line, "level=WARN", "instance=a", "execution=", "activity=do-once",
						"activityId=3"); n != 1 {
						t.Errorf("got %d log lines of event %s, want 1", n, line)
					}
				}
			})
		}
	}
}

// count counts the log lines that contain all parts.
func (j *journal) count(parts ...string) (n int) {
lines:
	for line := range strings.Lines(j.String()) {
		for _, part := range parts {
			if !strings.Contains(line, part) {
				continue lines
			}
		}
		n++
	}
	return n
}

// copyOf returns the sent work item of an activity, so that a test can resend it.
func (h *hub) copyOf(in provider.Instance, activityID int64) provider.WorkItem {
	h.t.Helper()
	o, err := h.Provider.ReadOrchestration(h.t.Context(), &provider.OrchestrationItem{InstanceID: in.InstanceID},
		provider.Strong)
	if err != nil {
		h.t.Fatal(err)
	}
	for i := range o.Segments {
		for _, w := range outputs.Of(outputs.HistoryOrigin(o), o.Segments[i], nil).WorkItems {
			if w.ActivityID == activityID {
				w.PossibleDuplicate = true
				return w
			}
		}
	}
	h.t.Fatalf("no activity #%d", activityID)
	return provider.WorkItem{}
}
