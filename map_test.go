package perdure_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
)

// nap sleeps for a number of seconds. It fails afterwards if the number is negative.
func nap(ctx *perdure.OrchestrationContext, seconds int) (int, error) {
	if err := perdure.Sleep(ctx, time.Duration(max(seconds, -seconds))*time.Second); err != nil {
		return 0, err
	}
	if seconds < 0 {
		return 0, fmt.Errorf("after %d", -seconds)
	}
	return seconds, nil
}

// mapped returns an orchestration that describes the results of a Map over the naps.
func mapped(naps []int, opts ...perdure.MapOption) func(*perdure.OrchestrationContext, int) (string, error) {
	return func(ctx *perdure.OrchestrationContext, _ int) (string, error) {
		began := ctx.Now()
		results, err := perdure.Map(ctx, naps, nap, opts...)
		var became []string
		for _, r := range results {
			if r.Err != nil {
				became = append(became, r.Err.Error())
			} else {
				became = append(became, fmt.Sprint(r.Value))
			}
		}
		verdict := "good"
		if err != nil {
			verdict = strings.ReplaceAll(err.Error(), "\n", " and ")
		}
		return fmt.Sprintf("%s; %s; %s; values %v", ctx.Now().Sub(began), strings.Join(became, ", "), verdict,
			results.Values()), nil
	}
}

func TestMap_policy_decidesEndAndResults(t *testing.T) {
	t.Parallel()
	const lost = "cancelled (select_loser)"
	for name, tt := range map[string]struct {
		naps []int
		opts []perdure.MapOption
		want string
	}{
		"all at once": {[]int{3, 1, 2}, nil, "3s; 3, 1, 2; good; values [3 1 2]"},
		"no items":    {nil, nil, "0s; ; good; values []"},
		"all, with failures": {
			[]int{-3, 1, -2}, nil, "3s; after 3, 1, after 2; after 3 and after 2; values [1]",
		},
		"two at a time": {
			[]int{3, 1, 2, 1}, []perdure.MapOption{perdure.MaxConcurrency(2)}, "4s; 3, 1, 2, 1; good; values [3 1 2 1]",
		},
		"one at a time, negative limit": {
			[]int{3, 1}, []perdure.MapOption{perdure.MaxConcurrency(-7)}, "4s; 3, 1; good; values [3 1]",
		},
		"enough": {
			[]int{3, 1, 2}, []perdure.MapOption{perdure.MinSuccessful(2)}, "2s; " + lost + ", 1, 2; good; values [1 2]",
		},
		"enough successes after a failure": {
			[]int{3, -1, 2},
			[]perdure.MapOption{perdure.MinSuccessful(1)},
			"2s; " + lost + ", after 1, 2; good; values [2]",
		},
		"fewer items than required successes": {
			[]int{3, 1}, []perdure.MapOption{perdure.MinSuccessful(7)}, "3s; 3, 1; good; values [3 1]",
		},
		"required successes cannot be reached": {
			[]int{3, -1, -2},
			[]perdure.MapOption{perdure.MinSuccessful(2)},
			"2s; " + lost + ", after 1, after 2; after 1 and after 2; values []",
		},
		"enough successes before other items start": {
			[]int{1, 2, 2},
			[]perdure.MapOption{perdure.MinSuccessful(1), perdure.MaxConcurrency(1)},
			"1s; 1, " + lost + ", " + lost + "; good; values [1]",
		},
		"the first failure": {
			[]int{3, -1, 2},
			[]perdure.MapOption{perdure.ToleratedFailures(0)},
			"1s; " + lost + ", after 1, " + lost + "; after 1; values []",
		},
		"fewer failures than the limit": {
			[]int{3, -1, 2}, []perdure.MapOption{perdure.ToleratedFailures(1)}, "3s; 3, after 1, 2; good; values [3 2]",
		},
		"enough successes before too many failures": {
			[]int{1, -2},
			[]perdure.MapOption{perdure.MinSuccessful(1), perdure.ToleratedFailures(0)},
			"1s; 1, " + lost + "; good; values [1]",
		},
		"too many failures before enough successes": {
			[]int{3, -2, 4},
			[]perdure.MapOption{perdure.MinSuccessful(1), perdure.ToleratedFailures(0)},
			"2s; " + lost + ", after 2, " + lost + "; after 2; values []",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := orchestrate(t, mapped(tt.naps, tt.opts...))
			if got := w.run().replayed().output(); got != fmt.Sprintf("%q", tt.want) {
				t.Errorf("got %s\nwant %q", got, tt.want)
			}
		})
	}
}

