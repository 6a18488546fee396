package perdure_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
)

// search queries two libraries, and waits at most 50 ms for both.
func search(ctx *perdure.OrchestrationContext, title string) (string, error) {
	limited, cancel := perdure.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	near := perdure.CallActivityByName[string](limited, "ask", title+" nearby")
	far := perdure.CallActivityByName[string](limited, "ask", title+" far away")
	err := perdure.WhenAll(limited, near, far)
	if errors.Is(err, context.DeadlineExceeded) {
		return "no response in time", nil // both activities are cancelled
	}
	return "found", err
}

// ask runs for an hour unless it is cancelled.
func ask(ctx context.Context, _ string) (string, error) {
	select {
	case <-time.After(time.Hour):
		return "found", nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

func ExampleWithTimeout() {
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "ask", ask)
	perdure.AddOrchestration(r, "search", search)

	ctx := context.Background()
	c, stop := serve(r)
	defer stop()
	id := must(c.Start(ctx, "search", "Solaris"))
	fmt.Println(must(client.Result[string](must(c.Wait(ctx, id)))))
	// Output: no response in time
}
