package scenarios

import (
	"context"
	"fmt"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
)

// watchesAndUndoes calls what it undoes when it is cancelled, and that waits for the end of the call.
func watchesAndUndoes(ctx *perdure.OrchestrationContext, _ time.Duration) (_ string, err error) {
	defer perdure.Compensate(ctx, &err, func(ctx *perdure.OrchestrationContext) error {
		_, err := perdure.CallActivity(ctx, undo, "watch").Await(ctx)
		return err
	})
	watching := perdure.CallActivity(ctx, watch, struct{}{}, perdure.WaitForCancellation())
	ctx.SetCustomStatus("waiting")
	return watching.Await(ctx)
}

// undoneAfter checks that history has the end of an activity before what undoes it.
func undoneAfter(name string) Check {
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
				return fmt.Errorf("%s is before the end of %s", e.String(), name)
			}
		}
		if !ended {
			return fmt.Errorf("%s has no end", name)
		}
		return nil
	}
}
