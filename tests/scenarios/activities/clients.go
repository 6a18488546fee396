package activities

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/tests/scenarios/internal/kit"
)

// clientScenarios have activities that use a client of the hub.
func clientScenarios(tick time.Duration) []kit.Scenario {
	d := &errands{}
	return []kit.Scenario{{
		Name: "ClientInActivity", Register: kit.Run(startAndAwaitErrand, d.add, kit.Also(errandName, errand)),
		Input: tick,
		Hold:  func(c *client.Client) { d.hub = c },
		Check: kit.All(kit.Returns("a b, 2 received, 1 listed"), startedOneErrand),
	}}
}

const errandName = "Errand"

// errands has the activities that start and await other instances.
type errands struct{ hub *client.Client }

func (d *errands) add(r *perdure.Registry) {
	perdure.AddActivity(r, "SendOut", d.startErrand)
	perdure.AddActivity(r, "LookAfter", d.awaitErrand)
}

// startAndAwaitErrand starts another instance in an activity and awaits it in another activity.
func startAndAwaitErrand(ctx *perdure.OrchestrationContext, tick time.Duration) (string, error) {
	retried := perdure.WithRetry(perdure.RetryPolicy{MaxAttempts: 20, InitialInterval: tick, BackoffCoefficient: 1})
	sent, err := perdure.CallActivityByName[string](ctx, "SendOut", tick, retried).Await(ctx)
	if err != nil {
		return "", err
	}
	return perdure.CallActivityByName[string](ctx, "LookAfter", sent, retried).Await(ctx)
}

// errand collects two words. A query returns their number.
func errand(ctx *perdure.OrchestrationContext, _ struct{}) (string, error) {
	var words []string
	if err := perdure.SetQueryHandler(ctx, "received", func(struct{}) (int, error) {
		return len(words), nil
	}); err != nil {
		return "", err
	}
	for len(words) < 2 {
		word, err := perdure.WaitForExternalEvent[string](ctx, "word").Await(ctx)
		if err != nil {
			return "", err
		}
		words = append(words, word)
	}
	return strings.Join(words, " "), nil
}

// startedByTag is the tag with the ID of the instance that started an errand.
const startedByTag = "sent-by"

// startErrand starts an errand with a delay and raises two events. It repeats each call, like an activity whose process
// crashed. Because of the key and the IDs, it starts only one errand and raises only two events.
func (d *errands) startErrand(ctx context.Context, delay time.Duration) (id string, err error) {
	info := perdure.ActivityInfoFrom(ctx)
	key := fmt.Sprintf("%s/%d", info.ExecutionID, info.ActivityID)
	for range 2 {
		id, err = d.hub.Start(ctx, errandName, struct{}{}, client.WithIdempotencyKey(key), client.WithDelay(delay),
			client.WithTags(map[string]string{startedByTag: info.InstanceID}))
		if err != nil {
			return "", err
		}
	}
	for _, word := range []string{"a", "a", "b", "b"} {
		err := d.hub.RaiseEvent(ctx, id, "word", word, client.WithEventID(key+"/"+word))
		if err != nil && !errors.Is(err, client.ErrEnded) { // an earlier delivery may have completed it
			return "", err
		}
	}
	return id, nil
}

var errNotListed = errors.New("list does not contain the errand yet")

// awaitErrand waits for an errand, queries it, and counts the errands of its instance in the list.
func (d *errands) awaitErrand(ctx context.Context, id string) (string, error) {
	s, err := d.hub.Wait(ctx, id)
	if err != nil {
		return "", err
	}
	text, err := client.Result[string](s)
	if err != nil {
		return "", err
	}
	words, err := d.hub.Query(ctx, id, "received", struct{}{})
	if err != nil {
		return "", err
	}
	listed, err := client.Collect(d.hub.List(ctx, client.ListQuery{
		Orchestration: errandName, Tags: map[string]string{startedByTag: perdure.ActivityInfoFrom(ctx).InstanceID},
	}))
	if err == nil && len(listed) == 0 {
		err = errNotListed
	}
	return fmt.Sprintf("%s, %s received, %d listed", text, kit.Compact(words), len(listed)), err
}

// startedOneErrand checks that the instance started one errand, which started after its delay.
func startedOneErrand(ctx context.Context, c *client.Client, s client.Status) error {
	sent, err := client.Collect(c.List(ctx, client.ListQuery{
		Orchestration: errandName, Tags: map[string]string{startedByTag: s.InstanceID},
	}))
	if err != nil {
		return err
	}
	if len(sent) != 1 || sent[0].StartAt.IsZero() || sent[0].ExecutionNumber != 1 {
		return fmt.Errorf("started %+v", sent)
	}
	return nil
}
