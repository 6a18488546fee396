// Package calls misuses perdure's functions.
package calls

import (
	"context"
	"time"

	"github.com/perdure/perdure"
)

type order struct {
	ID    string
	total int
}

type line struct{ Done chan int }

type cart struct{ Lines []line }

type broken struct{ Err error }

type chargers interface {
	Charge(ctx context.Context, o order) (string, error)
}

func charge(context.Context, order) (string, error) { return "", nil }

func register(r *perdure.Registry) {
	perdure.AddActivity(r, "charge", charge)          // want `^order has the unexported field total: payloads are encoded as JSON.*\[payload\]`
	perdure.AddOrchestration(r, "fulfil", fulfil)     // want `order has the unexported field total.*\[payload\]`
	_ = perdure.DefineActivity[cart, broken]("lines") // want `cart has a channel in Done in Lines.*\[payload\]` `broken has the interface error in Err.*\[payload\]`
}

func fulfil(ctx *perdure.OrchestrationContext, o order) (string, error) {
	perdure.CallActivity(ctx, charge, o)                                                                               // want `^warning: fulfil drops the future of perdure\.CallActivity: .*\[unawaited\]`
	_ = perdure.CreateTimer(ctx, time.Hour)                                                                            // want `drops the future of perdure\.CreateTimer.*\[unawaited\]`
	_, err := perdure.CallActivity(ctx, func(context.Context, order) (string, error) { return "", nil }, o).Await(ctx) // want `fulfil calls a function literal: .*\[unidentified\]`
	perdure.ContinueAsNew[string](ctx, o.ID)                                                                           // want `fulfil drops the error of perdure\.ContinueAsNew.*\[continueasnew\]`
	_, _ = perdure.ContinueAsNew[string](ctx, o.ID)                                                                    // want `fulfil drops the error of perdure\.ContinueAsNew.*\[continueasnew\]`
	if perdure.Version(ctx, "rate of "+o.ID, 1, 2) == 1 {                                                              // want `fulfil calls perdure\.Version with a change that is not a constant.*\[change\]`
		perdure.Version(ctx, "rate", 3, 2) // want `fulfil calls perdure\.Version with the empty range 3 to 2.*\[change\]`
	}
	if !ctx.IsReplaying() { // want `fulfil depends on ctx\.IsReplaying.*\[replaying\]`
		return perdure.CallActivity(ctx, charge, o).Await(ctx)
	}
	return "", err
}

func identified(ctx *perdure.OrchestrationContext, c chargers) (string, error) {
	local := func(context.Context, order) (string, error) { return "", nil }
	if s, err := perdure.CallActivity(ctx, local, order{}).Await(ctx); err != nil { // want `identified calls a function literal, local.*\[unidentified\]`
		return s, err
	}
	return perdure.CallActivity(ctx, c.Charge, order{}).Await(ctx) // want `calls chargers\.Charge, a method of an interface.*\[unidentified\]`
}

func undo(ctx *perdure.OrchestrationContext) error { return perdure.Sleep(ctx, time.Second) }

func compensates(ctx *perdure.OrchestrationContext, o order) (string, error) {
	var err error
	defer perdure.Compensate(ctx, &err, undo) // want `compensates passes perdure\.Compensate the address of err, which is not a named result.*\[compensation\]`
	return "", err
}

func deferred(ctx *perdure.OrchestrationContext, o order) (_ string, err error) {
	perdure.Compensate(ctx, &err, undo)                    // want `calls perdure\.Compensate without deferring it directly.*\[compensation\]`
	defer perdure.RaiseEvent(ctx, "audit", "undone", o.ID) // want `deferred raises an event in a deferred function with a context that may be cancelled.*\[compensation\]`
	defer undo(ctx)                                        // want `deferred defers undo, which waits with a context that may be cancelled.*\[compensation\]`
	defer func() {
		if err != nil {
			_, _ = perdure.CallActivity(ctx, charge, o).Await(ctx) // want `deferred waits in a deferred function with a context that may be cancelled.*\[compensation\]`
		}
	}()
	return "", nil
}

func scopes(ctx *perdure.OrchestrationContext, o order) (id string, err error) {
	defer perdure.Compensate(ctx, &err, func(own *perdure.OrchestrationContext) error {
		_, err := perdure.CallActivity(ctx, charge, o).Await(own) // want `the function in scopes uses ctx, the context of scopes: .*\[scope\]`
		return err
	})
	return perdure.SideEffect(ctx, func() string {
		return ctx.InstanceID() // want `the function of perdure\.SideEffect uses ctx.*\[scope\]`
	}), nil
}

