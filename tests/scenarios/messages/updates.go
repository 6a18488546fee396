package messages

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/tests/scenarios/internal/kit"
)

const deposit = "deposit"

var errNotPositive = perdure.NonRetryable(errors.New("the amount must be positive"))

// account takes deposits until it is closed. An activity computes a fee for each. At the event "continue", it continues
// as new after the running deposits.
func account(ctx *perdure.OrchestrationContext, balance int) (string, error) {
	err := perdure.SetUpdateHandler(ctx, deposit, func(ctx *perdure.OrchestrationContext, amount int) (int, error) {
		fee, err := perdure.CallActivity(ctx, kit.Inc, 0).Await(ctx)
		if err != nil {
			return 0, err
		}
		balance += amount + fee
		return balance, nil
	}, perdure.WithValidator(func(amount int) error {
		if amount <= 0 {
			return errNotPositive
		}
		return nil
	}))
	if err == nil {
		err = perdure.SetUpdateHandler(ctx, "leave", func(ctx *perdure.OrchestrationContext, _ struct{}) (int, error) {
			perdure.RaiseEvent(ctx, ctx.InstanceID(), "close", struct{}{})
			return perdure.WaitForExternalEvent[int](ctx, "never").Await(ctx)
		})
	}
	if err == nil {
		err = perdure.SetUpdateHandler(ctx, "fail", func(*perdure.OrchestrationContext, struct{}) (int, error) {
			return 0, errNotPositive
		})
	}
	if err != nil {
		return "", err
	}

	closing := perdure.WaitForExternalEvent[struct{}](ctx, "close")
	first, err := perdure.Select(ctx, closing, perdure.WaitForExternalEvent[struct{}](ctx, "continue"))
	if err != nil {
		return "", err
	}
	if first == 1 {
		if err := perdure.AwaitUpdateHandlers(ctx); err != nil {
			return "", err
		}
		return perdure.ContinueAsNew[string](ctx, balance)
	}
	return fmt.Sprint("balance ", balance), nil
}

// updateAccount sends updates, some of them twice, and awaits each one.
func updateAccount(ctx context.Context, w kit.World, id string) error {
	for _, step := range []struct {
		update, id string
		input      any
		want       string
		code       client.UpdateCode
	}{
		{update: deposit, id: "d1", input: 5, want: "7"},
		{update: deposit, id: "d2", input: -1, code: client.UpdateRejected},
		{update: deposit, id: "d3", input: "much", code: client.UpdateBadInput},
		{update: "withdraw", id: "d4", input: 1, code: client.UpdateHandlerNotFound},
		{update: "fail", id: "d5", input: struct{}{}, code: client.UpdateFailed},
		{update: deposit, id: "d1", input: 50, want: "7"},
		{update: "continue"},
		{update: deposit, id: "d6", input: 9, want: "17"},
		{update: deposit, id: "d1", input: 50, want: "7"},
		{update: "leave", id: "d9", input: struct{}{}, code: client.UpdateAborted},
	} {
		if step.id == "" {
			if err := w.Client.RaiseEvent(ctx, id, step.update, struct{}{},
				client.WithEventID(step.update)); err != nil {
				return err
			}
			if err := w.Until(ctx, id, func(s client.Status) bool { return s.ExecutionNumber == 2 }); err != nil {
				return err
			}
			continue
		}
		if err := sendUpdate(ctx, w, id, step.update, step.id, step.input, step.want, step.code); err != nil {
			return err
		}
	}
	return nil
}

// sendUpdate repeats an update until the instance responds, and compares the response with the wanted one.
func sendUpdate(
	ctx context.Context, w kit.World, id, update, updateID string, input any, want string, code client.UpdateCode,
) error {
	result, err := w.UntilResponse(func() (json.RawMessage, error) {
		return w.Client.Update(ctx, id, update, input, client.WithUpdateID(updateID))
	})
	if code != "" && hasCode(err, code) || code == "" && err == nil && string(result) == want {
		return nil
	}
	return errors.Join(fmt.Errorf("update %s of %.99v (%s) gives %s, want %s %s", update, input, updateID, result, want,
		code), err)
}

func hasCode(err error, code client.UpdateCode) bool {
	e, ok := errors.AsType[*client.UpdateError](err)
	return ok && e.Code == code
}

// updateFails checks the error of an update of the ended instance.
func updateFails(update, updateID string, code client.UpdateCode) kit.Check {
	return func(ctx context.Context, c *client.Client, s client.Status) error {
		if _, err := c.Update(ctx, s.InstanceID, update, struct{}{}, client.WithUpdateID(updateID)); !hasCode(err,
			code) {
			return fmt.Errorf("update %s (%s): %w, want %s", update, updateID, err, code)
		}
		return nil
	}
}
