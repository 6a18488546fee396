package messages

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/tests/scenarios/internal/kit"
)

// sizeScenarios send updates of several sizes. A history refers to inputs of more than a kibibyte, and contains them
// once. Inputs of more than 100 KiB fill a message.
func sizeScenarios() []kit.Scenario {
	return []kit.Scenario{
		{
			Name: "UpdatesOfAllSizes", Register: kit.Run(collectTexts), Input: sizedText("i", kibi),
			Drive: sendAllSizes,
			Check: kit.All(kit.Returns(wantTexts), othersCollected),
		},
		{
			Name: "EntityOfAllSizes", Register: addTextEntity, Drive: swapByClient,
			Check: kit.Returns([]string{"", "x2048", "y112640", "d2048"}),
		},
	}
}

// Sizes of inputs in bytes. The history contains small inputs, and has references to inputs of size kibi. An input of
// size hecto fills a message.
const small, kibi, hecto = 100, 2 << 10, 110 << 10

// sizedText returns a text of n bytes that begins and ends with a mark.
func sizedText(mark string, n int) string {
	return mark + strings.Repeat("-", n-2) + mark
}

// sizeOf returns the mark and size of a text that sizedText made. It returns an error if the text is not complete.
func sizeOf(text string) (string, error) {
	if text == "" {
		return "", nil
	}
	if len(text) < small || text != sizedText(text[:1], len(text)) {
		return "", fmt.Errorf("text of %d bytes is not complete", len(text))
	}
	return fmt.Sprint(text[:1], len(text)), nil
}

// collectTexts collects the inputs of updates, with a serialized handler and a concurrent one, until the event "close".
func collectTexts(ctx *perdure.OrchestrationContext, first string) ([]string, error) {
	label, err := sizeOf(first)
	kept := []string{label}
	keep := func(ctx *perdure.OrchestrationContext, text string) (string, error) {
		label, err := sizeOf(text)
		if err != nil {
			return "", err
		}
		if _, err := perdure.CallActivity(ctx, kit.Inc, len(text)).Await(ctx); err != nil {
			return "", err
		}
		kept = append(kept, label)
		return label, nil
	}
	err = errors.Join(err, perdure.SetUpdateHandler(ctx, "one", keep, perdure.Serialized()),
		perdure.SetUpdateHandler(ctx, "any", keep))
	if err == nil {
		_, err = perdure.WaitForExternalEvent[struct{}](ctx, "close").Await(ctx)
	}
	return kept, errors.Join(err, perdure.AwaitUpdateHandlers(ctx))
}

// wantTexts has the texts of sendAllSizes.
var wantTexts = []string{"i2048", "o100", "a100", "o2048", "a2048", "o112640", "a112640"}

// sendAllSizes updates the instance, whose handlers are idle, and starts others with updates.
func sendAllSizes(ctx context.Context, w kit.World, id string) error {
	for _, size := range []int{small, kibi, hecto} {
		for _, update := range []string{"one", "any"} {
			mark := update[:1]
			label := fmt.Sprint(mark, size)
			if err := sendUpdate(ctx, w, id, update, label, sizedText(mark, size), fmt.Sprintf("%q", label),
				""); err != nil {
				return err
			}
		}
	}
	for size, beside := range otherCollectors(id) {
		label, err := w.UntilResponse(func() (json.RawMessage, error) {
			response, _, err := w.Client.StartOrUpdate(ctx, "UpdatesOfAllSizes", sizedText("i", size), "one",
				sizedText("u", size), client.WithInstanceID(beside), client.WithIdempotencyKey("u"))
			return response, err
		})
		if err != nil || string(label) != fmt.Sprintf(`"u%d"`, size) {
			return errors.Join(fmt.Errorf("instance %s: the update that starts it returns %s", beside, label), err)
		}
		if err := closeInstance(ctx, w, beside); err != nil {
			return err
		}
	}
	return closeInstance(ctx, w, id)
}

