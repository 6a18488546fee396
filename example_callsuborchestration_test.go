package perdure_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
)

func bookNight(_ context.Context, city string) (string, error) { return "a night in " + city, nil }

// bookCity runs as a sub-orchestration, which is an instance with its own history.
func bookCity(ctx *perdure.OrchestrationContext, city string) (string, error) {
	return perdure.CallActivity(ctx, bookNight, city).Await(ctx)
}

func bookTrip(ctx *perdure.OrchestrationContext, cities []string) (string, error) {
	var nights []string
	for _, city := range cities {
		// The ID is optional. Without it, the ID is derived from the caller's ID.
		id := perdure.WithInstanceID(ctx.InstanceID() + "/" + city)
		night, err := perdure.CallSubOrchestration(ctx, bookCity, city, id).Await(ctx)
		if err != nil {
			return "", err
		}
		nights = append(nights, night)
	}
	return strings.Join(nights, ", "), nil
}

func ExampleCallSubOrchestration() {
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "book-night", bookNight)
	perdure.AddOrchestration(r, "book-city", bookCity)
	perdure.AddOrchestration(r, "book-trip", bookTrip)

	ctx := context.Background()
	c, stop := serve(r)
	defer stop()
	id := must(c.Start(ctx, "book-trip", []string{"Porto", "Lyon"}, client.WithInstanceID("trip-7")))
	fmt.Println(must(client.Result[string](must(c.Wait(ctx, id)))))
	fmt.Println("child of", must(c.Status(ctx, "trip-7/Lyon")).Parent.InstanceID)
	// Output:
	// a night in Porto, a night in Lyon
	// child of trip-7
}
