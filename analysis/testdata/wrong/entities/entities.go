// Command entities calls unknown operations, and has operations with effects.
package main

import (
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/lambdahandler"
)

type stock struct {
	Free int
	At   time.Time
}

func hold(ctx *perdure.OrchestrationContext, s *stock, pieces int) (int, error) {
	s.At = time.Now() // want `hold calls time.Now: the clock returns a different time at each replay; use ctx.Now\(\) \[clock\]`
	s.Free -= pieces
	return s.Free, nil
}

// last is the context of another operation.
var last *perdure.OrchestrationContext

func refill(ctx *perdure.OrchestrationContext, s *stock, pieces int) (int, error) {
	last = ctx                                                                         // want `refill writes last: .* \[globals\]`
	got, err := perdure.CallUpdate[string](ctx, "carrier", "bring", pieces).Await(ctx) // want `update "bring", called at entities/entities.go:\d+, returns a number but the call expects a string: .* \[misfit\]`
	s.Free += len(got)
	return s.Free, err
}

func orders(ctx *perdure.OrchestrationContext, article string) (int, error) {
	if _, err := perdure.CallEntity[int](ctx, "stock", article, "hold", "two").Await(ctx); err != nil { // want `operation "hold", called at .*, gets a string but takes a number`
		return 0, err
	}
	if _, err := perdure.CallEntity[[]int](ctx, "stock", article, "hold", 2).Await(ctx); err != nil { // want `operation "hold", called at .*, returns a number but the call expects a list`
		return 0, err
	}
	if _, err := perdure.CallEntity[int](ctx, "stocks", article, "holt", 2).Await(ctx); err != nil {
		return 0, err
	}
	if _, err := perdure.CallUpdate[int](ctx, "carrier", "bring", "two").Await(ctx); err != nil { // want `update "bring", called at .*, gets a string but takes a number`
		return 0, err
	}
	starting := perdure.WithStart("carrier", true) // want `orchestration "carrier", called at .*, gets a boolean but takes a number`
	if _, err := perdure.CallUpdate[int](ctx, "carrier", "fetch", 2, starting, perdure.WithStart("courier", 1)).Await(ctx); err != nil {
		return 0, err
	}
	return 0, nil
}

func carries(ctx *perdure.OrchestrationContext, n int) (int, error) {
	err := perdure.SetUpdateHandler(ctx, "bring", func(inner *perdure.OrchestrationContext, pieces int) (int, error) {
		return pieces, perdure.Sleep(ctx, time.Minute) // want `\[scope\]`
	})
	if err != nil {
		return 0, err
	}
	return n, perdure.AwaitUpdateHandlers(ctx)
}

func registry() *perdure.Registry {
	r := perdure.NewRegistry()
	perdure.AddEntity(r, "stock", perdure.Operation("hold", hold), perdure.Operation("refill", refill),
		perdure.Operation("count", func(ctx *perdure.OrchestrationContext, s *stock, _ int) (int, error) {
			time.Sleep(time.Second) // want `\[clock\]`
			return s.Free, nil
		}))
	perdure.AddOrchestration(r, "orders", orders)
	perdure.AddOrchestration(r, "carrier", carries)
	return r
}

func main() {
	lambdahandler.StartOrchestrator(registry()) // want `entity "stocks", called at entities/entities.go:\d+, is not registered in this program \(did you mean "stock"\?\)` `operation "holt", called at .*, is not registered in this program \(did you mean "hold"\?\)` `update "fetch", called at` `orchestration "courier", called at`
}
