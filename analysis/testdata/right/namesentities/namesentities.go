// Command namesentities calls entities and operations that are registered, or may be registered.
package main

import (
	"github.com/perdure/perdure"
	"github.com/perdure/perdure/lambdahandler"
)

type cart struct{ Lines []string }

func add(_ *perdure.OrchestrationContext, c *cart, line string) (int, error) {
	c.Lines = append(c.Lines, line)
	return len(c.Lines), nil
}

var clearing = perdure.Operation("clear", func(_ *perdure.OrchestrationContext, c *cart, _ struct{}) (int, error) { return 0, nil })

func order(ctx *perdure.OrchestrationContext, id string) (string, error) {
	for _, err := range []error{
		call(ctx, "cart", id, "add"), call(ctx, "cart", id, "clear"), call(ctx, "basket", id, "any"), call(ctx, "shelf", id, "any"),
	} {
		if err != nil {
			return "", err
		}
	}
	if _, err := perdure.CallEntity[int](ctx, "cart", id, "clear", nil).Await(ctx); err != nil {
		return "", err
	}
	if _, err := perdure.CallEntity[int](ctx, "cart", id, "add", "tea").Await(ctx); err != nil {
		return "", err
	}
	if _, err := perdure.CallEntity[int](ctx, "basket", id, "any", "tea").Await(ctx); err != nil {
		return "", err
	}
	if _, err := perdure.CallUpdate[int](ctx, perdure.EntityInstanceID("cart", id), "clear", nil).Await(ctx); err != nil {
		return "", err
	}
	if err := perdure.SetUpdateHandler(ctx, "pack", func(_ *perdure.OrchestrationContext, n int) (int, error) { return n, nil }); err != nil {
		return "", err
	}
	if _, err := perdure.CallUpdate[int](ctx, id, "pack", 7).Await(ctx); err != nil {
		return "", err
	}
	_, err := perdure.CallEntity[int](ctx, "shelf", id, "all", "tea").Await(ctx)
	return "", err
}

func call(ctx *perdure.OrchestrationContext, entity, key, operation string) error {
	_, err := perdure.CallEntity[int](ctx, entity, key, operation, nil).Await(ctx)
	return err
}

func operations() []perdure.EntityOperation[cart] {
	return []perdure.EntityOperation[cart]{perdure.Operation("any", add)}
}

func main() {
	r := perdure.NewRegistry()
	perdure.AddEntity(r, "cart", perdure.Operation("add", add), clearing)
	perdure.AddEntity(r, "basket", operations()...)
	perdure.AddEntity(r, "shelf", operations()[0])
	perdure.AddOrchestration(r, "order", order)
	lambdahandler.StartOrchestrator(r)
}
