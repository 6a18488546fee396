package client_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/fakeprovider"
)

// This example starts an instance, waits for it and reads its result. In a real program the provider is from
// dynamo.Open and the orchestration runs in the Lambda functions.
func Example() {
	ctx := context.Background()
	p := fakeprovider.New(time.Now, "hello")
	c := client.New(p)

	id, err := c.Start(ctx, "hello", "Ada", client.WithInstanceID("greeting-1"))
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = c.Start(ctx, "hello", "Grace", client.WithInstanceID("greeting-1"))
	fmt.Println("taken:", errors.Is(err, client.ErrAlreadyExists))

	// The functions complete the instance.
	p.Append(id, history.Event{Kind: history.OrchestrationCompleted, Output: history.Payload(`"hello, Ada"`)})

	status, err := c.Wait(ctx, id)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(status.Status, status.InstanceID)
	fmt.Println(client.Result[string](status))
	// Output:
	// taken: true
	// Completed greeting-1
	// hello, Ada <nil>
}
