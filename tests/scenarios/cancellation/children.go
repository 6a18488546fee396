package cancellation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/tests/scenarios/internal/kit"
)

// cleanUpSlowly stays Cancelling for some time.
func cleanUpSlowly(ctx *perdure.OrchestrationContext, tick time.Duration) (string, error) {
	if word, err := kit.WaitForGo(ctx, struct{}{}); err == nil {
		return word, nil
	}
	safe := perdure.WithoutCancel(ctx)
	return "", errors.Join(ctx.Err(), perdure.Sleep(safe, 24*tick))
}

// cancelChild cancels the scope of a waiting child, and waits until the child has ended.
func cancelChild(ctx *perdure.OrchestrationContext, tick time.Duration) (string, error) {
	scope, leave := perdure.WithCancel(ctx)
	below := perdure.CallSubOrchestrationByName[string](scope, "UnwindsSlowly", tick,
		perdure.WithInstanceID(ctx.InstanceID()+"/c"))
	if err := perdure.Sleep(ctx, 8*tick); err != nil {
		return "", err
	}
	leave()
	_, err := below.Await(ctx)
	return string(kit.ReasonOf(err)), perdure.Sleep(ctx, 60*tick)
}

// awaitCancelling waits until the child is Cancelling.
func awaitCancelling(ctx context.Context, w kit.World, id string) error {
	return w.Until(ctx, id+"/c", func(s client.Status) bool { return s.Status == client.StatusCancelling })
}

// requestedByParent checks the requester in both histories: the parent's code, and the parent for the child.
func requestedByParent(suffix string) kit.Check {
	return func(ctx context.Context, c *client.Client, s client.Status) error {
		for id, want := range map[string]history.Event{
			s.InstanceID: {
				Kind: history.SubOrchestrationCancelRequested, RequestedBy: history.RequestedByOrchestration,
			},
			s.InstanceID + suffix: {Kind: history.CancelRequested, RequestedBy: "parent:" + s.InstanceID},
		} {
			requests, err := kit.EventsOf(ctx, c, id, want.Kind)
			if err != nil {
				return err
			}
			if len(requests) != 1 || requests[0].RequestedBy != want.RequestedBy {
				return fmt.Errorf("%s has the requests %v, want one by %q", id, requests, want.RequestedBy)
			}
		}
		return nil
	}
}

// cancelOther calls a child whose ID belongs to another instance, and cancels it immediately. The cancellation does not
// affect the other instance.
func cancelOther(ctx *perdure.OrchestrationContext, tick time.Duration) (string, error) {
	if _, err := kit.WaitForGo(ctx, struct{}{}); err != nil {
		return "", err
	}
	below := perdure.CallSubOrchestrationByName[string](ctx, "Waits", struct{}{},
		perdure.WithInstanceID(ctx.InstanceID()+"/other"))
	below.Cancel("never mind")
	_, err := below.Await(ctx)
	return string(kit.ReasonOf(err)), perdure.Sleep(ctx, 60*tick)
}

// startOther starts the other instance before the child is called.
func startOther(ctx context.Context, w kit.World, id string) error {
	if _, err := w.Client.Start(ctx, "Waits", nil, client.WithInstanceID(id+"/other"),
		client.WithIdempotencyKey("other")); err != nil {
		return err
	}
	if err := w.Client.RaiseEvent(ctx, id, "go", "on"); err != nil {
		return err
	}
	if _, err := w.Client.Wait(ctx, id); err != nil {
		return err
	}
	return w.Client.RaiseEvent(ctx, id+"/other", "go", "still here")
}

// hasFailure checks that the history has a failure of this type.
func hasFailure(kind history.Kind, failureType string) kit.Check {
	return func(ctx context.Context, c *client.Client, s client.Status) error {
		found, err := kit.EventsOf(ctx, c, s.InstanceID, kind)
		if err == nil && !slices.ContainsFunc(found, func(e history.Event) bool {
			return e.Error != nil && e.Error.Type == failureType
		}) {
			err = fmt.Errorf("history has no %s with %s", kind, failureType)
		}
		return err
	}
}

// childNotStarted checks that the start was rejected, or that the cancellation found no child because only it was sent
// again after a crash.
func childNotStarted(ctx context.Context, c *client.Client, s client.Status) error {
	if hasFailure(history.SubOrchestrationFailed, history.TypeAlreadyExists)(ctx, c, s) == nil {
		return nil
	}
	return hasFailure(history.SubOrchestrationCancelFailed, history.TypeNotFound)(ctx, c, s)
}
