package perdure_test

import (
	"context"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/simhub"
)

// serve runs what a registry holds, in real time, on a task hub in memory, and returns a client of it. On AWS the functions
// serve, and the client is made of a provider; all else in the examples is the same.
func serve(r *perdure.Registry) (c *client.Client, stop func()) {
	h := must(simhub.New(simhub.Options{Registry: r, Exclusive: true}))
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan struct{})
	go func() {
		defer close(served)
		h.Cloud.Serve(ctx)
	}()
	return client.New(h.Provider, client.WithAsker(h)), func() {
		cancel()
		<-served
		h.Close()
	}
}

// must is for examples, where nothing goes wrong.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
