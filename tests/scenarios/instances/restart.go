package instances

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/tests/scenarios/internal/kit"
)

// restartScenarios restart ended instances from an event of their history.
func restartScenarios(tick time.Duration) []kit.Scenario {
	return []kit.Scenario{
		{
			Name: "RestartFromAnEvent", Register: kit.Run(drawTwice, addDraw), Input: tick,
			Drive: restartAfterFirstDraw, Check: firstDrawKept,
		},
	}
}

// Draws has the values that an orchestration drew, and its instance ID at two points.
type Draws struct{ First, Second, Child, Then, Now string }

func addDraw(r *perdure.Registry) {
	perdure.AddActivity(r, "Draw", func(context.Context, struct{}) (string, error) { return rand.Text(), nil })
}

// drawTwice draws two values, with a child and a timer.
func drawTwice(ctx *perdure.OrchestrationContext, tick time.Duration) (d Draws, err error) {
	child := perdure.CallSubOrchestrationByName[string](ctx, "Sleeps", tick)
	rest := perdure.CreateTimer(ctx, 2*tick)
	d.Then = ctx.InstanceID()
	if d.First, err = perdure.CallActivityByName[string](ctx, "Draw", struct{}{}).Await(ctx); err != nil {
		return d, err
	}
	d.Now = ctx.InstanceID()
	if d.Second, err = perdure.CallActivityByName[string](ctx, "Draw", struct{}{}).Await(ctx); err != nil {
		return d, err
	}
	if err = perdure.WhenAll(ctx, child, rest); err != nil {
		return d, err
	}
	d.Child, err = child.Await(ctx)
	return d, err
}

// restartAfterFirstDraw restarts the ended instance from its first result, twice, and waits for the new instance.
func restartAfterFirstDraw(ctx context.Context, w kit.World, id string) error {
	over := func(s client.Status) bool { return s.Status.Terminal() }
	if err := w.Until(ctx, id, over); err != nil {
		return err
	}
	events, err := client.Collect(w.Client.History(ctx, id))
	if err != nil {
		return err
	}
	first := slices.IndexFunc(events, func(e history.Event) bool { return e.Kind == history.ActivityCompleted })
	if first < 0 {
		return errors.New("history has no result")
	}
	for range 2 {
		if again, err := w.Client.Restart(ctx, id, client.FromEvent(events[first].ID),
			client.WithInstanceID(id+"/again")); err != nil || again != id+"/again" {
			return fmt.Errorf("restarted as %q: %w", again, err)
		}
	}
	return w.Until(ctx, id+"/again", over)
}

// firstDrawKept checks that the new instance has the first value and another second one, and that its history names its
// source.
func firstDrawKept(ctx context.Context, c *client.Client, s client.Status) error {
	now, err := c.Status(ctx, s.InstanceID+"/again")
	if err != nil {
		return err
	}
	was, err := client.Result[Draws](s)
	if err != nil {
		return err
	}
	is, err := client.Result[Draws](now)
	if err != nil {
		return err
	}
	want := Draws{First: was.First, Second: is.Second, Child: was.Child, Then: s.InstanceID, Now: now.InstanceID}
	if is != want || is.Second == was.Second {
		return fmt.Errorf("drew %+v, restarted instance %+v", was, is)
	}
	events, err := client.Collect(c.History(ctx, now.InstanceID))
	if err != nil {
		return err
	}
	at := slices.IndexFunc(events, func(e history.Event) bool { return e.Kind == history.ExecutionRestarted })
	if at < 0 || events[at].Parent == nil || events[at].Parent.InstanceID != s.InstanceID ||
		events[at].Parent.ExecutionID != s.ExecutionID {
		return fmt.Errorf("history does not name its source: %v", events)
	}
	return nil
}
