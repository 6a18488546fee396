package perdure_test

import (
	"context"
	"fmt"
	"time"

	"github.com/perdure/perdure"
)

func ExampleTurnTasks() {
	waits := perdure.Interceptor{
		OnTasks: func(_ context.Context, t perdure.TurnTasks) {
			for _, x := range t.Ended {
				if x.Kind == perdure.TaskTimer {
					fmt.Printf("%s has waited %v for %q: %s %s\n", t.InstanceID, x.EndedAt.Sub(x.ScheduledAt), x.Name,
						x.Outcome, x.Reason)
				}
			}
		},
	}
	// lambdahandler.NewOrchestrator(ctx, registry, lambdahandler.WithInterceptors(waits)) calls waits after each turn:
	at := time.Date(2026, 11, 25, 8, 0, 0, 0, time.UTC)
	waits.OnTasks(context.Background(),
		perdure.TurnTasks{InstanceID: "order-7", Sequence: 4, Ended: []perdure.TaskInfo{{
			ID: 5, Kind: perdure.TaskTimer, Name: "payment window", ScheduledAt: at, ScheduledInTurn: 2,
			DueAt: at.Add(time.Hour), EndedAt: at.Add(3 * time.Minute),
			Outcome: perdure.TaskCancelled, Reason: string(perdure.ReasonSelectLoser),
		}}})

	// Output: order-7 has waited 3m0s for "payment window": cancelled select_loser
}
