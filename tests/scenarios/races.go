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

func races(tick time.Duration) []Scenario {
	return []Scenario{
		{
			Name: "TimeoutAsTimerRace", Register: body(raced), Input: Race{10 * tick, tick},
			Check: gives("the timer: the other is cancelled (select_loser)"),
		},
		{
			Name: "ActivityBeatsTimer", Register: body(raced), Input: Race{0, 60 * tick},
			Check: gives("rested: the other is cancelled (select_loser)"),
		},
		{Name: "ActivityBeatsEvent", Register: body(either), Input: tick, Check: gives("activity")},
		{
			Name: "EventBeatsActivity", Register: body(either), Input: 10 * tick, Drive: tellsToGo,
			Check: gives("event: now"),
		},
		{
			Name: "EventBeatsTimer", Register: body(approval), Input: 60 * tick, Drive: tellsToGo,
			Check: all(gives("approved: now"), timed("too late")),
		},
		{
			Name: "TimerBeatsEvent", Register: body(approval), Input: tick,
			Check: all(gives("too late"), timed("too late")),
		},
		{
			Name: "StartToClose", Register: body(tooSlow), Input: tick,
			Check: all(fails("ActivityError", "start-to-close"), causedBy("timeout")),
		},
		{Name: "LongTimer", Register: body(sleeps), Input: 20 * 60 * tick, Virtual: true, Check: gives("slept")},
	}
}

// Race is how long an activity takes, and a timer.
type Race struct{ Activity, Timer time.Duration }

// raced lets an activity and a timer race, and says which was first and what became of the other.
func raced(ctx *perdure.OrchestrationContext, r Race) (string, error) {
	work, late := perdure.CallActivity(ctx, nap, r.Activity), perdure.CreateTimer(ctx, r.Timer)
	first, err := perdure.Select(ctx, work, late)
	if err != nil {
		return "", err
	}
	if first == 0 {
		text, err := work.Await(ctx)
		_, lost := late.Await(ctx)
		return fmt.Sprintf("%s: the other is %v", text, lost), err
	}
	_, lost := work.Await(ctx)
	if cancelled, ok := errors.AsType[*perdure.CancelledError](lost); !ok ||
		cancelled.Reason != perdure.ReasonSelectLoser {
		return "", fmt.Errorf("the loser was not told that it lost: %w", lost)
	}
	return fmt.Sprintf("the timer: the other is %v", lost), nil
}

// either lets an activity and an external event race.
func either(ctx *perdure.OrchestrationContext, d time.Duration) (string, error) {
	ctx.SetCustomStatus("waiting")
	work, told := perdure.CallActivity(ctx, nap, d), perdure.WaitForExternalEvent[string](ctx, "go")
	first, err := perdure.Select(ctx, work, told)
	if err != nil || first == 0 {
		return "activity", err
	}
	text, err := told.Await(ctx)
	return "event: " + text, err
}

// approval waits for an event, but not for ever.
func approval(ctx *perdure.OrchestrationContext, limit time.Duration) (string, error) {
	ctx.SetCustomStatus("waiting")
	approved, late := perdure.WaitForExternalEvent[string](ctx, "go"),
		perdure.CreateTimer(ctx, limit, perdure.WithTimerName("too late"))
	first, err := perdure.Select(ctx, approved, late)
	if err != nil || first == 1 {
		return "too late", err
	}
	text, err := approved.Await(ctx)
	return "approved: " + text, err
}

// timed: the history has one timer, of that name.
func timed(name string) Check {
	return func(ctx context.Context, c *client.Client, s client.Status) error {
		var names []string
		for e, err := range c.History(ctx, s.InstanceID) {
			if err != nil {
				return err
			}
			if e.Kind == history.TimerCreated {
				names = append(names, e.DisplayName())
			}
		}
		if len(names) != 1 || names[0] != name {
			return fmt.Errorf("history has timers %q, want %q", names, name)
		}
		return nil
	}
}

// tellsToGo raises an event once the instance waits for it.
func tellsToGo(ctx context.Context, w World, id string) error {
	if err := w.untilStatus(ctx, id, "waiting"); err != nil {
		return err
	}
	return w.Client.RaiseEvent(ctx, id, "go", "now")
}

// sleeps checks that a timer is not early.
func sleeps(ctx *perdure.OrchestrationContext, d time.Duration) (string, error) {
	began := ctx.Now()
	if err := perdure.Sleep(ctx, d); err != nil {
		return "", err
	}
	if slept := ctx.Now().Sub(began); slept < d {
		return "", fmt.Errorf("it slept for %v of %v", slept, d)
	}
	return "slept", nil
}
