package scenarios

import (
	"context"
	"fmt"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
)

// changes has what a body does that is changed while its instances run.
func changes() []Scenario {
	return []Scenario{
		{
			Name: "VersionsOfAChange", Register: body(goesByAChange),
			Check: all(gives("[2 2 2 2 2 2], then [7 7]"), executions(2), marked("the tax")),
		},
	}
}

// goesByAChange goes by one version of a change in a loop, a cancelled scope, a coroutine and items of a Map, with
// waits between; its next execution decides anew.
func goesByAChange(ctx *perdure.OrchestrationContext, before []int) (string, error) {
	if len(before) > 0 {
		got, err := inALoop(ctx, "the tax", 7)
		return fmt.Sprintf("%v, then %v", before, got), err
	}

	got, err := inALoop(ctx, "the rate", 2)
	if err != nil {
		return "", err
	}
	scope, cancel := perdure.WithCancel(ctx)
	cancel()
	got = append(got, perdure.Version(scope, "the rate", perdure.DefaultVersion, 2))
	asked, err := perdure.Async(ctx, func(ctx *perdure.OrchestrationContext) (int, error) {
		return perdure.Version(ctx, "the rate", 2, 9), nil
	}).Await(ctx)
	if err != nil {
		return "", err
	}
	mapped, err := perdure.Map(ctx, []int{1, 2}, func(ctx *perdure.OrchestrationContext, n int) (int, error) {
		_, err := perdure.CallActivity(ctx, inc, n).Await(ctx)
		return perdure.Version(ctx, "the rate", perdure.DefaultVersion, 2), err
	})
	if err != nil {
		return "", err
	}
	return perdure.ContinueAsNew[string](ctx, append(append(got, asked), mapped.Values()...))
}

// inALoop asks about a change in two turns.
func inALoop(ctx *perdure.OrchestrationContext, change string, most int) (got []int, err error) {
	for n := range 2 {
		got = append(got, perdure.Version(ctx, change, perdure.DefaultVersion, most))
		if _, err := perdure.CallActivity(ctx, inc, n).Await(ctx); err != nil {
			return nil, err
		}
	}
	return got, nil
}

// marked: the history of the current execution has the version of this change once, and of no other.
func marked(change string) Check {
	return func(ctx context.Context, c *client.Client, s client.Status) error {
		var marks []string
		for e, err := range c.History(ctx, s.InstanceID) {
			if err != nil {
				return err
			}
			if e.Kind == history.VersionMarked {
				marks = append(marks, e.ChangeID)
			}
		}
		if len(marks) != 1 || marks[0] != change {
			return fmt.Errorf("history has versions of %q, want of %q", marks, change)
		}
		return nil
	}
}
