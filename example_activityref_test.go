package perdure_test

import (
	"context"
	"fmt"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
)

// renderPage is all that callers need of an activity whose code lives in another program, with another queue.
var renderPage = perdure.DefineActivity[string, []byte]("render-page", perdure.OnQueue("gpu"))

func printPage(ctx *perdure.OrchestrationContext, text string) (int, error) {
	image, err := renderPage.Call(ctx, text).Await(ctx)
	return len(image), err
}

func ExampleActivityRef() {
	// The program that decides.
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "print-page", printPage)

	// The program that does the work. Here it is the same.
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
