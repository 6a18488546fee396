package basics

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/tests/scenarios/internal/kit"
)

func togetherScenarios(tick time.Duration) []kit.Scenario {
	return []kit.Scenario{
		{
			Name: "AllFeaturesTogether", Register: kit.Run(allFeatures), Input: RoundInput{Tick: tick},
			Drive: raiseApprovals,
			Check: kit.All(kit.Returns("20 in 2 rounds"), kit.Executions(3), kit.CustomStatus(`"over"`),
				kit.OtherReturns("/0", "hello, 0"),
				kit.OtherReturns("/1", "hello, 1")),
		},
	}
}

// RoundInput is the input of each execution of allFeatures.
type RoundInput struct {
	Number, Total int
	Tick          time.Duration
}

// allFeatures uses several features in each execution.
func allFeatures(ctx *perdure.OrchestrationContext, r RoundInput) (string, error) {
	if r.Number == 2 {
		ctx.SetCustomStatus("over")
		return fmt.Sprintf("%d in %d rounds", r.Total, r.Number), nil
	}
	factor := perdure.SideEffect(ctx, func() int { return 1 })
	n, err := roundWork(ctx, r.Tick)
	if err != nil {
		return "", err
	}
	ctx.SetCustomStatus(fmt.Sprintf("round %d", r.Number))
	approved, late := perdure.WaitForExternalEvent[int](ctx, "approve"), perdure.CreateTimer(ctx, 60*r.Tick)
	if first, err := perdure.Select(ctx, approved, late); err != nil || first == 1 {
		return "", errors.Join(err, errors.New("not approved"))
	}
	bonus, err := approved.Await(ctx)
	if err != nil {
		return "", err
	}
	id := fmt.Sprintf("%s/%d", ctx.InstanceID(), r.Number)
	if _, err := perdure.StartOrchestration(ctx, "Hello-detached", strconv.Itoa(r.Number),
		perdure.WithInstanceID(id)); err != nil {
		return "", err
	}
	return perdure.ContinueAsNew[string](ctx, RoundInput{r.Number + 1, r.Total + factor*n + bonus, r.Tick})
}

// roundWork runs a child, a retried activity and a timer concurrently, the latter two in coroutines.
func roundWork(ctx *perdure.OrchestrationContext, tick time.Duration) (int, error) {
	child := perdure.CallSubOrchestrationByName[int](ctx, "Counts", 2)
	tried := perdure.Async(ctx, func(ctx *perdure.OrchestrationContext) (int, error) {
		policy := perdure.RetryPolicy{InitialInterval: tick}
		return perdure.CallActivity(ctx, kit.Flaky, 2, perdure.WithRetry(policy)).Await(ctx)
	})
	slept := perdure.Async(ctx, func(ctx *perdure.OrchestrationContext) (int, error) {
		return 1, perdure.Sleep(ctx, tick)
	})
	return kit.SumOf(ctx, []*perdure.Future[int]{child, tried, slept})
}

// raiseApprovals raises the event of the first round, repeats it, and raises the event of the second round.
func raiseApprovals(ctx context.Context, w kit.World, id string) error {
	if err := w.UntilStatus(ctx, id, "round 0"); err != nil {
		return err
	}
	for _, n := range []int{0, 0, 1} {
		if err := w.Client.RaiseEvent(ctx, id, "approve", 5,
			client.WithEventID(fmt.Sprint("approval-", n))); err != nil {
			return err
		}
		if n == 0 {
			w.Pass(6 * w.Tick)
		}
	}
	return nil
}
