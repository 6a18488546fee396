package lambdahandler_test

import (
	"context"
	"fmt"
	"log"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/lambdahandler"
)

// Importer holds the dependencies of the activities. The orchestrator's main uses an empty Importer, because it runs no
// activities.
type Importer struct{ Hub *client.Client }

// Registry returns the registry of all functions.
func (i *Importer) Registry() *perdure.Registry {
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "start-imports", i.startImports)
	return r
}

// startImports starts an orchestration for each file. The idempotency key prevents a second start if the activity runs
// twice.
func (i *Importer) startImports(ctx context.Context, files []string) (int, error) {
	for _, file := range files {
		if _, err := i.Hub.Start(ctx, "import", file, client.WithIdempotencyKey(file)); err != nil {
			return 0, err
		}
	}
	return len(files), nil
}

// stackEnvironment replaces the environment of a worker whose queue has WorkQueueProps{Client: true}. A main uses the
// real environment.
func stackEnvironment(name string) string {
	return map[string]string{
		"PERDURE_HUB":        "shop",
		"PERDURE_TABLE":      "perdure-shop",
		"PERDURE_INBOX_URL":  "https://sqs.example/inbox.fifo",
		"PERDURE_TIMERS_URL": "https://sqs.example/timers",
	}[name]
}

func ExampleNewClient() {
	hub, err := lambdahandler.NewClient(context.Background(), lambdahandler.WithEnvironment(stackEnvironment))
	if err != nil {
		log.Fatal(err)
	}
	r := (&Importer{Hub: hub}).Registry()
	fmt.Println("a registry for lambdahandler.StartWorker:", r != nil)
	// Output: a registry for lambdahandler.StartWorker: true
}
