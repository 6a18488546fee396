package perdure_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
)

// search asks two libraries that may take long; it looks for no longer than a moment.
func search(ctx *perdure.OrchestrationContext, title string) (string, error) {
	limited, cancel := perdure.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	near := perdure.CallActivityByName[string](limited, "ask", title+" nearby")
	far := perdure.CallActivityByName[string](limited, "ask", title+" far away")
	err := perdure.WhenAll(limited, near, far)
	if errors.Is(err, context.DeadlineExceeded) {
		return "nobody has answered in time", nil // and nobody is asked any longer: both activities are cancelled
	}
	return "found", err
}

// ask is a library that takes its time, unless it hears that nobody waits any more.
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
	// Output: nobody has answered in time
}