// Map returns after the compensations of its running items. Items that have not started never start.
func TestMap_scopeTimesOut_waitsForItemsToReturn(t *testing.T) {
	t.Parallel()
	w := orchestrate(t, func(ctx *perdure.OrchestrationContext, _ int) (string, error) {
		late, cancel := perdure.WithTimeout(ctx, time.Second)
		defer cancel()
		undone := 0
		results, err := perdure.Map(late, []int{7, 8, 9},
			func(ctx *perdure.OrchestrationContext, seconds int) (n int, err error) {
				defer perdure.Compensate(ctx, &err, func(ctx *perdure.OrchestrationContext) error {
					undone++
					return perdure.Sleep(ctx, 2*time.Second)
				})
				return nap(ctx, seconds)
			}, perdure.MaxConcurrency(2))
		timeout := &perdure.CancelledError{}
		return fmt.Sprint(undone, " undone, ", errors.As(err, &timeout), timeout.Reason, ", ", results[0].Err, ", ",
			results[2].Err, " after ", ctx.Now().Sub(epoch)), nil
	})
	if got := w.run().replayed().
		output(); got != `"2 undone, truetimeout, cancelled (timeout), cancelled (timeout) after 3s"` {
		t.Error(got)
	}
}

// An activity that an item schedules and does not await is cancelled when the item ends.
func TestMap_itemLeavesActivityRunning_cancelsActivity(t *testing.T) {
	t.Parallel()
	w := orchestrate(t, func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
		results, err := perdure.Map(ctx, []int{1, 2}, func(ctx *perdure.OrchestrationContext, n int) (int, error) {
			perdure.CallActivity(ctx, inc, n)
			return n, nil
		})
		return len(results.Values()), errors.Join(err, perdure.Sleep(ctx, time.Second))
	})
	w.replayed()
	cancels := slices.DeleteFunc(slices.Clone(w.history), func(ev history.Event) bool {
		return ev.Kind != history.ActivityCancelRequested
	})
	if len(cancels) != 2 || !strings.Contains(cancels[0].String(), "dropped_future") {
		t.Errorf("got %v", w.history)
	}
}

func TestMap_tenThousandItems_replays(t *testing.T) {
	t.Parallel()
	items := make([]int, 10_000)
	w := orchestrate(t, func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
		results, err := perdure.Map(ctx, items, func(ctx *perdure.OrchestrationContext, n int) (int, error) {
			return perdure.CallActivity(ctx, inc, n).Await(ctx)
		}, perdure.MaxConcurrency(100))
		return len(results.Values()), err
	})
	if got := w.run().replayed().output(); got != "10000" {
		t.Error(got)
	}
}

// The compensation of a failed item does not cancel the calls of other items. By default, Map runs all items to their
// ends.
func TestMap_itemCompensates_otherItemsContinue(t *testing.T) {
	t.Parallel()
	w := orchestrate(t, func(ctx *perdure.OrchestrationContext, _ int) (string, error) {
		results, _ := perdure.Map(ctx, []int{-1, 2}, func(ctx *perdure.OrchestrationContext, n int) (m int, err error) {
			defer perdure.Compensate(ctx, &err, func(*perdure.OrchestrationContext) error { return nil })
			if n < 0 {
				return nap(ctx, n)
			}
			return perdure.CallActivityByName[int](ctx, "far", n, perdure.WaitForCancellation()).Await(ctx)
		})
		return fmt.Sprint(results[0].Err, ", ", results[1].Value, " ", results[1].Err), nil
	})
	w.run()
	for _, ev := range w.history {
		if ev.Kind == history.ActivityCancelRequested {
			t.Errorf("got %s, but the call belongs to another item", ev.String())
		}
	}
	w.turn(outcome(4, "3"))
	if got := w.replayed().output(); got != `"after 1, 3 \u003cnil\u003e"` {
		t.Error(got)
	}
}
