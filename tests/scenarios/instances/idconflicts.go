package instances

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/tests/scenarios/internal/kit"
)

// idConflictScenarios start instances with IDs that are in use, and purge instances.
func idConflictScenarios(tick time.Duration) []kit.Scenario {
	return []kit.Scenario{
		{
			Name: "Replaced", Register: kit.Run(kit.CallSleeper), Input: tick, Drive: replaceInstance,
			Check: kit.All(otherReplaced("/again"),
				kit.OtherCancelled("/again/child", "orchestration_terminal_terminated")),
		},
		{
			Name: "StartedOrRaised", Register: kit.Run(kit.CollectWords),
			Input: kit.WordsInput{Count: 2, Rest: 20 * tick},
			Drive: startOrRaiseTwice,
			Check: kit.All(kit.Returns([]string{"a", "b"}), kit.OtherReturns("/second", []string{"a", "b"})),
		},
		{
			Name: "StartedOrUpdated", Register: kit.Run(kit.Tallies), Input: kit.TallyInput{Of: 2},
			Drive: startOrUpdateTwice,
			Check: kit.All(kit.Returns(2), kit.OtherReturns("/second", 2)),
		},
		{
			Name: "PurgedWithChildren", Register: kit.Run(callTwoChildren), Input: 0, Drive: purgeFamily,
			Check: kit.All(kit.Returns(1), noneExist(family...)),
		},
	}
}

// replaceInstance starts an instance with a child and replaces it while it waits for the child. It then starts again
// with UseExisting. Each start is repeated, like that of a client without a response.
func replaceInstance(ctx context.Context, w kit.World, id string) error {
	again := client.WithInstanceID(id + "/again")
	if _, err := w.Client.Start(ctx, "Replaced", 100*w.Tick, again); err != nil {
		return err
	}
	if err := w.UntilStatus(ctx, id+"/again", "waiting"); err != nil {
		return err
	}
	// The child must exist before it is cancelled.
	if err := w.Until(ctx, id+"/again/child", func(client.Status) bool { return true }); err != nil {
		return err
	}
	for _, policy := range []client.IDConflictPolicy{client.Replace, client.UseExisting} {
		for range 2 {
			if _, err := w.Client.Start(ctx, "Sleeps", w.Tick, again, client.IfExists(policy),
				client.WithIdempotencyKey("the next")); err != nil {
				return fmt.Errorf("%s: %w", policy, err)
			}
		}
	}
	if err := w.UntilEnded(ctx, id+"/again/child"); err != nil {
		return err
	}
	return w.UntilEnded(ctx, id+"/again")
}

// otherReplaced checks that the replacement has the ID, and no data of the previous instance.
func otherReplaced(suffix string) kit.Check {
	return func(ctx context.Context, c *client.Client, s client.Status) error {
		if s.Status != client.StatusCompleted {
			return fmt.Errorf("it is %s", s.Status)
		}
		now, err := c.Status(ctx, s.InstanceID+suffix)
		if err != nil {
			return err
		}
		if now.Orchestration != "Sleeps" || now.Status != client.StatusCompleted {
			return fmt.Errorf("the other instance runs %s and is %s", now.Orchestration, now.Status)
		}
		events, err := client.Collect(c.History(ctx, now.InstanceID))
		if err == nil && (len(events) == 0 || events[0].Kind != history.OrchestrationStarted) {
			err = errors.New("history does not start with OrchestrationStarted")
		}
		return err
	}
}

// startOrRaiseTwice sends two words to the instance and to another one that does not exist. Each call is repeated.
func startOrRaiseTwice(ctx context.Context, w kit.World, id string) error {
	for _, word := range []string{"a", "b"} {
		for range 2 {
			for _, to := range []string{id, id + "/second"} {
				started, err := w.Client.StartOrRaiseEvent(ctx, "StartedOrRaised", kit.WordsInput{
					Count: 2,
					Rest:  20 * w.Tick,
				},
					"word", word, client.WithInstanceID(to), client.WithIdempotencyKey(word))
				if err != nil {
					return err
				}
				if want := to != id && word == "a"; started != want {
					return fmt.Errorf("%s to %s: started is %v", word, to, started)
				}
			}
		}
	}
	return w.UntilEnded(ctx, id+"/second")
}

// startOrUpdateTwice makes the instance and another one that does not exist count to two. Each call is repeated.
func startOrUpdateTwice(ctx context.Context, w kit.World, id string) error {
	for n := 1; n <= 2; n++ {
		for range 2 {
			for _, to := range []string{id, id + "/second"} {
				if err := startOrUpdate(ctx, w, to, n, to != id && n == 1); err != nil {
					return err
				}
			}
		}
	}
	return w.UntilEnded(ctx, id+"/second")
}

// startOrUpdate repeats a step until the instance responds.
func startOrUpdate(ctx context.Context, w kit.World, to string, n int, starts bool) error {
	var started bool
	result, err := w.UntilResponse(func() (result json.RawMessage, err error) {
		result, started, err = w.Client.StartOrUpdate(ctx, "StartedOrUpdated", kit.TallyInput{Of: 2}, "next",
			struct{}{},
			client.WithInstanceID(to), client.WithIdempotencyKey(fmt.Sprint("step ", n)))
		return result, err
	})
	if err != nil || started != starts || kit.Compact(result) != strconv.Itoa(n) {
		return errors.Join(fmt.Errorf("step %d to %s gives %s, started is %v", n, to, result, started), err)
	}
	return nil
}

// callTwoChildren calls two children on each of a number of levels, and counts the instances of the lowest level.
func callTwoChildren(ctx *perdure.OrchestrationContext, levels int) (lowest int, err error) {
	if levels == 0 {
		return 1, nil
	}
	var children []*perdure.Future[int]
	for _, name := range []string{"/l", "/r"} {
		children = append(children,
			perdure.CallSubOrchestrationByName[int](ctx, "PurgedWithChildren", levels-1,
				perdure.WithInstanceID(ctx.InstanceID()+name)))
	}
	for _, child := range children {
		n, err := child.Await(ctx)
		if err != nil {
			return lowest, err
		}
		lowest += n
	}
	return lowest, nil
}

var family = []string{"/top", "/top/l", "/top/r", "/top/l/l", "/top/l/r", "/top/r/l", "/top/r/r"}

// purgeFamily starts an instance with children and grandchildren, and purges all of them when they have ended.
func purgeFamily(ctx context.Context, w kit.World, id string) error {
	if _, err := w.Client.Start(ctx, "PurgedWithChildren", 2, client.WithInstanceID(id+family[0])); err != nil {
		return err
	}
	for _, suffix := range family {
		if err := w.UntilEnded(ctx, id+suffix); err != nil {
			return err
		}
	}
	return w.Client.Purge(ctx, id+family[0], client.WithChildren())
}

// noneExist checks that no instance with one of these ID suffixes exists.
func noneExist(suffixes ...string) kit.Check {
	return func(ctx context.Context, c *client.Client, s client.Status) error {
		for _, suffix := range suffixes {
			switch _, err := c.Status(ctx, s.InstanceID+suffix); {
			case err == nil:
				return fmt.Errorf("instance %s exists", suffix)
			case !errors.Is(err, client.ErrNotFound):
				return fmt.Errorf("%s: %w", suffix, err)
			}
		}
		return nil
	}
}
