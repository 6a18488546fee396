package scenarios

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
)

// sizedInputs are updates whose inputs are no small ones: history refers to what is over a kibibyte, and has it once;
// what is over 100 KiB fills a message.
func sizedInputs() []Scenario {
	return []Scenario{
		{
			Name: "UpdatesOfAllSizes", Register: body(keeps), Input: sized("i", kibi), Drive: updatesOfAllSizes,
			Check: all(gives(keptOfAllSizes), keptBeside),
		},
		{
			Name: "EntityOfAllSizes", Register: entityOfSizes, Drive: swapsFromOutside,
			Check: gives([]string{"", "x2048", "y112640", "d2048"}),
		},
	}
}

// The sizes: below what is referred to, over a kibibyte, and over 100 KiB.
const small, kibi, hecto = 100, 2 << 10, 110 << 10

// sized is a text of n bytes that begins and ends with a mark.
func sized(mark string, n int) string {
	return mark + strings.Repeat("-", n-2) + mark
}

// tellSize is the mark and the size of a text that sized has made; an error where it is not whole.
func tellSize(text string) (string, error) {
	if text == "" {
		return "", nil
	}
	if len(text) < small || text != sized(text[:1], len(text)) {
		return "", fmt.Errorf("a text of %d bytes is not what was given", len(text))
	}
	return fmt.Sprint(text[:1], len(text)), nil
}

// keeps takes texts by updates, by one handler one at a time and by another side by side, until it is told to close.
func keeps(ctx *perdure.OrchestrationContext, first string) ([]string, error) {
	said, err := tellSize(first)
	kept := []string{said}
	keep := func(ctx *perdure.OrchestrationContext, text string) (string, error) {
		said, err := tellSize(text)
		if err != nil {
			return "", err
		}
		if _, err := perdure.CallActivity(ctx, inc, len(text)).Await(ctx); err != nil {
			return "", err
		}
		kept = append(kept, said)
		return said, nil
	}
	err = errors.Join(err, perdure.SetUpdateHandler(ctx, "one", keep, perdure.Serialized()),
		perdure.SetUpdateHandler(ctx, "any", keep))
	if err == nil {
		_, err = perdure.WaitForExternalEvent[struct{}](ctx, "close").Await(ctx)
	}
	return kept, errors.Join(err, perdure.AwaitUpdateHandlers(ctx))
}

// keptOfAllSizes is what updatesOfAllSizes gives to the instance.
var keptOfAllSizes = []string{"i2048", "o100", "a100", "o2048", "a2048", "o112640", "a112640"}

// updatesOfAllSizes updates the instance, whose handlers are idle, and starts others by updates beside it.
func updatesOfAllSizes(ctx context.Context, w World, id string) error {
	for _, size := range []int{small, kibi, hecto} {
		for _, update := range []string{"one", "any"} {
			mark := update[:1]
			said := fmt.Sprint(mark, size)
			if err := w.updates(ctx, id, update, said, sized(mark, size), fmt.Sprintf("%q", said), ""); err != nil {
				return err
			}
		}
	}
	for size, beside := range keepersBeside(id) {
		said, err := w.answered(func() (json.RawMessage, error) {
			answer, _, err := w.Client.StartOrUpdate(ctx, "UpdatesOfAllSizes", sized("i", size), "one",
				sized("u", size), client.WithInstanceID(beside), client.WithIdempotencyKey("u"))
			return answer, err
		})
		if err != nil || string(said) != fmt.Sprintf(`"u%d"`, size) {
			return errors.Join(fmt.Errorf("%s is started by an update that gives %s", beside, said), err)
		}
		if err := w.closes(ctx, beside); err != nil {
			return err
		}
	}
	return w.closes(ctx, id)
}

// keepersBeside are the ids of those that are started by an update, by the size of that.
func keepersBeside(id string) map[int]string {
	return map[int]string{kibi: id + "/kibi", hecto: id + "/hecto"}
}

// closes has an instance end, and waits for that.
func (w World) closes(ctx context.Context, id string) error {
	if err := w.Client.RaiseEvent(ctx, id, "close", struct{}{}, client.WithEventID("close")); err != nil {
		return err
	}
	return w.until(ctx, id, func(s client.Status) bool { return s.Status.Terminal() })
}

// keptBeside: those beside the instance have what they were started with, and the update that came with that.
func keptBeside(ctx context.Context, c *client.Client, s client.Status) error {
	for size, id := range keepersBeside(s.InstanceID) {
		beside, err := c.Status(ctx, id)
		if err != nil {
			return err
		}
		if err := gives([]string{fmt.Sprint("i", size), fmt.Sprint("u", size)})(ctx, c, beside); err != nil {
			return fmt.Errorf("%s: %w", id, err)
		}
	}
	return nil
}

const textEntity = "text"

// entityOfSizes is an entity that has one text.
func entityOfSizes(r *perdure.Registry, name string) {
	perdure.AddEntity(r, textEntity,
		perdure.Operation("swap",
			func(ctx *perdure.OrchestrationContext, text *string, with string) (before string, err error) {
				if _, err := tellSize(with); err != nil {
					return "", err
				}
				before, *text = *text, with
				_, err = perdure.CallActivity(ctx, inc, len(with)).Await(ctx)
				return before, err
			}))
	perdure.AddOrchestration(r, name, swaps)
}

// swaps calls the entity three times at once: the first call makes it, and the others wait for their turns. It calls it
// again when a client has done so, and tells what was there each time.
func swaps(ctx *perdure.OrchestrationContext, _ struct{}) ([]string, error) {
	swap := func(mark string, size int) *perdure.Future[string] {
		return perdure.CallEntity[string](ctx, textEntity, ctx.InstanceID(), "swap", sized(mark, size))
	}
	var all []string
	for _, f := range []*perdure.Future[string]{swap("x", kibi), swap("y", hecto), swap("z", small)} {
		before, err := f.Await(ctx)
		if err != nil {
			return nil, err
		}
		said, err := tellSize(before)
		if err != nil {
			return nil, err
		}
		all = append(all, said)
	}
	ctx.SetCustomStatus("called")
	if _, err := perdure.WaitForExternalEvent[struct{}](ctx, "go").Await(ctx); err != nil {
		return nil, err
	}
	before, err := swap("e", hecto).Await(ctx)
	if err != nil {
		return nil, err
	}
	said, err := tellSize(before)
	return append(all, said), err
}

// swapsFromOutside calls the entity, which is idle, twice, and ends it once the instance has called it again.
func swapsFromOutside(ctx context.Context, w World, id string) error {
	if err := w.untilStatus(ctx, id, "called"); err != nil {
		return err
	}
	there := sized("z", small)
	for _, with := range []string{sized("c", hecto), sized("d", kibi)} {
		before, err := w.answered(func() (json.RawMessage, error) {
			return w.Client.CallEntity(ctx, textEntity, id, "swap", with, client.WithUpdateID(with[:1]))
		})
		if err != nil || string(before) != fmt.Sprintf("%q", there) {
			return errors.Join(fmt.Errorf("there were %d bytes before %d", len(before), len(with)), err)
		}
		there = with
	}
	if err := w.Client.RaiseEvent(ctx, id, "go", struct{}{}, client.WithEventID("go")); err != nil {
		return err
	}
	if err := w.until(ctx, id, func(s client.Status) bool { return s.Status.Terminal() }); err != nil {
		return err
	}
	return w.Client.Cancel(ctx, perdure.EntityInstanceID(textEntity, id), "no more")
}
