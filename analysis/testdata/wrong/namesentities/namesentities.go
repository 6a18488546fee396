// Command namesentities calls entities and operations that are not registered.
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

func order(ctx *perdure.OrchestrationContext, id string) (string, error) {
	if _, err := perdure.CallEntity[int](ctx, "cart", id, "ad", "tea").Await(ctx); err != nil {
		return "", err
	}
	if _, err := perdure.CallEntity[int](ctx, "card", id, "add", "tea").Await(ctx); err != nil {
		return "", err
	}
	if _, err := perdure.CallEntity[int](ctx, "basket", id, "add", "tea").Await(ctx); err != nil {
		return "", err
	}
	if _, err := perdure.CallUpdate[int](ctx, id, "close", "tea").Await(ctx); err != nil {
		return "", err
	}
	_, err := perdure.CallEntity[int](ctx, "cart", id, "add", 7).Await(ctx) // want `operation "add", called at .*, gets a number but takes a string.*\[misfit\]`
	return "", err
}

func main() {
	r := perdure.NewRegistry()
	perdure.AddEntity(r, "cart", perdure.Operation("add", add))
	perdure.AddEntity(r, "basket", perdure.Operation("clear", add))
	perdure.AddOrchestration(r, "order", order)
	lambdahandler.StartOrchestrator(r) // want `operation "ad", called at .*, is not registered in this program \(did you mean "add"\?\): .*\[unregistered\]` `entity "card", called at .*, is not registered in this program \(did you mean "cart"\?\)` `operation "add", called at .*, is not registered in this program: ` `update "close", called at`
}
