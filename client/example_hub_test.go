package client_test

import (
	"context"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/simhub"
)

// serve runs an in-memory hub with the registry r. In a real program the client uses the provider of dynamo.Open.
func serve(r *perdure.Registry) (c *client.Client, stop func()) {
	h, err := simhub.New(simhub.Options{Registry: r})
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan struct{})
	go func() {
		defer close(served)
		h.Cloud.Serve(ctx)
	}()
	return client.New(h.Provider), func() {
		cancel()
		<-served
		h.Close()
	}
}

// must panics if err is not nil.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

// untilIs polls until the instance has the status.
func untilIs(ctx context.Context, c *client.Client, id string, want client.RuntimeStatus) client.Status {
	for {
		if s, err := c.Status(ctx, id); err == nil && s.Status == want {
			return s
		}
		time.Sleep(time.Millisecond)
	}
}
