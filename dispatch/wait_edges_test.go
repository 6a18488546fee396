package dispatch_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// A parent that ends or is deleted cancels its child. The child receives the ends of its own activities and undoes
// them.
func TestWaitForCancellation_parentEnds_childUndoes(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"completed", "failed", "continued", "terminated", "deleted"} {
		for name, j := range map[string]job{
			"stops": {Takes: time.Hour, Longer: 2 * time.Second}, "ignores the cancellation": ignoresCancel,
		} {
			t.Run(fmt.Sprint(way, ", ", name), func(t *testing.T) {
				t.Parallel()
				s := &sagas{}
				r := s.registry()
				perdure.AddOrchestration(r, "leaves", func(ctx *perdure.OrchestrationContext, d spec) (string, error) {
					if d.Fails {
						return "", nil
					}
					perdure.CallSubOrchestrationByName[string](ctx, "saga", d, perdure.WithInstanceID("kid"))
					switch way {
					case "terminated", "deleted":
						return "", perdure.Sleep(ctx, time.Hour)
					}
					_ = perdure.Sleep(ctx, 5*time.Second)
					switch way {
					case "failed":
						return "", errLate
					case "continued":
						return perdure.ContinueAsNew[string](ctx, spec{Fails: true})
					}
					return "", nil
				})
				inBubble(t, simhub.Options{Registry: r}, func(_ context.Context, h *hub) {
					s.hub = h
					in := h.startAs("a", "leaves", spec{Job: j})
					s.meanwhile(2*time.Hour, func() {
						time.Sleep(5 * time.Second)
						switch way {
						case "terminated":
							s.send(provider.Message{Kind: provider.MessageTerminate, InstanceID: in.InstanceID})
						case "deleted":
							if err := s.Provider.DeleteInstance(s.t.Context(), in.InstanceID, true); err != nil {
								t.Error(err)
							}
						}
					})
					kid, err := s.Provider.ReadInstance(t.Context(), "kid")
					if err != nil {
						t.Fatal(err)
					}
					end, err := s.Provider.ReadTerminalEvent(t.Context(), kid.ExecutionID)
					undone := len(s.seen(&s.undone))
					if err != nil || end.Kind != history.OrchestrationCancelled || undone != 1 {
						t.Errorf("the child is %s, ended with %s, %v, with %d undos, want cancelled with 1",
							kid.Status, end.String(), err, undone)
					}
					s.checkRest()
					time.Sleep(3 * time.Hour)
				})
			})
		}
	}
}

// The code of an activity ignores its timeout and may still run when the activity is cancelled. The reported end is
// given_up and not returned, for each time of the cancellation.
func TestCancelOutcome_codeExceedsItsTimeout_isGivenUp(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ every, cancelled time.Duration }{
		"before the worker observes the cancellation": {0, 2900 * time.Millisecond},
		"between two attempts":                        {time.Hour, time.Minute},
		"when the next attempt is due":                {time.Hour, time.Hour + 2*time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &sagas{}
			r := s.registry()
			perdure.AddOrchestration(r, "limited", func(ctx *perdure.OrchestrationContext, d spec) (string, error) {
				opts := []perdure.ActivityCallOption{
					perdure.WaitForCancellation(), perdure.WithStartToCloseTimeout(3 * time.Second),
				}
				if c.every > 0 {
					opts = append(opts, perdure.WithRetry(perdure.RetryPolicy{
						InitialInterval: c.every, BackoffCoefficient: 1,
					}))
				}
				_, err := perdure.CallActivityByName[string](ctx, "do", d, opts...).Await(ctx)
				return endOf(err), nil
			})
			inBubble(t, simhub.Options{Registry: r}, func(_ context.Context, h *hub) {
				s.hub = h
				in := h.startAs("a", "limited", spec{Job: ignoresCancel})
				s.meanwhile(90*time.Minute, func() {
					time.Sleep(c.cancelled)
					s.cancelActivity(in)
				})
				h.wantOutput(in, `"requested, given_up"`)
				if n := len(s.seen(&s.begun)); n != 1 {
					t.Errorf("got %d attempts, want 1", n)
				}
				h.checkRest()
				time.Sleep(3 * time.Hour)
			})
		})
	}
}

// The schedule-to-close timer of a cancelled activity and the timer of its next attempt are received in one batch, in
// either order. The first timer limits the wait for the end of the activity, so it is not dropped.
func TestWaitForCancellation_timersAreInOneBatch_boundRemains(t *testing.T) {
	t.Parallel()
	for _, attemptFirst := range []bool{false, true} {
		undoing(t, simhub.Options{}, func(ctx context.Context, s *sagas) {
			const closes = 5 * time.Hour
			in := s.startAs("a", "saga", spec{Close: closes, Every: time.Hour})
			s.turn(0)
			s.receive("sim://default") // received by a consumer that does not process it
			s.receive("sim://timers")
			s.cancelIt(in)
			s.turn(0)
			over := provider.Timer{
				V: provider.WireVersion, InstanceID: in.InstanceID, ExecutionID: in.ExecutionID, Segment: 1, TimerID: 3,
				FireAt: time.Now().Add(closes), Activity: true, WaitForCancellation: true,
			}
			attempt := over
			attempt.FireAt, attempt.Activity, attempt.WaitForCancellation, attempt.Attempt = time.Now().Add(time.Hour),
				false, false, 2
			timers := []provider.Timer{over, attempt}
			if attemptFirst {
				timers = []provider.Timer{attempt, over}
			}
			if err := s.Provider.HoldTimers(ctx, timers...); err != nil {
				t.Fatal(err)
			}
			if n := s.Cloud.Schedules.Count(); n == 0 {
				t.Errorf("attempt first: %v: got no schedule, want the bound of the wait", attemptFirst)
			}
		})
	}
}
