package scenarios

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
)

func asking() []Scenario {
	return []Scenario{
		{
			Name: "Updates", Register: body(account), Input: 1, Drive: updatesAccount,
			Check: all(gives("balance 17"), executions(2), updated("leave", "d9", client.UpdateAborted)),
		},
		{
			Name: "Queries", Register: body(steps), Input: 3, Drive: asksAtEachStep,
			Check: all(gives("heard 3"), answers("steps", 10, 13)),
		},
	}
}

// steps goes on when it is told, and answers how often it was, and more.
func steps(ctx *perdure.OrchestrationContext, n int) (string, error) {
	heard := 0
	if err := perdure.SetQueryHandler(ctx, "steps", func(more int) (int, error) {
		return heard + more, nil
	}); err != nil {
		return "", err
	}
	if err := perdure.SetQueryHandler(ctx, "spoils", func(struct{}) (int, error) {
		heard = 99
		return heard, nil
	}); err != nil {
		return "", err
	}
	for heard < n {
		if _, err := perdure.WaitForExternalEvent[struct{}](ctx, "next").Await(ctx); err != nil {
			return "", err
		}
		if _, err := perdure.CallActivity(ctx, inc, heard).Await(ctx); err != nil {
			return "", err
		}
		heard++
	}
	return fmt.Sprint("heard ", heard), nil
}

// asksAtEachStep waits by queries for each step, and has it go on then. A query that changes what it reads changes
// nothing.
func asksAtEachStep(ctx context.Context, w World, id string) error {
	for i := range 3 {
		if err := w.untilAnswer(ctx, id, "steps", 0, i); err != nil {
			return err
		}
		if err := w.untilAnswer(ctx, id, "spoils", struct{}{}, 99); err != nil {
			return err
		}
		if err := w.Client.RaiseEvent(ctx, id, "next", struct{}{},
			client.WithEventID(fmt.Sprint("next ", i))); err != nil {
			return err
		}
	}
	return nil
}

// compact is JSON without the white space that a local Lambda puts into what its functions answer.
func compact(doc []byte) string {
	var b bytes.Buffer
	if json.Compact(&b, doc) != nil {
		return string(doc)
	}
	return b.String()
}

// untilAnswer lets time pass until a query answers this. One that fails is asked again.
func (w World) untilAnswer(ctx context.Context, id, query string, input, want any) error {
	var answer []byte
	var err error
	for range looks {
		if answer, err = w.Client.Query(ctx, id, query, input); err == nil && compact(answer) == fmt.Sprint(want) {
			return nil
		}
		w.Pass(w.Tick / 4)
	}
	return errors.Join(fmt.Errorf("instance %q: query %q answers %s, and never %v", id, query, answer, want), err)
}

// answers checks what a query of the instance that is over answers.
func answers(query string, input, want any) Check {
	return func(ctx context.Context, c *client.Client, s client.Status) error {
		answer, err := c.Query(ctx, s.InstanceID, query, input)
		if err == nil && string(answer) != fmt.Sprint(want) {
			err = fmt.Errorf("query %q answers %s, want %v", query, answer, want)
		}
		return err
	}
}
