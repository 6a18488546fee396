package client

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/perdure/perdure/client/internal/starting"
)

// StartOption is an option of Start, PrepareStart, StartOrRaiseEvent, StartOrUpdate and Restart. Some options apply
// only to some of these calls.
type StartOption func(*startOptions)

type startOptions = starting.Options

// WithInstanceID sets the ID of the new instance: 1 to 1,024 bytes of UTF-8 without control characters. The default is
// a new ULID, or an ID that is derived from the idempotency key.
func WithInstanceID(id string) StartOption { return func(o *startOptions) { o.InstanceID = &id } }

// WithVersion requests a version of the orchestration, of at most 64 bytes. The default is the highest version that is
// registered when the first turn runs.
func WithVersion(version string) StartOption {
	return func(o *startOptions) { o.Version, o.VersionSet = version, true }
}

// WithIdempotencyKey deduplicates starts of an orchestration with the same key. Only the first start takes effect, even
// if later starts have a different input. If WithInstanceID is also used, all starts must use the same ID. The key has
// 1 to 256 bytes. Two orchestrations can use the same key.
func WithIdempotencyKey(key string) StartOption {
	return func(o *startOptions) { o.IdempotencyKey = &key }
}

// WithDelay delays the first turn by at least d, up to MaxDelay, with a precision of a millisecond. Until then the
// instance is Pending, and external events are stored for it.
func WithDelay(d time.Duration) StartOption { return func(o *startOptions) { o.Delay = d } }

// WithTags attaches up to 16 tags to the instance. A key has 1 to 64 bytes, and a value at most 256 bytes.
func WithTags(tags map[string]string) StartOption {
	tags = maps.Clone(tags)
	return func(o *startOptions) { o.Tags, o.TagsSet = tags, true }
}

// Start creates an instance of an orchestration and returns its ID. The input is encoded as JSON; a json.RawMessage is
// used as is. The orchestration continues after ctx ends.
//
// Start returns ErrAlreadyExists with an *AlreadyExistsError if the instance ID is in use, unless IfExists is given. It
// returns ErrPurged if an earlier start with the same idempotency key created an instance that was purged, and a
// *perdure.PayloadTooLargeError if the input exceeds MaxInputBytes.
//
// If an error occurs after the options and the input were checked, Start returns the instance ID with the error. If the
// error is a retryable *provider.Error, the instance may have been started. Repeat the call only with an idempotency
// key.
func (c *Client) Start(
	ctx context.Context, orchestration string, input any, opts ...StartOption,
) (instanceID string, err error) {
	o := optionsOf(opts)
	s, err := starting.New(ctx, c.hub, orchestration, input, o)
	if err != nil {
		return "", fmt.Errorf("client: start: %w", err)
	}
	if err := c.ops.Start(ctx, &s, &o); err != nil {
		return s.InstanceID, fmt.Errorf("client: start %q: %w", orchestration, err)
	}
	return s.InstanceID, nil
}
