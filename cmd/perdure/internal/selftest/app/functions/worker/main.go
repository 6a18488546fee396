// Command worker is the worker function of the self-test. Its activities have a client of the hub.
package main

import (
	"context"
	"log"

	"github.com/perdure/perdure/cmd/perdure/internal/selftest/app"
	"github.com/perdure/perdure/lambdahandler"
)

func main() {
	hub, err := lambdahandler.NewClient(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	lambdahandler.StartWorker(app.Registry(hub))
}
