package perdure_test

import (
	"context"
	"fmt"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
)

// askSlowly would take for ever, but ends when nobody wants the answer any more, as an activity should.
func askSlowly(ctx context.Context, _ string) (string, error) {
	<-ctx.Done()
	return "", context.Cause(ctx)
}

// askInTime lets an activity and a timer race. The loser is cancelled.
func askInTime(ctx *perdure.OrchestrationContext, question string) (string, error) {
	answer, late := perdure.CallActivity(ctx, askSlowly, question), perdure.CreateTimer(ctx, 20*time.Millisecond)
	first, err := perdure.Select(ctx, answer, late)
	if err != nil {
		return "", err
	}
	if first == 1 {
		return "no answer in time", nil
	}
	return answer.Await(ctx)
}

// A timeout is a race against a timer.
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
