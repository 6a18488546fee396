package client_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/fakeprovider"
	"github.com/perdure/perdure/provider"
)

// preparing records the prepared start.
type preparing struct {
	*fakeprovider.Provider

	start provider.Start
}

func (p *preparing) PrepareStart(_ context.Context, s provider.Start) (provider.PreparedStart, error) {
	p.start = s
	return nil, nil //nolint:nilnil // the test does not use the result
}

// An interceptor observes a prepared start once, as a start. The trace context of the interceptor is passed to the
// instance.
func TestPrepareStart_interceptor_observesOneStart(t *testing.T) {
	t.Parallel()
	const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	hub := &preparing{Provider: fakeprovider.New(func() time.Time { return began }, "hello")}
	var calls []perdure.ClientCall
	traced := perdure.Interceptor{ClientCall: func(
		ctx context.Context, call perdure.ClientCall, next func(context.Context) error,
	) {
		calls = append(calls, call)
		_ = next(perdure.WithTraceParent(ctx, trace))
	}}
	c := client.New(hub, client.WithClock(func() time.Time { return began }), client.WithInterceptors(traced))
	if _, err := c.PrepareStart(t.Context(), "hello", 0, client.WithInstanceID("one")); err != nil {
		t.Fatal(err)
	}
	if want := (perdure.ClientCall{Operation: "Start", InstanceID: "one", Name: "hello"}); len(calls) != 1 ||
		calls[0] != want {
		t.Errorf("interceptors: got %+v, want %+v", calls, want)
	}
	if string(hub.start.TraceParent) != trace {
		t.Errorf("got trace parent %q", hub.start.TraceParent)
	}
}

// The error distinguishes a hub without prepared starts from a rejected start.
func TestPrepareStart_hubWithoutSupport_returnsErrPrepareStartUnsupported(t *testing.T) {
	t.Parallel()
	c := client.New(fakeprovider.New(func() time.Time { return began }, "hello"))
	if _, err := c.PrepareStart(t.Context(), "hello", 0); !errors.Is(err, client.ErrPrepareStartUnsupported) ||
		!strings.Contains(err.Error(), `"hello"`) {
		t.Error(err)
	}
}
