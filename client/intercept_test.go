package client_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/fakeprovider"
)

// An interceptor observes each call that changes an instance, with its target and error. The client rejects a call with
// invalid arguments before the interceptors run.
func TestInterceptor_callsThatChangeInstances_areIntercepted(t *testing.T) {
	t.Parallel()
	var calls []perdure.ClientCall
	var errs []error
	watch := perdure.Interceptor{ClientCall: func(
		ctx context.Context, c perdure.ClientCall, next func(context.Context) error,
	) {
		calls, errs = append(calls, c), append(errs, next(ctx))
	}}
	p := fakeprovider.New(func() time.Time { return began }, "hello")
	c := connect(p, client.WithClock(func() time.Time { return began }), client.WithInterceptors(watch))
	mustStart(t, c, "one")
	ctx := t.Context()
	for _, err := range []error{
		c.RaiseEvent(ctx, "one", "", nil), // rejected before the interceptors run
		c.RaiseEvent(ctx, "one", "approved", 1),
		c.RaiseEvent(ctx, "missing", "approved", 1),
		c.Cancel(ctx, "one", "enough"),
		c.CancelActivity(ctx, "one", 7, ""),
		c.Terminate(ctx, "one", ""),
		c.Purge(ctx, "one", client.Force()),
	} {
		_ = err // other tests check the errors
	}
	want := []perdure.ClientCall{
		{Operation: "Start", InstanceID: "one", Name: "hello"},
		{Operation: "Raise", InstanceID: "one", Name: "approved"},
		{Operation: "Raise", InstanceID: "missing", Name: "approved"},
		{Operation: "Cancel", InstanceID: "one"},
		{Operation: "CancelActivity", InstanceID: "one"},
		{Operation: "Terminate", InstanceID: "one"},
		{Operation: "Purge", InstanceID: "one"},
	}
	if diff := cmp.Diff(want, calls); diff != "" {
		t.Fatalf("intercepted calls (-want +got):\n%s", diff)
	}
	if errs[0] != nil || errs[1] != nil || !errors.Is(errs[2], client.ErrNotFound) ||
		!errors.Is(errs[4], client.ErrActivityNotFound) {
		t.Errorf("got errors %v", errs)
	}
}

func TestInterceptor_panicsOrDoesNothing_callStillRuns(t *testing.T) {
	t.Parallel()
	p := fakeprovider.New(func() time.Time { return began }, "hello")
	c := connect(p, client.WithClock(func() time.Time { return began }), client.WithInterceptors(
		perdure.Interceptor{ClientCall: func(context.Context, perdure.ClientCall, func(context.Context) error) {
			panic("broken")
		}},
		perdure.Interceptor{ClientCall: func(context.Context, perdure.ClientCall, func(context.Context) error) {}},
	))
	mustStart(t, c, "one")
	if err := c.RaiseEvent(t.Context(), "missing", "approved", 1); !errors.Is(err, client.ErrNotFound) {
		t.Errorf("RaiseEvent: got error %v", err)
	}
	if s, err := c.Status(t.Context(), "one"); err != nil || s.Status != client.StatusPending {
		t.Errorf("Status: got %+v, error %v", s, err)
	}
}
