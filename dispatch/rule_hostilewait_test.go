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

// A parent that ends, or is deleted, leaves a child behind, which is cancelled for that reason: the child hears of the ends of its own
// activities, and undoes what they did.
func TestAChildThatItsParentLeavesBehindUndoesWhatItDid(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"completed", "failed", "continued", "terminated", "deleted"} {
		for name, j := range map[string]job{"stops": {Takes: time.Hour, Longer: 2 * time.Second}, "ignores it": stubborn} {
			t.Run(fmt.Sprint(way, ", ", name), func(t *testing.T) {
				t.Parallel()
				s := &sagas{}
				r := s.registry()
				perdure.AddOrchestration(r, "leaves", func(ctx *perdure.OrchestrationContext, d deed) (string, error) {
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
						return perdure.ContinueAsNew[string](ctx, deed{Fails: true})
					}
					return "", nil
				})
				inBubble(t, simhub.Options{Registry: r}, func(_ context.Context, h *hub) {
					s.hub = h
					in := h.startAs("a", "leaves", deed{Job: j})
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
					if err != nil || end.Kind != history.OrchestrationCancelled || len(s.seen(&s.undone)) != 1 {
						t.Errorf("the child ended with %s, %v, is %s, and was undone %d times", end.String(), err, kid.Status, len(s.seen(&s.undone)))
					}
					s.checkRest()
					time.Sleep(3 * time.Hour)
				})
			})
		}
	}
}

// What did not heed the end of its time may still run when the activity is cancelled: as its worker has given it up, it is not said to have
// returned. It is so wherever the activity is by then: before its worker sees the cancel, between two attempts, and when the next is due.
func TestWhatRunsBeyondItsTimeIsNotSaidToHaveReturned(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ every, cancelled time.Duration }{
		"before its worker sees the cancel": {0, 2900 * time.Millisecond},
		"between two attempts":              {time.Hour, time.Minute},
		"when the next attempt is due":      {time.Hour, time.Hour + 2*time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &sagas{}
			r := s.registry()
			perdure.AddOrchestration(r, "limited", func(ctx *perdure.OrchestrationContext, d deed) (string, error) {
				opts := []perdure.ActivityCallOption{perdure.WaitForCancellation(), perdure.WithStartToCloseTimeout(3 * time.Second)}
				if c.every > 0 {
					opts = append(opts, perdure.WithRetry(perdure.RetryPolicy{InitialInterval: c.every, BackoffCoefficient: 1}))
				}
				_, err := perdure.CallActivityByName[string](ctx, "do", d, opts...).Await(ctx)
				return endOf(err), nil
			})
			inBubble(t, simhub.Options{Registry: r}, func(_ context.Context, h *hub) {
				s.hub = h
				in := h.startAs("a", "limited", deed{Job: stubborn})
				s.meanwhile(90*time.Minute, func() {
					time.Sleep(c.cancelled)
					s.cancelActivity(in)
				})
				h.wantOutput(in, `"requested, given_up"`)
				if n := len(s.seen(&s.begun)); n != 1 {
					t.Errorf("%d attempts", n)
				}
				h.checkRest()
				time.Sleep(3 * time.Hour)
			})
		})
	}
}

// The timer of the schedule-to-close time and that of an attempt of one activity come to be held in one batch, in whichever order, when the
// activity is cancelled already: the first is not taken for needless with the second, since it bounds the wait for the end.
func TestAnAttemptsTimerDoesNotTakeTheBoundOfTheWaitWithIt(t *testing.T) {
	t.Parallel()
	for _, attemptFirst := range []bool{false, true} {
		undoing(t, simhub.Options{}, func(ctx context.Context, s *sagas) {
			const closes = 5 * time.Hour
			in := s.startAs("a", "saga", deed{Close: closes, Every: time.Hour})
			s.turn(0)
			s.receive("sim://default") // by somebody who does nothing with it
			s.receive("sim://timers")
			s.cancelIt(in)
			s.turn(0)
			over := provider.Timer{
				V: provider.WireVersion, InstanceID: in.InstanceID, ExecutionID: in.ExecutionID, Segment: 1, TimerID: 3,
				FireAt: time.Now().Add(closes), Activity: true, WaitForCancellation: true,
			}
			attempt := over
			attempt.FireAt, attempt.Activity, attempt.WaitForCancellation, attempt.Attempt = time.Now().Add(time.Hour), false, false, 2
			timers := []provider.Timer{over, attempt}
			if attemptFirst {
				timers = []provider.Timer{attempt, over}
			}
			if err := s.Provider.HoldTimers(ctx, timers...); err != nil {
				t.Fatal(err)
			}
			if n := s.Cloud.Schedules.Count(); n == 0 {
				t.Errorf("attempt first: %v: nothing bounds the wait", attemptFirst)
			}
		})
	}
}
