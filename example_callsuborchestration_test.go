package perdure_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
)

func bookNight(_ context.Context, city string) (string, error) { return "a night in " + city, nil }

// bookCity is called by another orchestration. It is an instance of its own, with a history of its own.
func bookCity(ctx *perdure.OrchestrationContext, city string) (string, error) {
	return perdure.CallActivity(ctx, bookNight, city).Await(ctx)
}

func bookTrip(ctx *perdure.OrchestrationContext, cities []string) (string, error) {
	var nights []string
	for _, city := range cities {
		// The id is for those who look for it; without one it derives from the caller's.
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
