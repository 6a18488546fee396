package client

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/clientcall"
	"github.com/perdure/perdure/provider"
)

// StartOption is an option of Start, PrepareStart, StartOrRaiseEvent, StartOrUpdate and Restart. Some options apply to some of
// these calls only.
type StartOption func(*startOptions)

// startOptions holds pointers where an empty value differs from none.
type startOptions struct {
	instanceID     *string
	idempotencyKey *string
	version        string
	delay          time.Duration
	tags           map[string]string
	ifExists       *IDConflictPolicy
	from           *int64
	past           *provider.RestartSource // of a restart from an event
}

// WithInstanceID sets the ID of the new instance: 1 to 1,024 bytes of UTF-8 without control characters. The default is
// a new ULID, or an ID that is derived from the idempotency key.
func WithInstanceID(id string) StartOption { return func(o *startOptions) { o.instanceID = &id } }

// WithVersion requests a version of the orchestration, of at most 64 bytes. The default is the highest version that is
// registered when the first turn runs.
func WithVersion(version string) StartOption { return func(o *startOptions) { o.version = version } }

// WithIdempotencyKey makes all starts of an orchestration with the same key one start. The first one counts, even if
// the input of later ones differs. If WithInstanceID is used too, the ID must be the same. The key has 1 to 256 bytes.
// Two orchestrations can use the same key.
func WithIdempotencyKey(key string) StartOption {
	return func(o *startOptions) { o.idempotencyKey = &key }
}

// WithDelay delays the first turn by at least d, up to MaxDelay, with a precision of a millisecond. Until then the
// instance is Pending, and external events are stored for it.
func WithDelay(d time.Duration) StartOption { return func(o *startOptions) { o.delay = d } }

// WithTags attaches up to 16 tags to the instance. A key has 1 to 64 bytes, and a value at most 256 bytes.
func WithTags(tags map[string]string) StartOption {
	tags = maps.Clone(tags)
	return func(o *startOptions) { o.tags = tags }
}

// Start creates an instance of an orchestration and returns its ID. The input is encoded as JSON; a json.RawMessage is
// used as is. The orchestration continues after ctx ends.
//
// Start returns ErrAlreadyExists with an *AlreadyExistsError if the instance ID is in use, unless IfExists is given. It
// returns ErrPurged if an earlier start with the same idempotency key created an instance that was purged, and a
// *perdure.PayloadTooLargeError if the input exceeds MaxInputBytes.
//
// If an error occurs after the input was accepted, Start returns the instance ID too. If the error is a retryable
// *provider.Error, the instance may have been started. Repeat the call only with an idempotency key.
func (c *Client) Start(ctx context.Context, orchestration string, input any, opts ...StartOption) (instanceID string, err error) {
	s, err := c.startOf(ctx, orchestration, input, opts)
	if err != nil {
		return "", fmt.Errorf("client: start: %w", err)
	}

	err = c.call(ctx, clientcall.Start, s.InstanceID, orchestration, func(ctx context.Context) error {
		s.TraceParent = traceParentOf(ctx)
		_, err := c.begin(ctx, &s, holdersFor(startOptionsOf(opts).ifExists))
		return err
	})
	if err != nil {
		return s.InstanceID, fmt.Errorf("client: start %q: %w", orchestration, err)
	}
	return s.InstanceID, nil
}

func startOptionsOf(opts []StartOption) (o startOptions) {
	for _, opt := range opts {
		opt(&o)
	}
	return o
}

// startOf returns the start that the arguments of Start ask for.
func (c *Client) startOf(ctx context.Context, orchestration string, input any, opts []StartOption) (provider.Start, error) {
	o := startOptionsOf(opts)
	if err := o.check(orchestration); err != nil {
		return provider.Start{}, err
	}
	payload, err := startInput(input, c.vault.Limit())
	if err != nil {
		return provider.Start{}, fmt.Errorf("%q: %w", orchestration, err)
	}
	s := provider.Start{
		InstanceID: c.instanceIDFor(orchestration, o), StartID: startIDFor(orchestration, o),
		Name: orchestration, Version: o.version, Input: payload, Tags: o.tags,
		StartAt: c.startAtFor(o.delay), RequestedBy: c.calls.Caller(ctx), RestartFrom: o.past,
	}
	if err := c.sealInput(ctx, &s); err != nil {
		return provider.Start{}, fmt.Errorf("%q: %w", orchestration, err)
	}
	return s, nil
}

// began is the input of an execution that is started again: as its history has it.
type began history.Payload

// startInput is the input of a start as a payload.
func startInput(input any, limit int) (history.Payload, error) {
	again, ok := input.(began)
	switch {
	case !ok:
		return encodePayload(fieldInput, input, limit)
	case len(again) == 0:
		return encodePayload(fieldInput, nil, limit)
	default:
		return history.Payload(again), nil
	}
}

// startAtFor rounds up to the precision that is stored: a start must not be early.
func (c *Client) startAtFor(delay time.Duration) time.Time {
	if delay == 0 {
		return time.Time{}
	}
	return c.now().UTC().Add(delay + time.Millisecond - 1).Truncate(time.Millisecond)
}

func (c *Client) instanceIDFor(orchestration string, o startOptions) string {
	switch {
	case o.instanceID != nil:
		return *o.instanceID
	case o.idempotencyKey != nil:
		return digest("instance", orchestration, *o.idempotencyKey)
	default:
		return ulid.MustNew(ulid.Timestamp(c.now()), rand.Reader).String()
	}
}

// startIDFor returns the id that distinguishes a repeated start from another one (R10). The orchestration is part of
// it, so that a key that was used for another orchestration is no repetition.
func startIDFor(orchestration string, o startOptions) string {
	if o.idempotencyKey != nil {
		return digest("start", orchestration, *o.idempotencyKey)
	}
	return rand.Text()
}

// digest makes a name from parts: the same parts give the same name.
func digest(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return hex.EncodeToString(h.Sum(nil)[:20])
}
