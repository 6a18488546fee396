package versions

import (
	"context"
	"fmt"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/tests/scenarios/internal/kit"
)

// changeScenarios use versions of a change.
func changeScenarios() []kit.Scenario {
	return []kit.Scenario{
		{
			Name: "VersionsOfAChange", Register: kit.Run(readChanges),
			Check: kit.All(kit.Returns("[2 2 2 2 2 2], then [7 7]"), kit.Executions(2), markedOnce("the tax")),
		},
	}
}

// readChanges reads the version of a change in a loop, a cancelled scope, a coroutine and items of a Map, with waits
// between them. Its next execution decides again.
func readChanges(ctx *perdure.OrchestrationContext, before []int) (string, error) {
	if len(before) > 0 {
		got, err := readTwice(ctx, "the tax", 7)
		return fmt.Sprintf("%v, then %v", before, got), err
	}

	got, err := readTwice(ctx, "the rate", 2)
	if err != nil {
		return "", err
	}
	scope, cancel := perdure.WithCancel(ctx)
	cancel()
	got = append(got, perdure.Version(scope, "the rate", perdure.DefaultVersion, 2))
	requested, err := perdure.Async(ctx, func(ctx *perdure.OrchestrationContext) (int, error) {
		return perdure.Version(ctx, "the rate", 2, 9), nil
	}).Await(ctx)
	if err != nil {
		return "", err
	}
	mapped, err := perdure.Map(ctx, []int{1, 2}, func(ctx *perdure.OrchestrationContext, n int) (int, error) {
		_, err := perdure.CallActivity(ctx, kit.Inc, n).Await(ctx)
		return perdure.Version(ctx, "the rate", perdure.DefaultVersion, 2), err
	})
	if err != nil {
		return "", err
	}
	return perdure.ContinueAsNew[string](ctx, append(append(got, requested), mapped.Values()...))
}

// readTwice reads the version of a change in two turns.
func readTwice(ctx *perdure.OrchestrationContext, change string, most int) (got []int, err error) {
	for n := range 2 {
		got = append(got, perdure.Version(ctx, change, perdure.DefaultVersion, most))
		if _, err := perdure.CallActivity(ctx, kit.Inc, n).Await(ctx); err != nil {
			return nil, err
		}
	}
	return got, nil
}

// markedOnce checks that the history of the current execution has one version, of this change.
func markedOnce(change string) kit.Check {
	return func(ctx context.Context, c *client.Client, s client.Status) error {
		marks, err := kit.EventsOf(ctx, c, s.InstanceID, history.VersionMarked)
		if err == nil && (len(marks) != 1 || marks[0].ChangeID != change) {
			err = fmt.Errorf("history has the versions %v, want one of %q", marks, change)
		}
		return err
	}
}
