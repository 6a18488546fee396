package perdure_test

import (
	"context"
	"fmt"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
)

func invoiceV1(_ *perdure.OrchestrationContext, cents int) (string, error) {
	return fmt.Sprintf("%d cents", cents), nil
}

func invoiceV2(_ *perdure.OrchestrationContext, cents int) (string, error) {
	return fmt.Sprintf("€ %d.%02d", cents/100, cents%100), nil
}

// Running instances keep their version. New instances run the highest version, or the version of client.WithVersion.
func ExampleWithVersion() {
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "invoice", invoiceV1, perdure.WithVersion("1.9"))
	perdure.AddOrchestration(r, "invoice", invoiceV2, perdure.WithVersion("1.10"))

	ctx := context.Background()
	c, stop := serve(r)
	defer stop()
	for _, version := range []string{"", "1.9"} {
		id := must(c.Start(ctx, "invoice", 1250, client.WithVersion(version)))
		status := must(c.Wait(ctx, id))
		fmt.Println(status.Version, must(client.Result[string](status)))
	}
	// Output:
	// 1.10 € 12.50
	// 1.9 1250 cents
}
