package scenarios

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
)

// restarting is what is over beginning again behind an event of its history.
func restarting(tick time.Duration) []Scenario {
	return []Scenario{
		{
			Name: "RestartFromAnEvent", Register: body(drawsTwice, draws), Input: tick,
			Drive: restartsBehindTheFirstDraw, Check: keptTheFirstDraw,
		},
	}
}

// Draws is what an orchestration has drawn, and who it was then.
type Draws struct{ First, Second, Child, Then, Now string }

func draws(r *perdure.Registry) {
	perdure.AddActivity(r, "Draw", func(context.Context, struct{}) (string, error) { return rand.Text(), nil })
}

// drawsTwice draws beside a child and a timer.
func drawsTwice(ctx *perdure.OrchestrationContext, tick time.Duration) (d Draws, err error) {
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

// restartsBehindTheFirstDraw restarts the instance once it is over, twice, and waits for the new one.
func restartsBehindTheFirstDraw(ctx context.Context, w World, id string) error {
	over := func(s client.Status) bool { return s.Status.Terminal() }
	if err := w.until(ctx, id, over); err != nil {
		return err
	}
	events, err := client.Collect(w.Client.History(ctx, id))
	if err != nil {
		return err
	}
	first := slices.IndexFunc(events, func(e history.Event) bool { return e.Kind == history.ActivityCompleted })
	if first < 0 {
		return errors.New("nothing was drawn")
	}
	for range 2 {
		if again, err := w.Client.Restart(ctx, id, client.FromEvent(events[first].ID),
			client.WithInstanceID(id+"/again")); err != nil || again != id+"/again" {
			return fmt.Errorf("restarted as %q: %w", again, err)
		}
	}
	return w.until(ctx, id+"/again", over)
}

// keptTheFirstDraw: the first draw was not made again, all that came behind it was, and the new instance says where it
// came from.
func keptTheFirstDraw(ctx context.Context, c *client.Client, s client.Status) error {
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
		return fmt.Errorf("it drew %+v, restarted %+v", was, is)
	}
	events, err := client.Collect(c.History(ctx, now.InstanceID))
	if err != nil {
		return err
	}
	at := slices.IndexFunc(events, func(e history.Event) bool { return e.Kind == history.ExecutionRestarted })
	if at < 0 || events[at].Parent == nil || events[at].Parent.InstanceID != s.InstanceID ||
		events[at].Parent.ExecutionID != s.ExecutionID {
		return fmt.Errorf("its history does not say where it came from: %v", events)
	}
	return nil
}
