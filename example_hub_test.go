package perdure_test

import (
	"context"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/simhub"
)

// serve runs a registry in real time on an in-memory hub, and returns a client of the hub. On AWS, Lambda functions run
// the registry, and the client connects to the hub. The rest of each example is the same.
func serve(r *perdure.Registry) (c *client.Client, stop func()) {
	h, stop := serveHub(simhub.Options{Registry: r, Exclusive: true})
	return client.New(h.Provider, client.WithQuerier(h)), stop
}

// serveSealed is like serve, but its functions have a codec. It returns the hub, so that the example can create clients
// with and without the codec.
func serveSealed(r *perdure.Registry, codec perdure.Codec) (hub client.Backend, stop func()) {
	h, stop := serveHub(simhub.Options{Registry: r, Codecs: []perdure.Codec{codec}})
	return h.Provider, stop
}

func serveHub(o simhub.Options) (h *simhub.Hub, stop func()) {
	h = must(simhub.New(o))
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan struct{})
	go func() {
		defer close(served)
		h.Cloud.Serve(ctx)
	}()
	return h, func() {
		cancel()
		<-served
		h.Close()
	}
}

// must panics on errors, for short examples.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
