package scenarios

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
)

// delegating are orchestrations whose activities hold a client of the hub.
func delegating(tick time.Duration) []Scenario {
	d := &delegate{}
	return []Scenario{{
		Name: "ClientInActivity", Register: body(delegates, d.add, also(errandName, errand)), Input: tick,
		Hold: func(c *client.Client) { d.hub = c }, Check: all(gives("a b, 2 heard, 1 listed"), sentOnce),
	}}
}

const errandName = "Errand"

// delegate is what activities hold who send out other instances.
type delegate struct{ hub *client.Client }

func (d *delegate) add(r *perdure.Registry) {
	perdure.AddActivity(r, "SendOut", d.sendOut)
	perdure.AddActivity(r, "LookAfter", d.lookAfter)
}

// delegates has an activity send out another instance, and another wait for it.
func delegates(ctx *perdure.OrchestrationContext, tick time.Duration) (string, error) {
	retried := perdure.WithRetry(perdure.RetryPolicy{MaxAttempts: 20, InitialInterval: tick, BackoffCoefficient: 1})
	sent, err := perdure.CallActivityByName[string](ctx, "SendOut", tick, retried).Await(ctx)
	if err != nil {
		return "", err
	}
	return perdure.CallActivityByName[string](ctx, "LookAfter", sent, retried).Await(ctx)
}

// errand collects two words, and tells by a query how many it has heard.
func errand(ctx *perdure.OrchestrationContext, _ struct{}) (string, error) {
	var heard []string
	if err := perdure.SetQueryHandler(ctx, "heard", func(struct{}) (int, error) {
		return len(heard), nil
	}); err != nil {
		return "", err
	}
	for len(heard) < 2 {
		word, err := perdure.WaitForExternalEvent[string](ctx, "word").Await(ctx)
		if err != nil {
			return "", err
		}
		heard = append(heard, word)
	}
	return strings.Join(heard, " "), nil
}

// sentBy is the tag that says who has sent out an errand.
const sentBy = "sent-by"

// sendOut starts an errand that is to begin later, and says two words to it. It does each of that twice, as an activity
// does whose process has died: the key makes it one errand, and the ids make each word one.
func (d *delegate) sendOut(ctx context.Context, delay time.Duration) (id string, err error) {
	info := perdure.ActivityInfoFrom(ctx)
	key := fmt.Sprintf("%s/%d", info.ExecutionID, info.ActivityID)
	for range 2 {
		id, err = d.hub.Start(ctx, errandName, struct{}{}, client.WithIdempotencyKey(key), client.WithDelay(delay),
			client.WithTags(map[string]string{sentBy: info.InstanceID}))
		if err != nil {
			return "", err
		}
	}
	for _, word := range []string{"a", "a", "b", "b"} {
		err := d.hub.RaiseEvent(ctx, id, "word", word, client.WithEventID(key+"/"+word))
		if err != nil && !errors.Is(err, client.ErrEnded) { // it may have heard all, in a delivery before
			return "", err
		}
	}
	return id, nil
}

var errNotListed = errors.New("the list is behind")

// lookAfter waits for an errand, asks it, and counts those that the list has of whoever sent it.
func (d *delegate) lookAfter(ctx context.Context, id string) (string, error) {
	s, err := d.hub.Wait(ctx, id)
	if err != nil {
		return "", err
	}
	said, err := client.Result[string](s)
	if err != nil {
		return "", err
	}
	heard, err := d.hub.Query(ctx, id, "heard", struct{}{})
	if err != nil {
		return "", err
	}
	listed, err := client.Collect(d.hub.List(ctx, client.ListQuery{
		Orchestration: errandName, Tags: map[string]string{sentBy: perdure.ActivityInfoFrom(ctx).InstanceID},
	}))
	if err == nil && len(listed) == 0 {
		err = errNotListed
	}
	return fmt.Sprintf("%s, %s heard, %d listed", said, compact(heard), len(listed)), err
}

// sentOnce: the instance has sent out one errand, which began when it was to.
func sentOnce(ctx context.Context, c *client.Client, s client.Status) error {
	sent, err := client.Collect(c.List(ctx, client.ListQuery{
		Orchestration: errandName, Tags: map[string]string{sentBy: s.InstanceID},
	}))
	if err != nil {
		return err
	}
	if len(sent) != 1 || sent[0].StartAt.IsZero() || sent[0].ExecutionNumber != 1 {
		return fmt.Errorf("it has sent out %+v", sent)
	}
	return nil
}
