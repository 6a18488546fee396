package scenarios

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
)

// alphabet is more events than a batch has messages.
var alphabet = []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"}

func events(tick time.Duration) []Scenario {
	return []Scenario{
		{
			Name: "EventBeforeTheWait", Register: body(words), Input: Words{Count: 1, Rest: 3 * tick}, Drive: says("a"),
			Check: gives([]string{"a"}),
		},
		{
			Name: "EventAfterTheWait", Register: body(words), Input: Words{Count: 1}, Drive: saysAt("waiting", "a"),
			Check: gives([]string{"a"}),
		},
		{
			Name: "EventsBetweenTheWaits", Register: body(words), Input: Words{Count: 3, Rest: 3 * tick},
			Drive: saysBetween, Check: gives([]string{"a", "b", "c"}),
		},
		{
			Name: "EventsInOrder", Register: body(words), Input: Words{Count: len(alphabet)}, Drive: says(alphabet...),
			Check: gives(alphabet),
		},
		{
			Name: "DuplicateEvents", Register: body(words), Input: Words{Count: 3}, Drive: stammers,
			Check: gives([]string{"a", "b", "c"}),
		},
		{
			Name: "EventForNobody", Register: body(words), Input: Words{Count: 1}, Drive: saysOther,
			Check: gives([]string{"a"}),
		},
		{
			Name: "EventOfTheLoserGoesBack", Register: body(twoNames), Input: tick, Drive: saysBoth,
			Check: gives("left, then right"),
		},
	}
}

// Words is how many words to wait for, and how long to rest before each.
type Words struct {
	Count int
	Rest  time.Duration
}

// words collects what the external event "word" brings.
func words(ctx *perdure.OrchestrationContext, w Words) (got []string, err error) {
	for len(got) < w.Count {
		ctx.SetCustomStatus(fmt.Sprintf("resting after %d", len(got)))
		if err := perdure.Sleep(ctx, w.Rest); err != nil {
			return got, err
		}
		ctx.SetCustomStatus("waiting")
		word, err := perdure.WaitForExternalEvent[string](ctx, "word").Await(ctx)
		if err != nil {
			return got, err
		}
		got = append(got, word)
	}
	return got, nil
}

// says raises words at once.
func says(words ...string) func(ctx context.Context, w World, id string) error {
	return func(ctx context.Context, w World, id string) error {
		for _, word := range words {
			if err := w.Client.RaiseEvent(ctx, id, "word", word, client.WithEventID(word)); err != nil {
				return err
			}
		}
		return nil
	}
}

// saysAt raises a word when the instance has come to a custom status.
func saysAt(status, word string) func(ctx context.Context, w World, id string) error {
	return func(ctx context.Context, w World, id string) error {
		if err := w.untilStatus(ctx, id, status); err != nil {
			return err
		}
		return says(word)(ctx, w, id)
	}
}

// saysBetween raises a word while it is waited for, and then each while nobody waits.
func saysBetween(ctx context.Context, w World, id string) error {
	for _, s := range []struct{ status, word string }{
		{"waiting", "a"}, {"resting after 1", "b"}, {"resting after 2", "c"},
	} {
		if err := saysAt(s.status, s.word)(ctx, w, id); err != nil {
			return err
		}
	}
	return nil
}

// stammers raises words again and again, beyond the time in which the queue itself knows duplicates.
func stammers(ctx context.Context, w World, id string) error {
	for _, words := range [][]string{{"a"}, {"a", "a", "b"}, {"b", "a", "c"}} {
		if err := says(words...)(ctx, w, id); err != nil {
			return err
		}
		w.Pass(6 * w.Tick)
	}
	return nil
}

// saysOther raises events that nobody waits for, and then one that is waited for.
func saysOther(ctx context.Context, w World, id string) error {
	for range 3 {
		if err := w.Client.RaiseEvent(ctx, id, "other", "?"); err != nil {
			return err
		}
	}
	return says("a")(ctx, w, id)
}

// twoNames finds both events there at once, takes the one that wins, and then the other.
func twoNames(ctx *perdure.OrchestrationContext, tick time.Duration) (string, error) {
	if err := perdure.Sleep(ctx, 3*tick); err != nil {
		return "", err
	}
	left, right := perdure.WaitForExternalEvent[string](ctx, "left"), perdure.WaitForExternalEvent[string](ctx, "right")
	first, err := perdure.Select(ctx, left, right)
	if err != nil || first != 0 {
		return "", errors.Join(fmt.Errorf("future %d was first", first), err)
	}
	l, err := left.Await(ctx)
	if err != nil {
		return "", err
	}
	r, err := perdure.WaitForExternalEvent[string](ctx, "right").Await(ctx)
	return l + ", then " + r, err
}

func saysBoth(ctx context.Context, w World, id string) error {
	for _, name := range []string{"right", "left"} {
		if err := w.Client.RaiseEvent(ctx, id, name, name); err != nil {
			return err
		}
	}
	return nil
}
