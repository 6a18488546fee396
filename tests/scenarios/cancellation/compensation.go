package cancellation

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/tests/scenarios/internal/kit"
)

func compensationScenarios() []kit.Scenario {
	return []kit.Scenario{
		{
			Name: "CompensationAfterFailure", Register: kit.Run(trip()), Input: []string{
				"hotel", "flight", kit.SoldOut, "theatre",
			},
			Check: kit.Returns([]string{
				"reserved hotel", "reserved flight", "StockError", "released flight", "released hotel",
			}),
		},
		{
			Name: "InlineCompensated", Register: kit.Run(trip(perdure.Inline())),
			Input: []string{"train", "umbrella", kit.SoldOut},
			Check: kit.Returns([]string{
				"reserved train", "reserved umbrella", "StockError", "released umbrella", "released train",
			}),
		},
	}
}

// trip reserves the items in sequence. If one fails, it undoes the reservations, the latest first.
func trip(opts ...perdure.ActivityCallOption) func(*perdure.OrchestrationContext, []string) ([]string, error) {
	return func(ctx *perdure.OrchestrationContext, items []string) (log []string, err error) {
		var reserved []string
		for _, item := range items {
			done, err := perdure.CallActivity(ctx, kit.Reserve, item, opts...).Await(ctx)
			if err != nil {
				log = append(log, kit.FailureType(err))
				break
			}
			reserved, log = append(reserved, item), append(log, done)
		}
		if len(reserved) == len(items) {
			return log, nil
		}
		for _, item := range slices.Backward(reserved) {
			done, err := perdure.CallActivity(ctx, kit.Undo, item, opts...).Await(ctx)
			if err != nil {
				return log, err
			}
			log = append(log, done)
		}
		return log, nil
	}
}

// undoAfterEnd undoes an activity when it is cancelled. Compensate waits for the end of the activity.
func undoAfterEnd(ctx *perdure.OrchestrationContext, _ time.Duration) (_ string, err error) {
	defer perdure.Compensate(ctx, &err, func(ctx *perdure.OrchestrationContext) error {
		_, err := perdure.CallActivity(ctx, kit.Undo, "watch").Await(ctx)
		return err
	})
	watched := perdure.CallActivity(ctx, watch, struct{}{}, perdure.WaitForCancellation())
	ctx.SetCustomStatus("waiting")
	return watched.Await(ctx)
}

// undoneAfterEnd checks that the history has the end of an activity before its undo.
func undoneAfterEnd(name string) kit.Check {
	return func(ctx context.Context, c *client.Client, s client.Status) error {
		called, ended := int64(0), false
		for e, err := range c.History(ctx, s.InstanceID) {
			switch {
			case err != nil:
				return err
			case e.Kind == history.ActivityScheduled && e.Name == name:
				called = e.ID
			case e.SourceEventID == called && (e.Kind == history.ActivityCompleted || e.Kind == history.ActivityFailed):
				ended = true
			case e.Kind == history.ActivityScheduled && !ended:
				return fmt.Errorf("event %s is before the end of %s", e.String(), name)
			}
		}
		if !ended {
			return fmt.Errorf("%s has no end", name)
		}
		return nil
	}
}
