package instances

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/tests/scenarios/internal/kit"
)

func startScenarios(tick time.Duration) []kit.Scenario {
	delay := []client.StartOption{client.WithDelay(3 * tick)}
	return []kit.Scenario{
		{Name: "DelayedStart", Register: kit.Run(reportStart), Start: delay, Check: notEarly},
		{
			Name: "DelayedStartKeepsEvents", Register: kit.Run(reportStartWithWords), Input: 0, Start: delay,
			Drive: kit.RaiseWords("a", "b"), Check: notEarly,
		},
		{
			Name: "WaitForDelayedStart", Register: kit.Run(reportStartWithWords), Input: 3 * tick, Start: delay,
			Drive: awaitStart, Check: notEarly,
		},
		{Name: "Terminated", Register: kit.Run(kit.WaitForGo), Drive: terminateWaiting, Check: terminated},
		{
			Name: "TerminatedWhileItsStartIsDelayed", Register: kit.Run(kit.WaitForGo), Start: delay, Drive: terminate,
			Check: terminated,
		},
		{
			Name: "TerminatedWithAChild", Register: kit.Run(kit.CallSleeper), Input: 5 * tick, Drive: terminateWaiting,
			Check: kit.All(terminated, kit.OtherCancelled("/child", "orchestration_terminal_terminated")),
		},
	}
}

func reportStart(ctx *perdure.OrchestrationContext, _ struct{}) (time.Time, error) {
	return ctx.Now(), nil
}

// reportStartWithWords returns its start time if it received the events that were raised before.
func reportStartWithWords(ctx *perdure.OrchestrationContext, tick time.Duration) (time.Time, error) {
	began := ctx.Now()
	got, err := kit.CollectWords(ctx, kit.WordsInput{Count: 2, Rest: tick})
	if err == nil && !slices.Equal(got, []string{"a", "b"}) {
		err = fmt.Errorf("received %q", got)
	}
	return began, err
}

// awaitStart raises events when the instance has started.
func awaitStart(ctx context.Context, w kit.World, id string) error {
	var failed error
	if !w.Poll(func() bool {
		limited, stop := context.WithTimeout(ctx, w.Tick/4)
		s, err := w.Client.WaitForStart(limited, id)
		stop()
		if err == nil && s.Status == client.StatusPending {
			failed = fmt.Errorf("instance %q has started and is %s", id, s.Status)
		}
		return err == nil
	}) {
		return fmt.Errorf("instance %q does not start", id)
	}
	return errors.Join(failed, kit.RaiseWords("a", "b")(ctx, w, id))
}

// notEarly checks that the instance did not run before its start time.
func notEarly(_ context.Context, _ *client.Client, s client.Status) error {
	ran, err := client.Result[time.Time](s)
	if err == nil && (s.StartAt.IsZero() || ran.Before(s.StartAt)) {
		err = fmt.Errorf("ran at %[2]v, before its start time %[1]v", s.StartAt, ran)
	}
	return err
}

func terminateWaiting(ctx context.Context, w kit.World, id string) error {
	if err := w.UntilStatus(ctx, id, "waiting"); err != nil {
		return err
	}
	return w.Client.Terminate(ctx, id, "enough")
}

func terminate(ctx context.Context, w kit.World, id string) error {
	return w.Client.Terminate(ctx, id, "enough")
}

func terminated(_ context.Context, _ *client.Client, s client.Status) error {
	if s.Status != client.StatusTerminated || s.Failure == nil || s.Failure.Message != "enough" {
		return fmt.Errorf("%s, %+v", s.Status, s.Failure)
	}
	return nil
}
