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
	"github.com/perdure/perdure/provider"
)

// StartOption is an option of Start, StartItem, StartOrRaise, StartOrUpdate and Restart, but for those that say which of these they are for.
type StartOption func(*startOptions)

// startOptions holds pointers where an empty value differs from none.
type startOptions struct {
	instanceID     *string
	idempotencyKey *string
	version        string
	delay          time.Duration
	tags           map[string]string
	ifExists       *ExistsPolicy
	from           *int64
	past           *provider.Past // of a restart from an event
}

// WithInstanceID sets the id of the new instance: 1 to 1,024 bytes of UTF-8 without control characters. Without it the
// id is a new ULID, or derives from the idempotency key.
func WithInstanceID(id string) StartOption { return func(o *startOptions) { o.instanceID = &id } }

// WithVersion asks for a version of the orchestration, of at most 64 bytes. Empty is the highest version that is
// registered when the first turn runs.
func WithVersion(version string) StartOption { return func(o *startOptions) { o.version = version } }

// WithIdempotencyKey makes repeated starts of an orchestration with the same key one start: the first one counts,
// whatever the input of later ones (R10). With WithInstanceID, the id must be the same too. The key has 1 to 256 bytes;
// two orchestrations may use the same one.
func WithIdempotencyKey(key string) StartOption {
	return func(o *startOptions) { o.idempotencyKey = &key }
}

// WithDelay delays the first turn by at least d, of at most MaxDelay, to the millisecond. Until then the instance is
// Pending, and external events that are raised are kept for it.
func WithDelay(d time.Duration) StartOption { return func(o *startOptions) { o.delay = d } }

// WithTags labels the instance: at most 16 tags, a key of 1 to 64 bytes and a value of at most 256 bytes each.
func WithTags(tags map[string]string) StartOption {
	tags = maps.Clone(tags)
	return func(o *startOptions) { o.tags = tags }
}

// Start creates an instance of the orchestration and returns its id. The input is encoded as JSON; a json.RawMessage is
// used as it is; more than MaxInputBytes is a *perdure.PayloadTooLargeError. The orchestration runs on, whatever
// becomes of ctx. An id that another start has taken is an ErrAlreadyExists, of which a *AlreadyExistsError says what has it, and where an earlier start with the same key has had its instance purged, an
// ErrPurged; IfExists says otherwise.
//
// An error that occurs after the input was accepted comes with the id: where it is a provider.Error that says
// Retryable, the instance may have been started. Only with an idempotency key is it safe to call again.
func (c *Client) Start(ctx context.Context, orchestration string, input any, opts ...StartOption) (instanceID string, err error) {
	s, err := c.startOf(ctx, orchestration, input, opts)
	if err != nil {
		return "", fmt.Errorf("client: start: %w", err)
	}

	err = c.call(ctx, callStart, s.InstanceID, orchestration, func(ctx context.Context) error {
		s.TraceParent = traceOf(ctx)
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
		StartAt: c.startAtFor(o.delay), RequestedBy: c.caller(ctx), Past: o.past,
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
