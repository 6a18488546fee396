package perdure_test

import (
	"context"
	"fmt"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
)

// askSlowly runs until it is cancelled.
func askSlowly(ctx context.Context, _ string) (string, error) {
	<-ctx.Done()
	return "", context.Cause(ctx)
}

// askInTime waits for an activity or a timer, and cancels the loser.
func askInTime(ctx *perdure.OrchestrationContext, question string) (string, error) {
	reply, late := perdure.CallActivity(ctx, askSlowly, question), perdure.CreateTimer(ctx, 20*time.Millisecond)
	first, err := perdure.Select(ctx, reply, late)
	if err != nil {
		return "", err
	}
	if first == 1 {
		return "no answer in time", nil
	}
	return reply.Await(ctx)
}

// Limit the wait for an activity with a timer.
func ExampleSelect() {
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "ask-slowly", askSlowly)
	perdure.AddOrchestration(r, "ask-in-time", askInTime)

	ctx := context.Background()
	c, stop := serve(r)
	defer stop()
	id := must(c.Start(ctx, "ask-in-time", "what is the meaning of it all?"))
	fmt.Println(must(client.Result[string](must(c.Wait(ctx, id)))))
	// Output: no answer in time
}
