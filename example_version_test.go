package perdure_test

import (
	"context"
	"fmt"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
)

// An instance that passed this position before the change keeps the old behavior. Other instances get the new behavior.
func ExampleVersion() {
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "greet", func(ctx *perdure.OrchestrationContext, name string) (string, error) {
		if perdure.Version(ctx, "be polite", perdure.DefaultVersion, 1) == perdure.DefaultVersion {
			return "hi " + name, nil
		}
		return "good morning, " + name, nil
	})

	ctx := context.Background()
	c, stop := serve(r)
	defer stop()
	status := must(c.Wait(ctx, must(c.Start(ctx, "greet", "Ada"))))
	fmt.Println(must(client.Result[string](status)))
	for _, e := range must(client.Collect(c.History(ctx, status.InstanceID))) {
		if e.ChangeID != "" {
			fmt.Println(e.Kind, e.ChangeID, e.Version)
		}
	}
	// Output:
	// good morning, Ada
	// VersionMarked be polite 1
}
