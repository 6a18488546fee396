// Command entities has entities, and calls their operations and updates of other entities.
package main

import (
	"errors"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/lambdahandler"
)

type stock struct {
	Free int
	At   time.Time
}

func hold(ctx *perdure.OrchestrationContext, s *stock, pieces int) (int, error) {
	if s.Free < pieces {
		return 0, errors.New("sold out")
	}
	s.At = ctx.Now()
	s.Free -= pieces
	return s.Free, nil
}

// refill waits, and calls another entity.
func refill(ctx *perdure.OrchestrationContext, s *stock, pieces int) (int, error) {
	if err := perdure.Sleep(ctx, time.Minute); err != nil {
		return 0, err
	}
	taken, err := perdure.CallEntity[int](ctx, "depot", "north", "take", pieces).Await(ctx)
	s.Free += taken
	return s.Free, err
}

type depot map[string]int

func orders(ctx *perdure.OrchestrationContext, article string) (string, error) {
	// An operation is an update of the entity's instance.
	if _, err := perdure.CallUpdate[int](ctx, perdure.EntityInstanceID("stock", article), "hold", 2).Await(ctx); err != nil {
		return "", err
	}
	if _, err := perdure.CallEntity[any](ctx, "stock", article, "refill", 2, perdure.WithUpdateID(article)).Await(ctx); err != nil {
		return "", err
	}
	//perdure:ignore unregistered another program registers the entity
	if _, err := perdure.CallEntity[string](ctx, "ledger", article, "book", 2).Await(ctx); err != nil {
		return "", err
	}
	return perdure.CallUpdate[string](ctx, "reports", "make", article, perdure.WithStart("reports", 0)).Await(ctx)
}

func reports(ctx *perdure.OrchestrationContext, _ int) (int, error) {
	err := perdure.SetUpdateHandler(ctx, "make", func(ctx *perdure.OrchestrationContext, day string) (string, error) {
		return day, perdure.Sleep(ctx, time.Minute)
	}, perdure.Serialized())
	if err != nil {
		return 0, err
	}
	if err := perdure.Sleep(ctx, time.Hour); err != nil {
		return 0, err
	}
	return 0, perdure.AwaitUpdateHandlers(ctx)
}

func registry() *perdure.Registry {
	r := perdure.NewRegistry()
	perdure.AddEntity(r, "stock", perdure.Operation("hold", hold), perdure.Operation("refill", refill, perdure.DeleteState()))
	perdure.AddEntity(r, "depot", perdure.Operation("take", func(_ *perdure.OrchestrationContext, d *depot, n int) (int, error) {
		(*d)["taken"] += n
		return n, nil
	}))
	perdure.AddOrchestration(r, "orders", orders)
	perdure.AddOrchestration(r, "reports", reports)
	return r
}

func main() { lambdahandler.StartOrchestrator(registry()) }
