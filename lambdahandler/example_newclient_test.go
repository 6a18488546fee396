package lambdahandler_test

import (
	"context"
	"fmt"
	"log"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/lambdahandler"
)

// Importer is what the activities of an application need. The orchestrator's main makes its registry with none of it: it runs no activity.
type Importer struct{ Hub *client.Client }

// Registry is what the mains of all functions register.
func (i *Importer) Registry() *perdure.Registry {
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "start-imports", i.startImports)
	return r
}

// startImports starts an orchestration for each file of a list. The activity may run twice: the key makes two starts one.
func (i *Importer) startImports(ctx context.Context, files []string) (int, error) {
	for _, file := range files {
		if _, err := i.Hub.Start(ctx, "import", file, client.WithIdempotencyKey(file)); err != nil {
			return 0, err
		}
	}
	return len(files), nil
}

// stackEnvironment has what the stack gives the worker of a queue with WorkQueueProps{Client: true}. A main needs no such option.
func stackEnvironment(name string) string {
	return map[string]string{
		"PERDURE_HUB": "shop", "PERDURE_TABLE": "perdure-shop", "PERDURE_INBOX_URL": "https://sqs.example/inbox.fifo", "PERDURE_TIMERS_URL": "https://sqs.example/timers",
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
