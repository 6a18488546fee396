// Command worker is the worker function of the application of the end-to-end tests. Its activities have a client of the
// hub.
package main

import (
	"context"
	"log"

	"github.com/perdure/perdure/lambdahandler"
	"github.com/perdure/perdure/tests/e2e/app"
)

func main() {
	codec := lambdahandler.WithCodec(app.Codec())
	hub, err := lambdahandler.NewClient(context.Background(), codec)
	if err != nil {
		log.Fatal(err)
	}
	lambdahandler.StartWorker(app.Registry(hub), codec)
}
