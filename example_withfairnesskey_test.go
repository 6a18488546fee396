package perdure_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
)

// Render is a page to render for a customer.
type Render struct{ Customer, Page string }

func render(_ context.Context, page string) (string, error) { return "<h1>" + page + "</h1>", nil }

// renderAll assigns each page to its customer, so that a customer with many pages does not delay the others.
func renderAll(ctx *perdure.OrchestrationContext, pages []Render) (string, error) {
	var fs []*perdure.Future[string]
	for _, p := range pages {
		fs = append(fs, perdure.CallActivity(ctx, render, p.Page, perdure.WithFairnessKey(p.Customer)))
	}
	html, err := perdure.AwaitAll(ctx, fs)
	return strings.Join(html, ""), err
}

func ExampleWithFairnessKey() {
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "render", render)
	perdure.AddOrchestration(r, "render-all", renderAll)

	ctx := context.Background()
	c, stop := serve(r)
	defer stop()
	id := must(c.Start(ctx, "render-all", []Render{{"ada", "Home"}, {"grace", "Ships"}}))
	fmt.Println(must(client.Result[string](must(c.Wait(ctx, id)))))
	// Output: <h1>Home</h1><h1>Ships</h1>
}
