package scenarios

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
)

// replacing is what becomes of starts whose id is in use.
func replacing(tick time.Duration) []Scenario {
	return []Scenario{
		{Name: "Replaced", Register: body(waitsForSleeper), Input: tick, Drive: replaces, Check: all(replacedBeside("/again"), cancelledBeside("/again/child", "orchestration_terminal_terminated"))},
	}
}

// replaces starts an instance with a child of its own beside this one, and once it waits for that, another with its id; that, and a start which is to leave
// alone what is there, are made twice, as by a client that had no answer.
func replaces(ctx context.Context, w World, id string) error {
	again := client.WithInstanceID(id + "/again")
	if _, err := w.Client.Start(ctx, "Replaced", 100*w.Tick, again); err != nil {
		return err
	}
	if err := w.untilStatus(ctx, id+"/again", "waiting"); err != nil {
		return err
	}
	// Its child is there, too, before it is cancelled.
	if err := w.until(ctx, id+"/again/child", func(client.Status) bool { return true }); err != nil {
		return err
	}
	for _, policy := range []client.ExistsPolicy{client.Replace, client.Ignore} {
		for range 2 {
			if _, err := w.Client.Start(ctx, "Sleeps", w.Tick, again, client.IfExists(policy), client.WithIdempotencyKey("the next")); err != nil {
				return fmt.Errorf("%s: %w", policy, err)
			}
		}
	}
	if err := w.until(ctx, id+"/again/child", func(s client.Status) bool { return s.Status.Terminal() }); err != nil {
		return err
	}
	return w.until(ctx, id+"/again", func(s client.Status) bool { return s.Status.Terminal() })
}

// replacedBeside: what has the id beside the instance is the later start, whole, and it has nothing of the one before.
func replacedBeside(suffix string) Check {
	return func(ctx context.Context, c *client.Client, s client.Status) error {
		if s.Status != client.StatusCompleted {
			return fmt.Errorf("it is %s", s.Status)
		}
		now, err := c.Status(ctx, s.InstanceID+suffix)
		if err != nil {
			return err
		}
		if now.Orchestration != "Sleeps" || now.Status != client.StatusCompleted {
			return fmt.Errorf("beside it is %s, %s", now.Orchestration, now.Status)
		}
		events, err := client.Collect(c.History(ctx, now.InstanceID))
		if err == nil && (len(events) == 0 || events[0].Kind != history.OrchestrationStarted) {
			err = errors.New("its history has no beginning")
		}
		return err
	}
}
