package perdure_test

import (
	"context"
	"fmt"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
)

// renderPage refers to an activity that another program implements, on a separate work queue.
var renderPage = perdure.DefineActivity[string, []byte]("render-page", perdure.OnQueue("gpu"))

func printPage(ctx *perdure.OrchestrationContext, text string) (int, error) {
	image, err := renderPage.Call(ctx, text).Await(ctx)
	return len(image), err
}

func ExampleActivityRef() {
	// This program runs the orchestration.
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "print-page", printPage)

	// Usually another program runs the activity. In this example it is the same program.
	renderPage.Register(r, func(_ context.Context, text string) ([]byte, error) {
		return make([]byte, 10*len(text)), nil
	})

	ctx := context.Background()
	c, stop := serve(r)
	defer stop()
	id := must(c.Start(ctx, "print-page", "hello"))
	fmt.Println(must(client.Result[int](must(c.Wait(ctx, id)))), "bytes")
	// Output: 50 bytes
}
