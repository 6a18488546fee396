package starting

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/perdure/perdure/client/internal/hub"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/clientcall"
	"github.com/perdure/perdure/internal/inputcheck"
	"github.com/perdure/perdure/provider"
)

// New returns the start of an orchestration. It checks the options, encodes the input and stores a large input.
func New(ctx context.Context, h *hub.Hub, orchestration string, input any, o Options) (provider.Start, error) {
	if err := o.Check(orchestration); err != nil {
		return provider.Start{}, err
	}
	payload, err := encodeInput(input, h.Encoding.Limit())
	if err != nil {
		return provider.Start{}, fmt.Errorf("%q: %w", orchestration, err)
	}
	s := provider.Start{
		InstanceID: o.newInstanceID(h, orchestration), StartID: o.newStartID(orchestration),
		Name: orchestration, Version: o.Version, Input: payload, Tags: o.Tags,
		StartAt: startTime(h.Now(), o.Delay), RequestedBy: h.Calls.Caller(ctx), RestartFrom: o.Source,
	}
	if err := storeInput(ctx, h, &s); err != nil {
		return provider.Start{}, fmt.Errorf("%q: %w", orchestration, err)
	}
	return s, nil
}

// NewToSend returns the start of an instance that receives an event or an update. what describes the event or update in
// errors. The idempotency key is also the ID of the event or update.
func NewToSend(
	ctx context.Context, h *hub.Hub, orchestration string, input any, what string, o Options,
) (s provider.Start, err error) {
	if o.InstanceID == nil {
		return s, &provider.FieldError{Field: "instanceId", Problem: "is required to send " + what}
	}
	if k := o.IdempotencyKey; k != nil {
		err = inputcheck.Text("idempotencyKey", *k, 1, provider.MaxEventIDBytes)
	}
	if err == nil {
		s, err = New(ctx, h, orchestration, input, o)
	}
	s.CheckFirst = true // the instance usually exists
	return s, err
}

// RecordedInput is the input of an execution as its history contains it. A restart passes it to New.
type RecordedInput history.Payload

func encodeInput(input any, limit int) (history.Payload, error) {
	const field = "input"
	recorded, ok := input.(RecordedInput)
	switch {
	case !ok:
		return hub.Encode(field, input, limit)
	case len(recorded) == 0:
		return hub.Encode(field, nil, limit)
	default:
		return history.Payload(recorded), nil
	}
}

// startTime returns the due time of a delayed start. It rounds up to the stored precision, because a start must not be
// early.
func startTime(now time.Time, delay time.Duration) time.Time {
	if delay == 0 {
		return time.Time{}
	}
	return now.UTC().Add(delay + time.Millisecond - 1).Truncate(time.Millisecond)
}

func (o *Options) newInstanceID(h *hub.Hub, orchestration string) string {
	switch {
	case o.InstanceID != nil:
		return *o.InstanceID
	case o.IdempotencyKey != nil:
		return Digest("instance", orchestration, *o.IdempotencyKey)
	default:
		return h.NewID()
	}
}

// newStartID returns an ID that is the same for a repeated start and different for other starts (R10). The
// orchestration is part of the ID, so that two orchestrations can use the same key.
func (o *Options) newStartID(orchestration string) string {
	if o.IdempotencyKey != nil {
		return Digest("start", orchestration, *o.IdempotencyKey)
	}
	return rand.Text()
}

// Digest derives an ID from parts. The same parts result in the same ID.
func Digest(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return hex.EncodeToString(h.Sum(nil)[:20])
}

// Run makes a start inside the interceptors and returns the instance that has the ID. If replaces is not nil and keeps
// an existing instance, the returned instance belongs to another start.
func Run(
	ctx context.Context, h *hub.Hub, s *provider.Start, replaces Replaces,
) (in provider.Instance, err error) {
	err = h.Call(ctx, clientcall.Start, s.InstanceID, s.Name, func(ctx context.Context) (err error) {
		s.TraceParent = hub.TraceParent(ctx)
		in, err = begin(ctx, h, s, replaces)
		return err
	})
	return in, err
}

// RunToSend makes the start of NewToSend and returns the instance that has the ID. With the policy Replace, it replaces
// an instance that has ended.
func RunToSend(
	ctx context.Context, h *hub.Hub, s *provider.Start, o Options,
) (provider.Instance, error) {
	replace := o.IfExists != nil && *o.IfExists == Replace
	return Run(ctx, h, s, func(s provider.RuntimeStatus) bool { return replace && s.Terminal() })
}
