package futures

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/tests/scenarios/internal/kit"
)

func raceScenarios(tick time.Duration) []kit.Scenario {
	return []kit.Scenario{
		{
			Name: "TimeoutAsTimerRace", Register: kit.Run(raceTimer), Input: RaceInput{10 * tick, tick},
			Check: kit.Returns("the timer: the other is cancelled (select_loser)"),
		},
		{
			Name: "ActivityBeatsTimer", Register: kit.Run(raceTimer), Input: RaceInput{0, 60 * tick},
			Check: kit.Returns("rested: the other is cancelled (select_loser)"),
		},
		{Name: "ActivityBeatsEvent", Register: kit.Run(raceEvent), Input: tick, Check: kit.Returns("activity")},
		{
			Name: "EventBeatsActivity", Register: kit.Run(raceEvent), Input: 10 * tick, Drive: raiseGo,
			Check: kit.Returns("event: now"),
		},
		{
			Name: "EventBeatsTimer", Register: kit.Run(awaitApproval), Input: 60 * tick, Drive: raiseGo,
			Check: kit.All(kit.Returns("approved: now"), hasTimer("too late")),
		},
		{
			Name: "TimerBeatsEvent", Register: kit.Run(awaitApproval), Input: tick,
			Check: kit.All(kit.Returns("too late"), hasTimer("too late")),
		},
		{
			Name: "StartToClose", Register: kit.Run(kit.TimesOut), Input: tick,
			Check: kit.All(kit.Fails("ActivityError", "start-to-close"), kit.HasCause("timeout")),
		},
		{
			Name: "LongTimer", Register: kit.Run(kit.SleepAtLeast), Input: 20 * 60 * tick, Virtual: true,
			Check: kit.Returns("slept"),
		},
	}
}

// RaceInput has the durations of an activity and a timer.
type RaceInput struct{ Activity, Timer time.Duration }

// raceTimer lets an activity and a timer race, and returns the winner and the error of the loser.
func raceTimer(ctx *perdure.OrchestrationContext, r RaceInput) (string, error) {
	work, late := perdure.CallActivity(ctx, kit.Nap, r.Activity), perdure.CreateTimer(ctx, r.Timer)
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
		return "", fmt.Errorf("loser has another error: %w", lost)
	}
	return fmt.Sprintf("the timer: the other is %v", lost), nil
}

// raceEvent lets an activity and an external event race.
func raceEvent(ctx *perdure.OrchestrationContext, d time.Duration) (string, error) {
	ctx.SetCustomStatus("waiting")
	work, event := perdure.CallActivity(ctx, kit.Nap, d), perdure.WaitForExternalEvent[string](ctx, "go")
	first, err := perdure.Select(ctx, work, event)
	if err != nil || first == 0 {
		return "activity", err
	}
	text, err := event.Await(ctx)
	return "event: " + text, err
}

// awaitApproval waits for an event with a time limit.
func awaitApproval(ctx *perdure.OrchestrationContext, limit time.Duration) (string, error) {
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

// hasTimer checks that the history has one timer, with this name.
func hasTimer(name string) kit.Check {
	return func(ctx context.Context, c *client.Client, s client.Status) error {
		timers, err := kit.EventsOf(ctx, c, s.InstanceID, history.TimerCreated)
		if err == nil && (len(timers) != 1 || timers[0].DisplayName() != name) {
			err = fmt.Errorf("history has timers %v, want %q", timers, name)
		}
		return err
	}
}

// raiseGo raises an event when the instance waits for it.
func raiseGo(ctx context.Context, w kit.World, id string) error {
	if err := w.UntilStatus(ctx, id, "waiting"); err != nil {
		return err
	}
	return w.Client.RaiseEvent(ctx, id, "go", "now")
}
