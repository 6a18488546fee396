package perdure_test

import (
	"context"
	"fmt"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
)

func collect(ctx *perdure.OrchestrationContext, wanted int) (int, error) {
	var names []string
	if err := perdure.SetQueryHandler(ctx, "from", func(n int) ([]string, error) {
		if n < 0 || n > len(names) {
			return nil, fmt.Errorf("there are %d names by now", len(names))
		}
		return names[n:], nil
	}); err != nil {
		return 0, err
	}
	for len(names) < wanted {
		name, err := perdure.WaitForExternalEvent[string](ctx, "name").Await(ctx)
		if err != nil {
			return 0, err
		}
		names = append(names, name)
	}
	return len(names), nil
}

func ExampleSetQueryHandler() {
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "collect", collect)

	ctx := context.Background()
	c, stop := serve(r)
	defer stop()
	id := must(c.Start(ctx, "collect", 2, client.WithInstanceID("names")))
	for _, name := range []string{"ann", "bob"} {
		if err := c.RaiseEvent(ctx, id, "name", name); err != nil {
			fmt.Println(err)
		}
	}
	must(c.Wait(ctx, id)) // queries also work while the instance runs
	fmt.Printf("%s\n", must(c.Query(ctx, id, "from", 1)))
	_, err := c.Query(ctx, id, "from", 3)
	fmt.Println(err)
	// Output:
	// ["bob"]
	// client: query: instance "names": query "from": the handler failed: there are 2 names by now
}
