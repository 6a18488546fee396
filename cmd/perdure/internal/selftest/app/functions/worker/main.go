// Command worker is the worker function of the self-test. Its activities have a client of the hub. The function for
// checks of Lambda has the same binary.
package main

import (
	"context"
	"log"
	"os"

	"github.com/perdure/perdure/cmd/perdure/internal/selftest/app"
	"github.com/perdure/perdure/cmd/perdure/internal/selftest/app/probefunction"
	"github.com/perdure/perdure/lambdahandler"
)

func main() {
	if os.Getenv(probefunction.TableVariable) != "" {
		probefunction.Start()
	}
	hub, err := lambdahandler.NewClient(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	lambdahandler.StartWorker(app.Registry(hub))
}
