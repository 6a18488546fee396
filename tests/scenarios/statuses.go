package scenarios

import (
	"context"
	"fmt"
	"time"

	"github.com/perdure/perdure"
)

func statuses(tick time.Duration) []Scenario {
	return []Scenario{
		{
			Name: "CustomStatus", Register: body(reports), Input: 3,
			Check: all(gives(3), customStatus(`{"done":3,"of":3}`)),
		},
		{
			Name: "StatusPolling", Register: body(stages), Drive: polls,
			Check: all(gives("stage 3"), customStatus(`"over"`)),
		},
		{Name: "Monitor", Register: body(monitor), Input: tick, Check: gives("ready after 3 looks")},
	}
}

// Progress is a custom status.
type Progress struct {
	Done int `json:"done"`
	Of   int `json:"of"`
}

func reports(ctx *perdure.OrchestrationContext, n int) (int, error) {
	for i := range n {
		ctx.SetCustomStatus(Progress{i, n})
		if _, err := perdure.CallActivity(ctx, inc, i).Await(ctx); err != nil {
			return 0, err
		}
		ctx.SetCustomStatus(Progress{i + 1, n})
		ctx.SetCustomStatus(Progress{i + 1, n}) // nothing new
	}
	return n, nil
}

// stages says where it is, and goes on when it is told.
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

// polls waits for each stage before it lets the instance go on to the next.
func polls(ctx context.Context, w World, id string) error {
	for i := range 3 {
		if err := w.untilStatus(ctx, id, fmt.Sprintf("stage %d", i+1)); err != nil {
			return err
		}
		if err := w.Client.RaiseEvent(ctx, id, "next", struct{}{}); err != nil {
			return err
		}
	}
	return nil
}

// monitor looks at something from time to time, until it is ready.
func monitor(ctx *perdure.OrchestrationContext, tick time.Duration) (string, error) {
	for looks := 1; ; looks++ {
		n, err := perdure.CallActivity(ctx, inc, looks).Await(ctx)
		if err != nil {
			return "", err
		}
		if n > 3 {
			return fmt.Sprintf("ready after %d looks", looks), nil
		}
		if err := perdure.Sleep(ctx, tick); err != nil {
			return "", err
		}
	}
}
