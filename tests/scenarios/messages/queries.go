package messages

import (
	"context"
	"fmt"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/tests/scenarios/internal/kit"
)

// queryScenarios query and update instances.
func queryScenarios() []kit.Scenario {
	return []kit.Scenario{
		{
			Name: "Updates", Register: kit.Run(account), Input: 1, Drive: updateAccount,
			Check: kit.All(kit.Returns("balance 17"), kit.Executions(2),
				updateFails("leave", "d9", client.UpdateAborted)),
		},
		{
			Name: "Queries", Register: kit.Run(countSteps), Input: 3, Drive: queryEachStep,
			Check: kit.All(kit.Returns("received 3"), queryReturns("steps", 10, 13)),
		},
	}
}

// countSteps continues at each event "next". Its queries return the number of events.
func countSteps(ctx *perdure.OrchestrationContext, n int) (string, error) {
	count := 0
	if err := perdure.SetQueryHandler(ctx, "steps", func(more int) (int, error) {
		return count + more, nil
	}); err != nil {
		return "", err
	}
	if err := perdure.SetQueryHandler(ctx, "spoils", func(struct{}) (int, error) {
		count = 99
		return count, nil
	}); err != nil {
		return "", err
	}
	for count < n {
		if _, err := perdure.WaitForExternalEvent[struct{}](ctx, "next").Await(ctx); err != nil {
			return "", err
		}
		if _, err := perdure.CallActivity(ctx, kit.Inc, count).Await(ctx); err != nil {
			return "", err
		}
		count++
	}
	return fmt.Sprint("received ", count), nil
}

// queryEachStep queries the instance until it reaches each step, and then continues it. A query that changes variables
// has no effect.
func queryEachStep(ctx context.Context, w kit.World, id string) error {
	for i := range 3 {
		if err := w.UntilQuery(ctx, id, "steps", 0, i); err != nil {
			return err
		}
		if err := w.UntilQuery(ctx, id, "spoils", struct{}{}, 99); err != nil {
			return err
		}
		if err := w.Client.RaiseEvent(ctx, id, "next", struct{}{},
			client.WithEventID(fmt.Sprint("next ", i))); err != nil {
			return err
		}
	}
	return nil
}

// queryReturns checks the result of a query of the ended instance.
func queryReturns(query string, input, want any) kit.Check {
	return func(ctx context.Context, c *client.Client, s client.Status) error {
		response, err := c.Query(ctx, s.InstanceID, query, input)
		if err == nil && string(response) != fmt.Sprint(want) {
			err = fmt.Errorf("query %q: got %s, want %v", query, response, want)
		}
		return err
	}
}
