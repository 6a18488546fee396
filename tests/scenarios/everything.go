package scenarios

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
)

func everything(tick time.Duration) []Scenario {
	return []Scenario{
		{
			Name: "EverythingTogether", Register: body(together), Input: Round{Tick: tick}, Drive: approves,
			Check: all(gives("20 in 2 rounds"), executions(3), customStatus(`"over"`), besides("/0", "hello, 0"),
				besides("/1", "hello, 1")),
		},
	}
}

// Round is what together carries from execution to execution.
type Round struct {
	Number, Total int
	Tick          time.Duration
}

// together does a bit of each thing in every execution.
func together(ctx *perdure.OrchestrationContext, r Round) (string, error) {
	if r.Number == 2 {
		ctx.SetCustomStatus("over")
		return fmt.Sprintf("%d in %d rounds", r.Total, r.Number), nil
	}
	factor := perdure.SideEffect(ctx, func() int { return 1 })
	n, err := work(ctx, r.Tick)
	if err != nil {
		return "", err
	}
	ctx.SetCustomStatus(fmt.Sprintf("round %d", r.Number))
	approved, late := perdure.WaitForExternalEvent[int](ctx, "approve"), perdure.CreateTimer(ctx, 60*r.Tick)
	if first, err := perdure.Select(ctx, approved, late); err != nil || first == 1 {
		return "", errors.Join(err, errors.New("nobody approved"))
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
	return perdure.ContinueAsNew[string](ctx, Round{r.Number + 1, r.Total + factor*n + bonus, r.Tick})
}

// work has a child, a retried activity and a timer side by side, the latter two in coroutines.
func work(ctx *perdure.OrchestrationContext, tick time.Duration) (int, error) {
	child := perdure.CallSubOrchestrationByName[int](ctx, "Counts", 2)
	tried := perdure.Async(ctx, func(ctx *perdure.OrchestrationContext) (int, error) {
		policy := perdure.RetryPolicy{InitialInterval: tick}
		return perdure.CallActivity(ctx, flaky, 2, perdure.WithRetry(policy)).Await(ctx)
	})
	slept := perdure.Async(ctx, func(ctx *perdure.OrchestrationContext) (int, error) {
		return 1, perdure.Sleep(ctx, tick)
	})
	return total(ctx, []*perdure.Future[int]{child, tried, slept})
}

// approves raises an event for the first round, and later again, before that for the second.
func approves(ctx context.Context, w World, id string) error {
	if err := w.untilStatus(ctx, id, "round 0"); err != nil {
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
