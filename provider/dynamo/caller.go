package dynamo

import (
	"context"
	"time"
)

const (
	// callerTime limits the call to STS, because the caller's identity must not delay other calls for long.
	callerTime = 2 * time.Second
	// callerAgain is the time after which a failed call is repeated.
	callerAgain = 10 * time.Minute
)

// caller reads the identity of the credentials once.
type caller struct {
	ask   func(ctx context.Context) (string, error) // nil if STS is not available
	turn  chan struct{}                             // a mutex of capacity one for the other fields
	name  string
	again time.Time // the earliest time of the next call
}

// Caller returns the ARN of the provider's credentials, for a provider from Open. It calls STS once, with a time limit
// of two seconds and without a required permission. It returns an empty string if the identity is unknown. Other calls
// do not fail because of that.
func (p *Provider) Caller(ctx context.Context) string {
	c := &p.caller
	if c.ask == nil {
		return ""
	}
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return ""
	}

	if c.name != "" || p.now().Before(c.again) {
		return c.name
	}

	limited, stop := context.WithTimeout(ctx, callerTime)
	defer stop()
	name, err := c.ask(limited)
	if err != nil {
		c.again = p.now().Add(callerAgain)
		p.log.DebugContext(ctx, "caller identity unknown", "error", err)
	}
	c.name = name
	return name
}
