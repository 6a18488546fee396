package basics

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/tests/scenarios/internal/kit"
)

// largeScenarios use payloads that are too large for histories. Their hub has a payload store.
func largeScenarios() []kit.Scenario {
	return []kit.Scenario{
		{
			Name: "LargeActivities", Register: kit.Run(largeActivities), Input: largeText("i"),
			Check: kit.Returns("iii"),
			Large: true,
		},
		{
			Name: "LargeChildren", Register: kit.Run(largeChildren, kit.Also("Large child", largeChild)), Input: 0,
			Check: kit.Returns("cte"), Large: true,
			Drive: func(ctx context.Context, w kit.World, id string) error {
				return w.Client.RaiseEvent(ctx, id, "go", largeText("e"))
			},
		},
		{
			Name: "LargeCalls", Register: kit.Run(largeCalls, kit.Also("Large callee", largeCallee)),
			Check: kit.Returns("ctctcu"),
			Large: true,
		},
		{
			Name: "LargeContinuesAsNew", Register: kit.Run(largeContinues), Input: []string{largeText("a")},
			Check: kit.All(kit.Returns("abb"), kit.Executions(3)), Large: true,
		},
	}
}

// largeText returns a text of 300 KB between two marks.
func largeText(mark string) string { return mark + strings.Repeat("0123456789", 30<<10) + mark }

// marks returns the marks of texts that largeText made. It returns an error if a text is not complete.
func marks(texts ...string) (all string, err error) {
	first := make([]byte, len(texts))
	for i, text := range texts {
		if text == "" || text != largeText(text[:1]) {
			return "", fmt.Errorf("text of %d bytes is not complete", len(text))
		}
		first[i] = text[0]
	}
	return string(first), nil
}

// addLarge registers the activity that receives and returns large payloads.
func addLarge(r *perdure.Registry) {
	perdure.AddActivity(r, "Large echo", func(_ context.Context, s string) (string, error) { return s, nil })
}

// largeActivities passes its input to an activity through a queue and to an inline one.
func largeActivities(ctx *perdure.OrchestrationContext, in string) (string, error) {
	queued := perdure.CallActivityByName[string](ctx, "Large echo", in)
	inline := perdure.CallActivityByName[string](ctx, "Large echo", in, perdure.Inline())
	if err := perdure.WhenAll(ctx, queued, inline); err != nil {
		return "", err
	}
	a, _ := queued.Await(ctx)
	b, _ := inline.Await(ctx)
	return marks(in, a, b)
}

// largeChild returns its input and the data of an event.
func largeChild(ctx *perdure.OrchestrationContext, in string) ([]string, error) {
	data, err := perdure.WaitForExternalEvent[string](ctx, "changed").Await(ctx)
	return []string{in, data}, err
}

// largeChildren raises an event in a child, which returns the data, and waits for an event.
func largeChildren(ctx *perdure.OrchestrationContext, _ int) (string, error) {
	child := perdure.CallSubOrchestrationByName[[]string](ctx, "Large child", largeText("c"))
	if _, err := perdure.RaiseEvent(ctx, child.InstanceID(), "changed", largeText("t")).Await(ctx); err != nil {
		return "", err
	}
	texts, err := child.Await(ctx)
	if err != nil {
		return "", err
	}
	e, err := perdure.WaitForExternalEvent[string](ctx, "go").Await(ctx)
	if err != nil {
		return "", err
	}
	return marks(append(texts, e)...)
}

// largeCallee returns its input and the input of each update.
func largeCallee(ctx *perdure.OrchestrationContext, in string) (int, error) {
	left := 2
	err := perdure.SetUpdateHandler(ctx, "swap",
		func(ctx *perdure.OrchestrationContext, with string) ([]string, error) {
			if _, err := perdure.CallActivity(ctx, kit.Inc, 1).Await(ctx); err != nil {
				return nil, err
			}
			if left--; left == 0 {
				perdure.RaiseEvent(ctx, ctx.InstanceID(), "go", 1)
			}
			return []string{in, with}, nil
		}, perdure.Serialized())
	if err == nil {
		_, err = perdure.WaitForExternalEvent[int](ctx, "go").Await(ctx)
	}
	return 0, errors.Join(err, perdure.AwaitUpdateHandlers(ctx))
}

// largeCalls starts an instance with an update, repeats the update, and sends another one.
func largeCalls(ctx *perdure.OrchestrationContext, _ int) (string, error) {
	call := func(id, mark string) *perdure.Future[[]string] {
		return perdure.CallUpdate[[]string](ctx, ctx.InstanceID()+"/callee", "swap", largeText(mark),
			perdure.WithUpdateID(id), perdure.WithStart("Large callee", largeText("c")))
	}
	var all []string
	for _, f := range []*perdure.Future[[]string]{call("u-1", "t"), call("u-1", "x"), call("u-2", "u")} {
		texts, err := f.Await(ctx)
		if err != nil {
			return "", err
		}
		all = append(all, texts...)
	}
	return marks(all...)
}

// largeContinues adds a text in each execution.
func largeContinues(ctx *perdure.OrchestrationContext, in []string) (string, error) {
	if len(in) < 3 {
		return perdure.ContinueAsNew[string](ctx, append(in, perdure.SideEffect(ctx, func() string {
			return largeText("b")
		})))
	}
	return marks(in...)
}
