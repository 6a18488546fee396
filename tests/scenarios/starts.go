package scenarios

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
)

func starts(tick time.Duration) []Scenario {
	delay := []client.StartOption{client.WithDelay(3 * tick)}
	return []Scenario{
		{Name: "DelayedStart", Register: body(now), Start: delay, Check: notEarly},
		{
			Name: "DelayedStartKeepsEvents", Register: body(nowWithWords), Input: 0, Start: delay,
			Drive: says("a", "b"), Check: notEarly,
		},
		{
			Name: "DelayedStartIsWaitedFor", Register: body(nowWithWords), Input: 3 * tick, Start: delay,
			Drive: waitsForTheStart, Check: notEarly,
		},
		{Name: "Terminated", Register: body(waits), Drive: terminates, Check: terminated},
		{
			Name: "TerminatedWhileItsStartIsDelayed", Register: body(waits), Start: delay, Drive: terminatesNow,
			Check: terminated,
		},
		{
			Name: "TerminatedWithAChild", Register: body(waitsForSleeper), Input: 5 * tick, Drive: terminates,
			Check: all(terminated, cancelledBeside("/child", "orchestration_terminal_terminated")),
		},
	}
}

func now(ctx *perdure.OrchestrationContext, _ struct{}) (time.Time, error) { return ctx.Now(), nil }

// nowWithWords says when it began, if the events that came before are there.
func nowWithWords(ctx *perdure.OrchestrationContext, tick time.Duration) (time.Time, error) {
	began := ctx.Now()
	got, err := words(ctx, Words{Count: 2, Rest: tick})
	if err == nil && !slices.Equal(got, []string{"a", "b"}) {
		err = fmt.Errorf("it got %q", got)
	}
	return began, err
}

// waitsForTheStart says words once the instance has begun, and not before.
func waitsForTheStart(ctx context.Context, w World, id string) error {
	for range looks {
		limited, stop := context.WithTimeout(ctx, w.Tick/4)
		s, err := w.Client.WaitForStart(limited, id)
		stop()
		if err == nil && s.Status == client.StatusPending {
			return fmt.Errorf("instance %q has begun and is %s", id, s.Status)
		}
		if err == nil {
			return says("a", "b")(ctx, w, id)
		}
		w.Pass(w.Tick / 4)
	}
	return fmt.Errorf("instance %q does not begin", id)
}

// notEarly: the body ran when it was to, or later.
func notEarly(_ context.Context, _ *client.Client, s client.Status) error {
	ran, err := client.Result[time.Time](s)
	if err == nil && (s.StartAt.IsZero() || ran.Before(s.StartAt)) {
		err = fmt.Errorf("it was to start at %v, and ran at %v", s.StartAt, ran)
	}
	return err
}

func terminates(ctx context.Context, w World, id string) error {
	if err := w.untilStatus(ctx, id, "waiting"); err != nil {
		return err
	}
	return w.Client.Terminate(ctx, id, "enough")
}

func terminatesNow(ctx context.Context, w World, id string) error {
	return w.Client.Terminate(ctx, id, "enough")
}

// waitsForSleeper waits for a child that nobody stops.
func waitsForSleeper(ctx *perdure.OrchestrationContext, d time.Duration) (string, error) {
	f := perdure.CallSubOrchestrationByName[string](ctx, "Sleeps", d, perdure.WithInstanceID(ctx.InstanceID()+"/child"))
	ctx.SetCustomStatus("waiting")
	return f.Await(ctx)
}

func terminated(_ context.Context, _ *client.Client, s client.Status) error {
	if s.Status != client.StatusTerminated || s.Failure == nil || s.Failure.Message != "enough" {
		return fmt.Errorf("%s, %+v", s.Status, s.Failure)
	}
	return nil
}
