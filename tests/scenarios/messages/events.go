package messages

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/tests/scenarios/internal/kit"
)

// alphabet has more events than a batch of messages.
var alphabet = []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"}

func eventScenarios(tick time.Duration) []kit.Scenario {
	return []kit.Scenario{
		{
			Name: "EventBeforeTheWait", Register: kit.Run(kit.CollectWords),
			Input: kit.WordsInput{Count: 1, Rest: 3 * tick}, Drive: kit.RaiseWords("a"),
			Check: kit.Returns([]string{"a"}),
		},
		{
			Name: "EventAfterTheWait", Register: kit.Run(kit.CollectWords), Input: kit.WordsInput{Count: 1},
			Drive: raiseWordAt("waiting", "a"),
			Check: kit.Returns([]string{"a"}),
		},
		{
			Name: "EventsBetweenTheWaits", Register: kit.Run(kit.CollectWords),
			Input: kit.WordsInput{Count: 3, Rest: 3 * tick},
			Drive: raiseBetweenWaits, Check: kit.Returns([]string{"a", "b", "c"}),
		},
		{
			Name: "EventsInOrder", Register: kit.Run(kit.CollectWords), Input: kit.WordsInput{Count: len(alphabet)},
			Drive: kit.RaiseWords(alphabet...),
			Check: kit.Returns(alphabet),
		},
		{
			Name: "DuplicateEvents", Register: kit.Run(kit.CollectWords), Input: kit.WordsInput{Count: 3},
			Drive: raiseDuplicates,
			Check: kit.Returns([]string{"a", "b", "c"}),
		},
		{
			Name: "EventForMissingInstance", Register: kit.Run(kit.CollectWords), Input: kit.WordsInput{Count: 1},
			Drive: raiseOther,
			Check: kit.Returns([]string{"a"}),
		},
		{
			Name: "EventOfLoserReturnsToQueue", Register: kit.Run(selectEvent), Input: tick, Drive: raiseBoth,
			Check: kit.Returns("left, then right"),
		},
	}
}

// raiseWordAt raises a word when the instance has this custom status.
func raiseWordAt(status, word string) func(ctx context.Context, w kit.World, id string) error {
	return func(ctx context.Context, w kit.World, id string) error {
		if err := w.UntilStatus(ctx, id, status); err != nil {
			return err
		}
		return kit.RaiseWords(word)(ctx, w, id)
	}
}

// raiseBetweenWaits raises a word during a wait, and others between waits.
func raiseBetweenWaits(ctx context.Context, w kit.World, id string) error {
	for _, s := range []struct{ status, word string }{
		{"waiting", "a"}, {"resting after 1", "b"}, {"resting after 2", "c"},
	} {
		if err := raiseWordAt(s.status, s.word)(ctx, w, id); err != nil {
			return err
		}
	}
	return nil
}

// raiseDuplicates repeats events after the deduplication interval of the queue.
func raiseDuplicates(ctx context.Context, w kit.World, id string) error {
	for _, words := range [][]string{{"a"}, {"a", "a", "b"}, {"b", "a", "c"}} {
		if err := kit.RaiseWords(words...)(ctx, w, id); err != nil {
			return err
		}
		w.Pass(6 * w.Tick)
	}
	return nil
}

// raiseOther raises events for which no code waits, and then one for which the code waits.
func raiseOther(ctx context.Context, w kit.World, id string) error {
	for range 3 {
		if err := w.Client.RaiseEvent(ctx, id, "other", "?"); err != nil {
			return err
		}
	}
	return kit.RaiseWords("a")(ctx, w, id)
}

// selectEvent finds two events, takes the one that wins a Select, and then the other one.
func selectEvent(ctx *perdure.OrchestrationContext, tick time.Duration) (string, error) {
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

func raiseBoth(ctx context.Context, w kit.World, id string) error {
	for _, name := range []string{"right", "left"} {
		if err := w.Client.RaiseEvent(ctx, id, name, name); err != nil {
			return err
		}
	}
	return nil
}
