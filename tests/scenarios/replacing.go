package scenarios

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
)

// replacing is what becomes of ids that are in use: of starts that want them, and of purges that free them.
func replacing(tick time.Duration) []Scenario {
	return []Scenario{
		{
			Name: "Replaced", Register: body(waitsForSleeper), Input: tick, Drive: replaces,
			Check: all(replacedBeside("/again"), cancelledBeside("/again/child", "orchestration_terminal_terminated")),
		},
		{
			Name: "StartedOrRaised", Register: body(words), Input: Words{Count: 2, Rest: 20 * tick},
			Drive: startsOrRaises, Check: all(gives([]string{"a", "b"}), wordsBeside("/beside", "a", "b")),
		},
		{
			Name: "StartedOrUpdated", Register: body(tallies), Input: tally{Of: 2}, Drive: startsOrUpdates,
			Check: all(gives(2), talliedBeside("/beside", 2)),
		},
		{
			Name: "PurgedWithChildren", Register: body(bears), Input: 0, Drive: purgesFamily,
			Check: all(gives(1), noneBeside(familyBeside...)),
		},
	}
}

// replaces starts an instance with a child of its own beside this one, and once it waits for that, another with its id;
// that, and a start which is to leave alone what is there, are made twice, as by a client that had no answer.
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
	for _, policy := range []client.IDConflictPolicy{client.Replace, client.UseExisting} {
		for range 2 {
			if _, err := w.Client.Start(ctx, "Sleeps", w.Tick, again, client.IfExists(policy),
				client.WithIdempotencyKey("the next")); err != nil {
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

// startsOrRaises says two words to the instance, and to one beside it that nobody has started, each twice, as by a
// client that had no answer.
func startsOrRaises(ctx context.Context, w World, id string) error {
	for _, word := range []string{"a", "b"} {
		for range 2 {
			for _, to := range []string{id, id + "/beside"} {
				started, err := w.Client.StartOrRaiseEvent(ctx, "StartedOrRaised", Words{Count: 2, Rest: 20 * w.Tick},
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
	return w.until(ctx, id+"/beside", func(s client.Status) bool { return s.Status.Terminal() })
}

// startsOrUpdates has the instance count to two, and one beside it that nobody has started, each step twice, as by a
// client that had no answer.
func startsOrUpdates(ctx context.Context, w World, id string) error {
	for n := 1; n <= 2; n++ {
		for range 2 {
			for _, to := range []string{id, id + "/beside"} {
				if err := w.startsOrUpdates(ctx, to, n, to != id && n == 1); err != nil {
					return err
				}
			}
		}
	}
	return w.until(ctx, id+"/beside", func(s client.Status) bool { return s.Status.Terminal() })
}

// startsOrUpdates makes one step, until it is answered: what crashes meanwhile is why it may be made more than once.
func (w World) startsOrUpdates(ctx context.Context, to string, n int, starts bool) error {
	var result json.RawMessage
	var started bool
	var err error
	for range looks {
		result, started, err = w.Client.StartOrUpdate(ctx, "StartedOrUpdated", tally{Of: 2}, "next", struct{}{},
			client.WithInstanceID(to), client.WithIdempotencyKey(fmt.Sprint("step ", n)))
		if _, told := errors.AsType[*client.UpdateError](err); err == nil || told {
			break
		}
		w.Pass(w.Tick / 4)
	}
	if err != nil || started != starts || compact(result) != strconv.Itoa(n) {
		return errors.Join(fmt.Errorf("step %d to %s gives %s, started is %v", n, to, result, started), err)
	}
	return nil
}

// talliedBeside: the instance beside this one has counted so far.
func talliedBeside(suffix string, want int) Check {
	return func(ctx context.Context, c *client.Client, s client.Status) error {
		beside, err := c.Status(ctx, s.InstanceID+suffix)
		if err != nil {
			return err
		}
		got, err := client.Result[int](beside)
		if err == nil && got != want {
			err = fmt.Errorf("beside it is %d", got)
		}
		return err
	}
}

// wordsBeside: the instance beside this one has got these words, and no others.
func wordsBeside(suffix string, want ...string) Check {
	return func(ctx context.Context, c *client.Client, s client.Status) error {
		beside, err := c.Status(ctx, s.InstanceID+suffix)
		if err != nil {
			return err
		}
		got, err := client.Result[[]string](beside)
		if err == nil && !slices.Equal(got, want) {
			err = fmt.Errorf("beside it are %q", got)
		}
		return err
	}
}

// bears has two children, so many levels deep, and counts those at the lowest.
func bears(ctx *perdure.OrchestrationContext, levels int) (lowest int, err error) {
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

var familyBeside = []string{"/top", "/top/l", "/top/r", "/top/l/l", "/top/l/r", "/top/r/l", "/top/r/r"}

// purgesFamily starts an instance beside this one that has children, and theirs, and purges it with them once all are
// over.
func purgesFamily(ctx context.Context, w World, id string) error {
	if _, err := w.Client.Start(ctx, "PurgedWithChildren", 2, client.WithInstanceID(id+familyBeside[0])); err != nil {
		return err
	}
	for _, suffix := range familyBeside {
		if err := w.until(ctx, id+suffix, func(s client.Status) bool { return s.Status.Terminal() }); err != nil {
			return err
		}
	}
	return w.Client.Purge(ctx, id+familyBeside[0], client.WithChildren())
}

// noneBeside: none of these instances beside this one is there.
func noneBeside(suffixes ...string) Check {
	return func(ctx context.Context, c *client.Client, s client.Status) error {
		for _, suffix := range suffixes {
			switch _, err := c.Status(ctx, s.InstanceID+suffix); {
			case err == nil:
				return fmt.Errorf("%s is there", suffix)
			case !errors.Is(err, client.ErrNotFound):
				return fmt.Errorf("%s: %w", suffix, err)
			}
		}
		return nil
	}
}