func answers(ctx *perdure.OrchestrationContext, o order) (string, error) {
	return o.ID, perdure.SetQueryHandler(ctx, "charge", func(again bool) (string, error) {
		if again {
			ctx.SetCustomStatus("asked") // want `the query handler in answers calls .*SetCustomStatus.*\[query\]`
		}
		f := perdure.CallActivity(ctx, charge, o) // want `the query handler in answers calls perdure\.CallActivity.*\[query\]`
		return f.Await(ctx)                       // want `the query handler in answers calls .*Await.*\[query\]`
	})
}

func updated(ctx *perdure.OrchestrationContext, o order) (string, error) {
	if err := perdure.SetUpdateHandler(ctx, "charge", func(own *perdure.OrchestrationContext, total int) (int, error) {
		perdure.CallActivity(own, charge, o) // want `drops the future of perdure\.CallActivity.*\[unawaited\]`
		time.Sleep(time.Second)              // want `calls time\.Sleep.*\[clock\]`
		return total, nil
	}, perdure.WithValidator(func(total int) error {
		ctx.SetCustomStatus("asked")                              // want `the update validator in updated calls .*SetCustomStatus.*\[query\]`
		_, err := perdure.CallActivity(ctx, charge, o).Await(ctx) // want `the update validator in updated calls perdure\.CallActivity.*\[query\]` `the update validator in updated calls .*Await.*\[query\]`
		return err
	})); err != nil {
		return "", err
	}
	return o.ID, perdure.SetUpdateHandler(ctx, "pack", packed) // want `order has the unexported field total.*\[payload\]`
}

// packed is a handler that is passed by name.
func packed(ctx *perdure.OrchestrationContext, o order) (string, error) {
	return o.ID + time.Now().String(), perdure.Sleep(ctx, time.Hour) // want `packed calls time\.Now.*\[clock\]`
}

// polls waits for conditions. Both condition functions are orchestration code.
func polls(ctx *perdure.OrchestrationContext, o order) (order, error) {
	return perdure.WaitForCondition(ctx, o, func(_ *perdure.OrchestrationContext, o order) (order, error) {
		o.ID = time.Now().String() // want `polls calls time\.Now.*\[clock\]`
		return o, nil
	}, func(order) bool {
		return time.Now().Hour() > 8 // want `polls calls time\.Now.*\[clock\]`
	}, perdure.PollPolicy{})
}

// pollsLate waits until a time of the wall clock.
func pollsLate(ctx *perdure.OrchestrationContext, o order) (order, error) {
	return perdure.WaitForCondition(ctx, o, checked, late, perdure.PollPolicy{}) // want `pollsLate uses late .*, which calls time\.Now.*\[clock\]`
}

func checked(_ *perdure.OrchestrationContext, o order) (order, error) {
	time.Sleep(time.Second) // want `checked calls time\.Sleep.*\[clock\]`
	return o, nil
}

func late(order) bool { return time.Now().Hour() > 20 }

// pollsInTheEnd waits in a deferred function whose context may be cancelled.
func pollsInTheEnd(ctx *perdure.OrchestrationContext, o order) (string, error) {
	defer func() {
		_, _ = perdure.WaitForCondition(ctx, o, checked, func(order) bool { return true }, perdure.PollPolicy{}) // want `pollsInTheEnd waits in a deferred function.*\[compensation\]`
	}()
	return o.ID, nil
}

func forever(ctx *perdure.OrchestrationContext, o order) (string, error) {
	for { // want `forever loops forever: .*\[endless\]`
		if err := perdure.Sleep(ctx, time.Hour); err != nil {
			return "", err
		}
		if _, err := perdure.CallActivity(ctx, charge, o).Await(ctx); err != nil {
			break
		}
	}
	for { // want `forever loops forever, even after it is cancelled, .*return the error of each wait.*\[endless\]`
		_ = perdure.Sleep(ctx, time.Hour)
		switch o.total {
		case 1:
			break
		}
	}
}

func renewed(ctx *perdure.OrchestrationContext, o order) (string, error) {
	if o.total > 7 {
		return perdure.ContinueAsNew[string](ctx, order{}) // want `order has the unexported field total`
	}
	watching := perdure.Go(ctx, func(ctx *perdure.OrchestrationContext) {
		for { // want `even after it is cancelled`
			_, _ = perdure.CallActivity(ctx, charge, o).Await(ctx)
		}
	})
	_, err := perdure.WhenAny(ctx, watching, perdure.CreateTimer(ctx, time.Hour))
	return "", err
}
