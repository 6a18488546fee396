// Package orders has mistakes that the linter does not find, as documented in the rules.
package orders

import (
	"context"
	"errors"
	"iter"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/perdure/perdure"
)

func send(context.Context, string) (string, error) { return "", nil }

// maporder: floats, ties, the last element that meets a condition, own iterators and iterators of reflect.
func order(ctx *perdure.OrchestrationContext, in map[string]float64) (float64, error) {
	sum, most, best, big := 0.0, 0.0, "", ""
	for name, n := range in {
		sum += n
		if n > most {
			most, best = n, name
		}
		if n > 3 {
			big = name
		}
	}
	for _, name := range slices.Collect(names(in)) {
		ctx.SetCustomStatus(name + best + big)
	}
	for it := reflect.ValueOf(in).MapRange(); it.Next(); {
		ctx.SetCustomStatus(it.Key().String())
	}
	return sum, nil
}

// maporder: ties of a sort by value, which leaves names with equal values in the order of the map.
func dearest(ctx *perdure.OrchestrationContext, prices map[string]int) (string, error) {
	var names []string
	for name := range prices {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return prices[b] - prices[a] })
	return perdure.CallActivity(ctx, send, names[0]).Await(ctx)
}

// continueasnew: the next execution expects a number, but its input is a string.
func counts(ctx *perdure.OrchestrationContext, n int) (string, error) {
	return perdure.ContinueAsNew[string](ctx, strconv.Itoa(n+1))
}

func names(m map[string]float64) iter.Seq[string] { return maps.Keys(m) }

// endless: a condition that is always true, and an exit for errors of one kind only.
func rounds(ctx *perdure.OrchestrationContext, in string) (string, error) {
	for n := 0; n >= 0; n++ {
		if err := perdure.Sleep(ctx, time.Hour); err != nil {
			return in, err
		}
	}
	for {
		if err := perdure.Sleep(ctx, time.Hour); errors.Is(err, context.Canceled) {
			return in, err
		}
	}
}

// unawaited: a future with another read, and a future in a field.
type kept struct{ sent *perdure.Future[string] }

func keeps(ctx *perdure.OrchestrationContext, in string) (bool, error) {
	var k kept
	k.sent = perdure.CallActivity(ctx, send, in)
	late := perdure.CreateTimer(ctx, time.Hour)
	return late.IsDone(), nil
}

// compensation: a wait two functions away from the defer.
func undone(ctx *perdure.OrchestrationContext, in string) (string, error) {
	defer undo(ctx)
	return in, nil
}

func undo(ctx *perdure.OrchestrationContext) { pause(ctx) }

func pause(ctx *perdure.OrchestrationContext) { _ = perdure.Sleep(ctx, time.Second) }

// compensation: a field that other code sets to a context of WithoutCancel.
type cleaner struct{ ctx *perdure.OrchestrationContext }

func (c *cleaner) clean() { _ = perdure.Sleep(c.ctx, time.Second) }

func cleaned(ctx *perdure.OrchestrationContext, in string) (string, error) {
	safe := &cleaner{ctx: perdure.WithoutCancel(ctx)}
	defer safe.clean()
	c := &cleaner{ctx: ctx}
	defer c.clean()
	return in, nil
}

// payload: values behind any.
type hidden struct{ id string }

func sends(ctx *perdure.OrchestrationContext, in string) (string, error) {
	var data any = hidden{in}
	perdure.RaiseEvent(ctx, "other", "done", data)
	return in, nil
}
