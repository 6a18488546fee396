package basics

import (
	"context"
	"fmt"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/tests/scenarios/internal/kit"
)

func statusScenarios(tick time.Duration) []kit.Scenario {
	return []kit.Scenario{
		{
			Name: "CustomStatus", Register: kit.Run(reportProgress), Input: 3,
			Check: kit.All(kit.Returns(3), kit.CustomStatus(`{"done":3,"of":3}`)),
		},
		{
			Name: "StatusPolling", Register: kit.Run(stages), Drive: advanceStages,
			Check: kit.All(kit.Returns("stage 3"), kit.CustomStatus(`"over"`)),
		},
		{Name: "Monitor", Register: kit.Run(monitor), Input: tick, Check: kit.Returns("ready after 3 polls")},
	}
}

// Progress is a custom status.
type Progress struct {
	Done int `json:"done"`
	Of   int `json:"of"`
}

func reportProgress(ctx *perdure.OrchestrationContext, n int) (int, error) {
	for i := range n {
		ctx.SetCustomStatus(Progress{i, n})
		if _, err := perdure.CallActivity(ctx, kit.Inc, i).Await(ctx); err != nil {
			return 0, err
		}
		ctx.SetCustomStatus(Progress{i + 1, n})
		ctx.SetCustomStatus(Progress{i + 1, n}) // no change
	}
	return n, nil
}

// stages sets its stage as custom status and continues at each event "next".
func stages(ctx *perdure.OrchestrationContext, _ struct{}) (string, error) {
	for i := range 3 {
		ctx.SetCustomStatus(fmt.Sprintf("stage %d", i+1))
		if _, err := perdure.WaitForExternalEvent[struct{}](ctx, "next").Await(ctx); err != nil {
			return "", err
		}
	}
	ctx.SetCustomStatus("over")
	return "stage 3", nil
}

// advanceStages raises "next" when the instance reaches each stage.
func advanceStages(ctx context.Context, w kit.World, id string) error {
	for i := range 3 {
		if err := w.UntilStatus(ctx, id, fmt.Sprintf("stage %d", i+1)); err != nil {
			return err
		}
		if err := w.Client.RaiseEvent(ctx, id, "next", struct{}{}); err != nil {
			return err
		}
	}
	return nil
}

// monitor calls an activity in intervals until its result is large enough.
func monitor(ctx *perdure.OrchestrationContext, tick time.Duration) (string, error) {
	for polls := 1; ; polls++ {
		n, err := perdure.CallActivity(ctx, kit.Inc, polls).Await(ctx)
		if err != nil {
			return "", err
		}
		if n > 3 {
			return fmt.Sprintf("ready after %d polls", polls), nil
		}
		if err := perdure.Sleep(ctx, tick); err != nil {
			return "", err
		}
	}
}
