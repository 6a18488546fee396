package scenarios

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
)

func failures(tick time.Duration) []Scenario {
	return []Scenario{
		{
			Name: "TypedErrorThroughActivity", Register: body(catches), Input: soldOut,
			Check: gives("StockError: reserving: no car in stock"),
		},
		{
			Name: "TypedErrorThroughChild", Register: body(catchesChild), Input: soldOut,
			Check: gives(
				`ActivityError of StockError: activity "Reserve" (#3): StockError: reserving: no car in stock`,
			),
		},
		{
			Name: "TypedErrorToTheClient", Register: body(reserves), Input: soldOut,
			Check: all(fails("ActivityError", "no car in stock"), causedBy("StockError")),
		},
		{Name: "DetailsThroughActivity", Register: body(reservesLater), Input: soldOut, Check: gives("car in 3 days")},
		{
			Name: "DetailsThroughChild", Register: body(reservesLater), Input: "child",
			Check: all(fails("SubOrchestrationError", "no car in stock"), detailed(Shortage{soldOut, 3})),
		},
		{
			Name: "TimeoutThroughChild", Register: body(catchesTimeout), Input: tick,
			Check: gives("a deadline was exceeded: true"),
		},
		{
			Name: "PanicInBody", Register: body(panics), Input: 3,
			Check: fails(history.TypePanic, "index out of range [3]", "scenarios.panics"),
		},
		{
			Name: "PanicInActivity", Register: body(catchesPanic), Input: "Explode",
			Check: gives("panic: integer divide by zero"),
		},
		{
			Name: "PanicInChild", Register: body(catchesPanic), Input: "Panics",
			Check: gives("panic: index out of range [0]"),
		},
		{Name: "InputOfAnotherType", Register: body(hello), Input: 7, Check: fails(history.TypeDecode, "input")},
	}
}

// reserves fails as its activity does.
func reserves(ctx *perdure.OrchestrationContext, item string) (string, error) {
	return perdure.CallActivity(ctx, reserve, item).Await(ctx)
}

func catches(ctx *perdure.OrchestrationContext, item string) (string, error) {
	_, err := perdure.CallActivity(ctx, reserve, item).Await(ctx)
	failed, ok := errors.AsType[*perdure.ActivityError](err)
	if !ok || failed.Activity != "Reserve" {
		return "", fmt.Errorf("not the failure of an activity: %w", err)
	}
	return failed.Type + ": " + failed.Message, nil
}

func catchesChild(ctx *perdure.OrchestrationContext, item string) (string, error) {
	_, err := perdure.CallSubOrchestrationByName[string](ctx, "Reserves", item).Await(ctx)
	failed, ok := errors.AsType[*perdure.SubOrchestrationError](err)
	if !ok || failed.Orchestration != "Reserves" || failed.Cause == nil {
		return "", fmt.Errorf("not the failure of an orchestration, with a cause: %w", err)
	}
	return failed.Type + " of " + failed.Cause.Type + ": " + failed.Message, nil
}

// reservesLater reads when there is something again, or has a child fail for it.
func reservesLater(ctx *perdure.OrchestrationContext, item string) (string, error) {
	if item == "child" {
		return perdure.CallSubOrchestrationByName[string](ctx, "Reserves", soldOut).Await(ctx)
	}
	_, err := perdure.CallActivity(ctx, reserve, item).Await(ctx)
	short, why := perdure.ErrorDetails[Shortage](err)
	return fmt.Sprintf("%s in %d days", short.Item, short.Days), why
}

// detailed: the error of the result has these details.
func detailed(want Shortage) Check {
	return func(_ context.Context, _ *client.Client, s client.Status) error {
		_, err := client.Result[string](s)
		if got, why := perdure.ErrorDetails[Shortage](err); why != nil || got != want {
			return fmt.Errorf("the details of %w are %+v (%w), want %+v", err, got, why, want)
		}
		return nil
	}
}

// causedBy: the failure has a cause of this type.
func causedBy(errorType string) Check {
	return func(_ context.Context, _ *client.Client, s client.Status) error {
		for f := s.Failure; f != nil; f = f.Cause {
			if f.Type == errorType {
				return nil
			}
		}
		return fmt.Errorf("the failure %+v has no cause of type %s", s.Failure, errorType)
	}
}

// tooSlow gives an activity less time than it takes.
func tooSlow(ctx *perdure.OrchestrationContext, tick time.Duration) (string, error) {
	return perdure.CallActivity(ctx, nap, 10*tick, perdure.WithStartToCloseTimeout(tick)).Await(ctx)
}

func catchesTimeout(ctx *perdure.OrchestrationContext, tick time.Duration) (string, error) {
	_, err := perdure.CallSubOrchestrationByName[string](ctx, "TooSlow", tick).Await(ctx)
	return fmt.Sprintf("a deadline was exceeded: %v", errors.Is(err, context.DeadlineExceeded)), nil
}

func panics(_ *perdure.OrchestrationContext, n int) (string, error) {
	return make([]string, n)[n], nil
}

// catchesPanic calls an activity or an orchestration that panics.
func catchesPanic(ctx *perdure.OrchestrationContext, name string) (string, error) {
	var err error
	if name == "Explode" {
		_, err = perdure.CallActivity(ctx, explode, "").Await(ctx)
	} else {
		_, err = perdure.CallSubOrchestrationByName[string](ctx, name, 0).Await(ctx)
	}
	var kind, message string
	if failed, ok := errors.AsType[*perdure.ActivityError](err); ok {
		kind, message = failed.Type, failed.Message
	}
	if failed, ok := errors.AsType[*perdure.SubOrchestrationError](err); ok {
		kind, message = failed.Type, failed.Message
	}
	return kind + ": " + panicked(message), nil
}
