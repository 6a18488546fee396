package scenarios

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/perdure/perdure"
)

// talking are orchestrations that raise events in each other.
func talking(tick time.Duration) []Scenario {
	return []Scenario{
		{Name: "ToldInOrder", Register: body(tellsListener), Check: gives(alphabet)},
		{Name: "ToldNobody", Register: body(tellsNobody), Check: gives("instance not found")},
		{Name: "ToldTheOver", Register: body(tellsTheOver), Check: gives("instance has ended")},
		{Name: "ToldItself", Register: body(tellsItself), Check: gives("a, b")},
		{
			Name: "ToldBeforeItBegins", Register: body(tellsSleeper), Input: tick,
			Check: all(gives("told"), besides("/later", []string{"a", "b"})),
		},
		{
			Name: "TalkBackAndForth", Register: body(talksToEcho, also("Echoes", echoes)), Input: 4,
			Check: gives([]string{"0!", "1!", "2!", "3!"}),
		},
	}
}

// tellsListener starts a child and tells it the alphabet at once: more than a batch has messages.
func tellsListener(ctx *perdure.OrchestrationContext, _ struct{}) ([]string, error) {
	child := perdure.CallSubOrchestrationByName[[]string](ctx, "Listens", Words{Count: len(alphabet)})
	if err := tell(ctx, child.InstanceID(), alphabet...); err != nil {
		return nil, err
	}
	return child.Await(ctx)
}

// tell raises words, and waits until all have arrived.
func tell(ctx *perdure.OrchestrationContext, id string, words ...string) error {
	told := make([]*perdure.Future[struct{}], len(words))
	for i, word := range words {
		told[i] = perdure.RaiseEvent(ctx, id, "word", word)
	}
	return perdure.WhenAll(ctx, perdure.Awaitables(told)...)
}

// untold is why a word did not arrive.
func untold(err error) (string, error) {
	for _, why := range []error{perdure.ErrInstanceNotFound, perdure.ErrInstanceEnded} {
		if errors.Is(err, why) {
			return why.Error()[len("perdure: "):], nil
		}
	}
	return "", fmt.Errorf("it arrived: %w", err)
}

func tellsNobody(ctx *perdure.OrchestrationContext, _ struct{}) (string, error) {
	return untold(tell(ctx, ctx.InstanceID()+"/ç nobody", "a", "b"))
}

func tellsTheOver(ctx *perdure.OrchestrationContext, _ struct{}) (string, error) {
	child := perdure.CallSubOrchestrationByName[int](ctx, "Counts", 1)
	if _, err := child.Await(ctx); err != nil {
		return "", err
	}
	return untold(tell(ctx, child.InstanceID(), "a"))
}

func tellsItself(ctx *perdure.OrchestrationContext, _ struct{}) (string, error) {
	if err := tell(ctx, ctx.InstanceID(), "a", "b"); err != nil {
		return "", err
	}
	first, err := perdure.WaitForExternalEvent[string](ctx, "word").Await(ctx)
	if err != nil {
		return "", err
	}
	second, err := perdure.WaitForExternalEvent[string](ctx, "word").Await(ctx)
	return first + ", " + second, err
}

// tellsSleeper starts what begins in a while, and tells it what it will find then.
func tellsSleeper(ctx *perdure.OrchestrationContext, tick time.Duration) (string, error) {
	id := ctx.InstanceID() + "/later"
	if _, err := perdure.StartOrchestration(ctx, "Listens", Words{Count: 2}, perdure.WithInstanceID(id),
		perdure.WithDelay(3*tick)); err != nil {
		return "", err
	}
	if err := tell(ctx, id, "a", "b"); err != nil {
		return "", err
	}
	return "told", nil
}

// Echo is where an echo comes from.
type Echo struct {
	To   string
	Left int
}

// talksToEcho says a word, waits for what comes back, and says the next.
func talksToEcho(ctx *perdure.OrchestrationContext, words int) (heard []string, err error) {
	echo := perdure.CallSubOrchestrationByName[string](ctx, "Echoes", Echo{ctx.InstanceID(), words})
	for n := range words {
		if err := tell(ctx, echo.InstanceID(), strconv.Itoa(n)); err != nil {
			return nil, err
		}
		word, err := perdure.WaitForExternalEvent[string](ctx, "word").Await(ctx)
		if err != nil {
			return nil, err
		}
		heard = append(heard, word)
	}
	_, err = echo.Await(ctx)
	return heard, err
}

// echoes says louder what it hears, and continues as new after each word, though nobody has answered yet that it was
// heard.
func echoes(ctx *perdure.OrchestrationContext, e Echo) (string, error) {
	word, err := perdure.WaitForExternalEvent[string](ctx, "word").Await(ctx)
	if err != nil {
		return "", err
	}
	perdure.RaiseEvent(ctx, e.To, "word", word+"!")
	if e.Left--; e.Left == 0 {
		return "silent", nil
	}
	return perdure.ContinueAsNew[string](ctx, e)
}
