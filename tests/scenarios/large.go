package scenarios

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/perdure/perdure"
)

// bulky are orchestrations with payloads that are too large for histories: their hub has a bucket.
func bulky() []Scenario {
	return []Scenario{
		{
			Name: "LargeActivities", Register: body(largeActivities), Input: largeText("i"), Check: gives("iii"),
			Large: true,
		},
		{
			Name: "LargeChildren", Register: body(largeChildren, also("Large child", largeChild)), Input: 0,
			Check: gives("cte"), Large: true,
			Drive: func(ctx context.Context, w World, id string) error {
				return w.Client.RaiseEvent(ctx, id, "go", largeText("e"))
			},
		},
		{
			Name: "LargeCalls", Register: body(largeCalls, also("Large callee", largeCallee)), Check: gives("ctctcu"),
			Large: true,
		},
		{
			Name: "LargeContinuesAsNew", Register: body(largeContinues), Input: []string{largeText("a")},
			Check: all(gives("abb"), executions(3)), Large: true,
		},
	}
}

// largeText is a text of 300 KB between two marks.
func largeText(mark string) string { return mark + strings.Repeat("0123456789", 30<<10) + mark }

// marks are the first letters of texts that largeText has made; an error where one is not whole.
func marks(texts ...string) (all string, err error) {
	first := make([]byte, len(texts))
	for i, text := range texts {
		if text == "" || text != largeText(text[:1]) {
			return "", fmt.Errorf("a text of %d bytes is not what was given", len(text))
		}
		first[i] = text[0]
	}
	return string(first), nil
}

// addLarge registers the activity that large payloads pass through.
func addLarge(r *perdure.Registry) {
	perdure.AddActivity(r, "Large echo", func(_ context.Context, s string) (string, error) { return s, nil })
}

// largeActivities gives an activity its input, by a queue and inline.
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

func largeChild(ctx *perdure.OrchestrationContext, in string) ([]string, error) {
	told, err := perdure.WaitForExternalEvent[string](ctx, "told").Await(ctx)
	return []string{in, told}, err
}

// largeChildren tells a child something, which gives that back, and waits to be told something.
func largeChildren(ctx *perdure.OrchestrationContext, _ int) (string, error) {
	child := perdure.CallSubOrchestrationByName[[]string](ctx, "Large child", largeText("c"))
	if _, err := perdure.RaiseEvent(ctx, child.InstanceID(), "told", largeText("t")).Await(ctx); err != nil {
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

// largeCallee gives back what it was started with, and what an update brings.
func largeCallee(ctx *perdure.OrchestrationContext, in string) (int, error) {
	left := 2
	err := perdure.SetUpdateHandler(ctx, "swap",
		func(ctx *perdure.OrchestrationContext, with string) ([]string, error) {
			if _, err := perdure.CallActivity(ctx, inc, 1).Await(ctx); err != nil {
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

// largeCalls starts who takes updates by the first of them, joins that, and sends another.
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

func largeContinues(ctx *perdure.OrchestrationContext, in []string) (string, error) {
	if len(in) < 3 {
		return perdure.ContinueAsNew[string](ctx, append(in, perdure.SideEffect(ctx, func() string {
			return largeText("b")
		})))
	}
	return marks(in...)
}
