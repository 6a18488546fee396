package client_test

import (
	"context"
	"fmt"
	"time"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/fakeprovider"
)

// This example prints the events of an instance until it has ended.
func ExampleClient_Follow() {
	ctx := context.Background()
	p := fakeprovider.New(time.Now, "hello")
	c := client.New(p)
	id, err := c.Start(ctx, "hello", "Ada")
	if err != nil {
		fmt.Println(err)
		return
	}
	p.Append(id, history.Event{Kind: history.TurnStarted, Version: "1.0.0"},
		history.Event{Kind: history.OrchestrationCompleted, Output: history.Payload(`"hello, Ada"`)})

	for e, err := range c.Follow(ctx, id) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(e.ID, e.Kind)
	}
	// Output:
	// 1 OrchestrationStarted
	// 2 TurnStarted
	// 3 OrchestrationCompleted
}
