// Package identity reads the identity of AWS credentials.
package identity

import (
	"context"
	"log/slog"
	"time"
)

const (
	// timeout limits the call to STS, because the identity must not delay other calls for long.
	timeout = 2 * time.Second
	// retryAfter is the time after which a failed call is repeated.
	retryAfter = 10 * time.Minute
)

// Caller reads the identity of credentials once. It is safe for concurrent use.
type Caller struct {
	// Read reads the identity from STS. It is nil if STS is not available.
	Read func(ctx context.Context) (string, error)

	now     func() time.Time
	log     *slog.Logger
	turn    chan struct{} // a mutex of capacity one for the other fields
	name    string
	retryAt time.Time // the earliest time of the next call
}

// New returns a Caller without STS.
func New(now func() time.Time, log *slog.Logger) *Caller {
	return &Caller{now: now, log: log, turn: make(chan struct{}, 1)}
}

// Name returns the ARN of the credentials, or an empty string if it is unknown.
func (c *Caller) Name(ctx context.Context) string {
	if c.Read == nil {
		return ""
	}
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return ""
	}

	if c.name != "" || c.now().Before(c.retryAt) {
		return c.name
	}

	limited, stop := context.WithTimeout(ctx, timeout)
	defer stop()
	name, err := c.Read(limited)
	if err != nil {
		c.retryAt = c.now().Add(retryAfter)
		c.log.DebugContext(ctx, "caller identity unknown", "error", err)
	}
	c.name = name
	return name
}