// otherCollectors returns the IDs of the instances that an update starts, by the size of its input.
func otherCollectors(id string) map[int]string {
	return map[int]string{kibi: id + "/kibi", hecto: id + "/hecto"}
}

// closeInstance makes an instance end and waits for its end.
func closeInstance(ctx context.Context, w kit.World, id string) error {
	if err := w.Client.RaiseEvent(ctx, id, "close", struct{}{}, client.WithEventID("close")); err != nil {
		return err
	}
	return w.UntilEnded(ctx, id)
}

// othersCollected checks that the other instances have their inputs and the updates that started them.
func othersCollected(ctx context.Context, c *client.Client, s client.Status) error {
	for size, id := range otherCollectors(s.InstanceID) {
		beside, err := c.Status(ctx, id)
		if err != nil {
			return err
		}
		if err := kit.Returns([]string{fmt.Sprint("i", size), fmt.Sprint("u", size)})(ctx, c, beside); err != nil {
			return fmt.Errorf("%s: %w", id, err)
		}
	}
	return nil
}

const textEntity = "text"

// addTextEntity adds an entity with a text as its state.
func addTextEntity(r *perdure.Registry, name string) {
	perdure.AddEntity(r, textEntity,
		perdure.Operation("swap",
			func(ctx *perdure.OrchestrationContext, text *string, with string) (before string, err error) {
				if _, err := sizeOf(with); err != nil {
					return "", err
				}
				before, *text = *text, with
				_, err = perdure.CallActivity(ctx, kit.Inc, len(with)).Await(ctx)
				return before, err
			}))
	perdure.AddOrchestration(r, name, callSwap)
}

// callSwap calls the entity three times concurrently, and again after the calls of a client. The first call creates the
// entity. callSwap returns the previous texts.
func callSwap(ctx *perdure.OrchestrationContext, _ struct{}) ([]string, error) {
	swap := func(mark string, size int) *perdure.Future[string] {
		return perdure.CallEntity[string](ctx, textEntity, ctx.InstanceID(), "swap", sizedText(mark, size))
	}
	var all []string
	for _, f := range []*perdure.Future[string]{swap("x", kibi), swap("y", hecto), swap("z", small)} {
		before, err := f.Await(ctx)
		if err != nil {
			return nil, err
		}
		label, err := sizeOf(before)
		if err != nil {
			return nil, err
		}
		all = append(all, label)
	}
	ctx.SetCustomStatus("called")
	if _, err := perdure.WaitForExternalEvent[struct{}](ctx, "go").Await(ctx); err != nil {
		return nil, err
	}
	before, err := swap("e", hecto).Await(ctx)
	if err != nil {
		return nil, err
	}
	label, err := sizeOf(before)
	return append(all, label), err
}

// swapByClient calls the idle entity twice, and cancels it after the last call of the instance.
func swapByClient(ctx context.Context, w kit.World, id string) error {
	if err := w.UntilStatus(ctx, id, "called"); err != nil {
		return err
	}
	there := sizedText("z", small)
	for _, with := range []string{sizedText("c", hecto), sizedText("d", kibi)} {
		before, err := w.UntilResponse(func() (json.RawMessage, error) {
			return w.Client.CallEntity(ctx, textEntity, id, "swap", with, client.WithUpdateID(with[:1]))
		})
		if err != nil || string(before) != fmt.Sprintf("%q", there) {
			return errors.Join(fmt.Errorf("previous text has %d bytes, before one of %d", len(before), len(with)), err)
		}
		there = with
	}
	if err := w.Client.RaiseEvent(ctx, id, "go", struct{}{}, client.WithEventID("go")); err != nil {
		return err
	}
	if err := w.UntilEnded(ctx, id); err != nil {
		return err
	}
	return w.Client.Cancel(ctx, perdure.EntityInstanceID(textEntity, id), "no more")
}
