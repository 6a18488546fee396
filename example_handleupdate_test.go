package perdure_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
)

var errTooLate = errors.New("no more guests")

// invite adds guests until the event "close" arrives.
func invite(ctx *perdure.OrchestrationContext, most int) ([]string, error) {
	var guests []string
	err := perdure.SetUpdateHandler(ctx, "add", func(_ *perdure.OrchestrationContext, guest string) (int, error) {
		guests = append(guests, guest) // a handler may also call activities and wait
		return len(guests), nil
	}, perdure.WithValidator(func(string) error {
		if len(guests) == most {
			return errTooLate
		}
		return nil
	}))
	if err != nil {
		return nil, err
	}
	if _, err := perdure.WaitForExternalEvent[struct{}](ctx, "close").Await(ctx); err != nil {
		return nil, err
	}
	return guests, perdure.AwaitUpdateHandlers(ctx) // waits for the running handlers
}

func ExampleSetUpdateHandler() {
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "invite", invite)

	ctx := context.Background()
	c, stop := serve(r)
	defer stop()
	id := must(c.Start(ctx, "invite", 1, client.WithInstanceID("party")))
	for range 2 { // sent twice with the same ID, handled once
		fmt.Printf("%s\n", must(c.Update(ctx, id, "add", "ann", client.WithUpdateID("ann"))))
	}
	_, err := c.Update(ctx, id, "add", "bob", client.WithUpdateID("bob"))
	fmt.Println(err)
	// Output:
	// 1
	// 1
	// client: instance "party": update "add" (bob): rejected: no more guests
}
