package scenarios

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
)

// unwindsSlowly is Cancelling for a while.
func unwindsSlowly(ctx *perdure.OrchestrationContext, tick time.Duration) (string, error) {
	if word, err := waits(ctx, struct{}{}); err == nil {
		return word, nil
	}
	safe := perdure.WithoutCancel(ctx)
	return "", errors.Join(ctx.Err(), perdure.Sleep(safe, 24*tick))
}

// cancelsChild leaves the scope of a child that waits, and stays until that has unwound.
func cancelsChild(ctx *perdure.OrchestrationContext, tick time.Duration) (string, error) {
	scope, leave := perdure.WithCancel(ctx)
	below := perdure.CallSubOrchestrationByName[string](scope, "UnwindsSlowly", tick,
		perdure.WithInstanceID(ctx.InstanceID()+"/c"))
	if err := perdure.Sleep(ctx, 8*tick); err != nil {
		return "", err
	}
	leave()
	_, err := below.Await(ctx)
	return string(reasonOf(err)), perdure.Sleep(ctx, 60*tick)
}

// seesCancelling waits until the child is.
func seesCancelling(ctx context.Context, w World, id string) error {
	return w.until(ctx, id+"/c", func(s client.Status) bool { return s.Status == client.StatusCancelling })
}

// askedByParent: both histories tell who wanted the child to end: the parent's code, and to the child the parent.
func askedByParent(suffix string) Check {
	return func(ctx context.Context, c *client.Client, s client.Status) error {
		for id, want := range map[string]history.Event{
			s.InstanceID: {
				Kind: history.SubOrchestrationCancelRequested, RequestedBy: history.RequestedByOrchestration,
			},
			s.InstanceID + suffix: {Kind: history.CancelRequested, RequestedBy: "parent:" + s.InstanceID},
		} {
			var by []string
			for e, err := range c.History(ctx, id) {
				if err != nil {
					return err
				}
				if e.Kind == want.Kind {
					by = append(by, e.RequestedBy)
				}
			}
			if len(by) != 1 || by[0] != want.RequestedBy {
				return fmt.Errorf("%s has %s requested by %q, want it by %q", id, want.Kind, by, want.RequestedBy)
			}
		}
		return nil
	}
}

// cancelsStranger asks for a child of an id that is somebody else's, and cancels it at once. The cancel does not find
// its child: whoever has the id is of another start.
func cancelsStranger(ctx *perdure.OrchestrationContext, tick time.Duration) (string, error) {
	if _, err := waits(ctx, struct{}{}); err != nil {
		return "", err
	}
	below := perdure.CallSubOrchestrationByName[string](ctx, "Waits", struct{}{},
		perdure.WithInstanceID(ctx.InstanceID()+"/other"))
	below.Cancel("never mind")
	_, err := below.Await(ctx)
	return string(reasonOf(err)), perdure.Sleep(ctx, 60*tick)
}

// withStranger starts the other instance before the first asks for it.
func withStranger(ctx context.Context, w World, id string) error {
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

func strangerLives(ctx context.Context, c *client.Client, s client.Status) error {
	other, err := c.Wait(ctx, s.InstanceID+"/other")
	if err != nil {
		return err
	}
	return gives("still here")(ctx, c, other)
}

// answered: somebody who was asked to end has answered so.
func answered(kind history.Kind, failureType string) Check {
	return func(ctx context.Context, c *client.Client, s client.Status) error {
		for e, err := range c.History(ctx, s.InstanceID) {
			if err != nil {
				return err
			}
			if e.Kind == kind && e.Error != nil && e.Error.Type == failureType {
				return nil
			}
		}
		return fmt.Errorf("history has no %s with %s", kind, failureType)
	}
}

// neverBegan: the start was refused; or, where its sender died and only the cancel was sent again, that found nobody.
func neverBegan(ctx context.Context, c *client.Client, s client.Status) error {
	if answered(history.SubOrchestrationFailed, history.TypeAlreadyExists)(ctx, c, s) == nil {
		return nil
	}
	return answered(history.SubOrchestrationCancelFailed, history.TypeNotFound)(ctx, c, s)
}
