package activities

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/tests/scenarios/internal/kit"
)

func failureScenarios(tick time.Duration) []kit.Scenario {
	return []kit.Scenario{
		{
			Name: "TypedErrorThroughActivity", Register: kit.Run(activityFailure), Input: kit.SoldOut,
			Check: kit.Returns("StockError: reserving: no car in stock"),
		},
		{
			Name: "TypedErrorThroughChild", Register: kit.Run(childFailure), Input: kit.SoldOut,
			Check: kit.Returns(
				`ActivityError of StockError: activity "Reserve" (#3): StockError: reserving: no car in stock`,
			),
		},
		{
			Name: "TypedErrorToTheClient", Register: kit.Run(reserveItem), Input: kit.SoldOut,
			Check: kit.All(kit.Fails("ActivityError", "no car in stock"), kit.HasCause("StockError")),
		},
		{
			Name: "DetailsThroughActivity", Register: kit.Run(failureDetails), Input: kit.SoldOut,
			Check: kit.Returns("car in 3 days"),
		},
		{
			Name: "DetailsThroughChild", Register: kit.Run(failureDetails), Input: "child",
			Check: kit.All(kit.Fails("SubOrchestrationError", "no car in stock"),
				hasDetails(kit.Shortage{Item: kit.SoldOut, Days: 3})),
		},
		{
			Name: "TimeoutThroughChild", Register: kit.Run(childTimeout), Input: tick,
			Check: kit.Returns("a deadline was exceeded: true"),
		},
		{
			Name: "PanicInBody", Register: kit.Run(panics), Input: 3,
			Check: kit.Fails(history.TypePanic, "index out of range [3]", "activities.panics"),
		},
		{
			Name: "PanicInActivity", Register: kit.Run(panicOf), Input: "Explode",
			Check: kit.Returns("panic: integer divide by zero"),
		},
		{
			Name: "PanicInChild", Register: kit.Run(panicOf), Input: "Panics",
			Check: kit.Returns("panic: index out of range [0]"),
		},
		{
			Name: "InputOfAnotherType", Register: kit.Run(kit.Hello), Input: 7,
			Check: kit.Fails(history.TypeDecode, "input"),
		},
	}
}

// reserveItem fails like its activity.
func reserveItem(ctx *perdure.OrchestrationContext, item string) (string, error) {
	return perdure.CallActivity(ctx, kit.Reserve, item).Await(ctx)
}

func activityFailure(ctx *perdure.OrchestrationContext, item string) (string, error) {
	_, err := perdure.CallActivity(ctx, kit.Reserve, item).Await(ctx)
	failed, ok := errors.AsType[*perdure.ActivityError](err)
	if !ok || failed.Activity != "Reserve" {
		return "", fmt.Errorf("not the failure of an activity: %w", err)
	}
	return failed.Type + ": " + failed.Message, nil
}

func childFailure(ctx *perdure.OrchestrationContext, item string) (string, error) {
	_, err := perdure.CallSubOrchestrationByName[string](ctx, "Reserves", item).Await(ctx)
	failed, ok := errors.AsType[*perdure.SubOrchestrationError](err)
	if !ok || failed.Orchestration != "Reserves" || failed.Cause == nil {
		return "", fmt.Errorf("not the failure of an orchestration, with a cause: %w", err)
	}
	return failed.Type + " of " + failed.Cause.Type + ": " + failed.Message, nil
}

// failureDetails reads the details of a failure, or fails in a child.
func failureDetails(ctx *perdure.OrchestrationContext, item string) (string, error) {
	if item == "child" {
		return perdure.CallSubOrchestrationByName[string](ctx, "Reserves", kit.SoldOut).Await(ctx)
	}
	_, err := perdure.CallActivity(ctx, kit.Reserve, item).Await(ctx)
	short, why := perdure.ErrorDetails[kit.Shortage](err)
	return fmt.Sprintf("%s in %d days", short.Item, short.Days), why
}

// hasDetails checks the details of the error of the result.
func hasDetails(want kit.Shortage) kit.Check {
	return func(_ context.Context, _ *client.Client, s client.Status) error {
		_, err := client.Result[string](s)
		if got, why := perdure.ErrorDetails[kit.Shortage](err); why != nil || got != want {
			return fmt.Errorf("the details of %w are %+v (%w), want %+v", err, got, why, want)
		}
		return nil
	}
}

func childTimeout(ctx *perdure.OrchestrationContext, tick time.Duration) (string, error) {
	_, err := perdure.CallSubOrchestrationByName[string](ctx, "TooSlow", tick).Await(ctx)
	return fmt.Sprintf("a deadline was exceeded: %v", errors.Is(err, context.DeadlineExceeded)), nil
}

func panics(_ *perdure.OrchestrationContext, n int) (string, error) {
	return make([]string, n)[n], nil
}

// panicOf calls an activity or an orchestration that panics.
func panicOf(ctx *perdure.OrchestrationContext, name string) (string, error) {
	var err error
	if name == "Explode" {
		_, err = perdure.CallActivity(ctx, kit.Explode, "").Await(ctx)
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
	return kind + ": " + panicMessage(message), nil
}

// panicMessage returns the message of a panic without its stack.
func panicMessage(message string) string {
	line, _, _ := strings.Cut(message, "\n")
	line = strings.TrimPrefix(line, "runtime error: ")
	line, _, _ = strings.Cut(line, " with")
	return line
}
