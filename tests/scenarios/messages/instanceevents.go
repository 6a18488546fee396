package messages

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/tests/scenarios/internal/kit"
)

// instanceEventScenarios raise events in other instances.
func instanceEventScenarios(tick time.Duration) []kit.Scenario {
	return []kit.Scenario{
		{Name: "SentEventsInOrder", Register: kit.Run(raiseInListener), Check: kit.Returns(alphabet)},
		{Name: "EventToMissingInstance", Register: kit.Run(raiseInMissing), Check: kit.Returns("instance not found")},
		{Name: "EventToEndedInstance", Register: kit.Run(raiseInEnded), Check: kit.Returns("instance has ended")},
		{Name: "EventToItself", Register: kit.Run(raiseInSelf), Check: kit.Returns("a, b")},
		{
			Name: "EventBeforeStart", Register: kit.Run(raiseInDelayed), Input: tick,
			Check: kit.All(kit.Returns("sent"), kit.OtherReturns("/later", []string{"a", "b"})),
		},
		{
			Name: "EventsBetweenInstances", Input: 4,
			Register: kit.Run(exchangeWithEcho, kit.Also("Echoes", echoWords)),
			Check:    kit.Returns([]string{"0!", "1!", "2!", "3!"}),
		},
	}
}

// raiseInListener starts a child and raises more events in it than a batch of messages has.
func raiseInListener(ctx *perdure.OrchestrationContext, _ struct{}) ([]string, error) {
	child := perdure.CallSubOrchestrationByName[[]string](ctx, "Listens", kit.WordsInput{Count: len(alphabet)})
	if err := raiseAll(ctx, child.InstanceID(), alphabet...); err != nil {
		return nil, err
	}
	return child.Await(ctx)
}

// raiseAll raises events and waits until all have arrived.
func raiseAll(ctx *perdure.OrchestrationContext, id string, words ...string) error {
	sent := make([]*perdure.Future[struct{}], len(words))
	for i, word := range words {
		sent[i] = perdure.RaiseEvent(ctx, id, "word", word)
	}
	return perdure.WhenAll(ctx, perdure.Awaitables(sent)...)
}

// raiseError returns why an event did not arrive.
func raiseError(err error) (string, error) {
	for _, why := range []error{perdure.ErrInstanceNotFound, perdure.ErrInstanceEnded} {
		if errors.Is(err, why) {
			return why.Error()[len("perdure: "):], nil
		}
	}
	return "", fmt.Errorf("event arrived: %w", err)
}

func raiseInMissing(ctx *perdure.OrchestrationContext, _ struct{}) (string, error) {
	return raiseError(raiseAll(ctx, ctx.InstanceID()+"/ç missing", "a", "b"))
}

func raiseInEnded(ctx *perdure.OrchestrationContext, _ struct{}) (string, error) {
	child := perdure.CallSubOrchestrationByName[int](ctx, "Counts", 1)
	if _, err := child.Await(ctx); err != nil {
		return "", err
	}
	return raiseError(raiseAll(ctx, child.InstanceID(), "a"))
}

func raiseInSelf(ctx *perdure.OrchestrationContext, _ struct{}) (string, error) {
	if err := raiseAll(ctx, ctx.InstanceID(), "a", "b"); err != nil {
		return "", err
	}
	first, err := perdure.WaitForExternalEvent[string](ctx, "word").Await(ctx)
	if err != nil {
		return "", err
	}
	second, err := perdure.WaitForExternalEvent[string](ctx, "word").Await(ctx)
	return first + ", " + second, err
}

// raiseInDelayed starts an instance with a delay and raises events in it, which the instance finds when it starts.
func raiseInDelayed(ctx *perdure.OrchestrationContext, tick time.Duration) (string, error) {
	id := ctx.InstanceID() + "/later"
	if _, err := perdure.StartOrchestration(ctx, "Listens", kit.WordsInput{Count: 2}, perdure.WithInstanceID(id),
		perdure.WithDelay(3*tick)); err != nil {
		return "", err
	}
	if err := raiseAll(ctx, id, "a", "b"); err != nil {
		return "", err
	}
	return "sent", nil
}

// EchoInput has the instance to which echoWords responds, and the number of words left.
type EchoInput struct {
	To   string
	Left int
}

// exchangeWithEcho sends a word, waits for the response, and sends the next one.
func exchangeWithEcho(ctx *perdure.OrchestrationContext, words int) (responses []string, err error) {
	echo := perdure.CallSubOrchestrationByName[string](ctx, "Echoes", EchoInput{ctx.InstanceID(), words})
	for n := range words {
		if err := raiseAll(ctx, echo.InstanceID(), strconv.Itoa(n)); err != nil {
			return nil, err
		}
		word, err := perdure.WaitForExternalEvent[string](ctx, "word").Await(ctx)
		if err != nil {
			return nil, err
		}
		responses = append(responses, word)
	}
	_, err = echo.Await(ctx)
	return responses, err
}

// echoWords responds to each word and continues as new, before its event is acknowledged.
func echoWords(ctx *perdure.OrchestrationContext, e EchoInput) (string, error) {
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
