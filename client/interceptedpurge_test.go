package client_test

import (
	"context"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/fakeprovider"
	"github.com/perdure/perdure/provider"
)

// requesters records the requesters of deletions.
type requesters struct {
	*fakeprovider.Provider

	seen []string
}

func (r *requesters) DeleteInstance(ctx context.Context, instanceID string, force bool) error {
	name, _ := provider.RequesterOf(ctx)
	r.seen = append(r.seen, name)
	return r.Provider.DeleteInstance(ctx, instanceID, force)
}

// A server purges on behalf of ann, and an interceptor passes another context. The client determines the requester
// before the interceptors run, like for a start, an event and a cancel.
func TestPurge_interceptorPassesAnotherContext_requesterIsKept(t *testing.T) {
	t.Parallel()
	localOnly(t, "the API sets the caller")
	hub := &requesters{Provider: fakeprovider.New(func() time.Time { return began }, "hello")}
	bare := perdure.Interceptor{ClientCall: func(
		_ context.Context, _ perdure.ClientCall, next func(context.Context) error,
	) {
		_ = next(context.Background())
	}}
	c := connect(hub, client.WithClock(func() time.Time {
		return began
	}), client.WithCaller("the-servers-role"), client.WithInterceptors(bare))
	ctx := client.ContextWithCaller(t.Context(), "ann")
	if _, err := c.Start(ctx, "hello", 0, client.WithInstanceID("one")); err != nil {
		t.Fatal(err)
	}
	if err := c.Purge(ctx, "one", client.Force()); err != nil {
		t.Fatal(err)
	}
	if hub.seen[0] != "ann" {
		t.Errorf("purged by %q", hub.seen)
	}
}
