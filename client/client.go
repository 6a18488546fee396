package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/perdure/perdure/provider"
)

// Sentinels for errors.Is. Those that the provider has are its own, so that either name tests for both.
var (
	// ErrNotFound: no such instance, or execution or activity of it.
	ErrNotFound = provider.ErrNotFound
	// ErrAlreadyExists: the instance id is in use, running or over, by another start.
	ErrAlreadyExists = provider.ErrAlreadyExists
	// ErrTerminal: the instance is over.
	ErrTerminal = provider.ErrTerminal
	// ErrNotTerminal: the instance is not over, so that it is purged by Force alone.
	ErrNotTerminal = provider.ErrNotTerminal
	// ErrUnknownOrchestration: no deployed build knows an orchestration of that name (and version).
	ErrUnknownOrchestration = provider.ErrUnknownOrchestration
	// ErrActivityNotFound: the instance's current execution has no such activity. It is an ErrNotFound.
	ErrActivityNotFound = fmt.Errorf("the current execution has no such activity: %w", ErrNotFound)
	// ErrNotCancellable: the activity is neither pending nor running.
	ErrNotCancellable = errors.New("the activity is neither pending nor running")
)

// Client starts and reads instances of one task hub. It is safe for concurrent use and keeps no state.
type Client struct {
	provider provider.Provider
	now      func() time.Time
	sleep    func(ctx context.Context, d time.Duration) error
	identify func(ctx context.Context) string // nil: nobody can tell
}

// Option changes how a Client works.
type Option func(*Client)

// WithClock sets the clock that new instance ids are stamped with. The default is time.Now.
func WithClock(now func() time.Time) Option { return func(c *Client) { c.now = now } }

// WithSleep sets how Wait passes the time between two looks: it returns after d, or with an error when ctx ends first.
// The default is a timer.
func WithSleep(sleep func(ctx context.Context, d time.Duration) error) Option {
	return func(c *Client) { c.sleep = sleep }
}

// New makes a client of the provider's hub. It calls nothing.
func New(p provider.Provider, opts ...Option) *Client {
	c := &Client{provider: p, now: time.Now, sleep: sleep} //nolint:forbidigo // the default clock
	if i, ok := p.(identifier); ok {
		c.identify = i.Caller
	}
	for _, opt := range opts {
		opt(c)
	}
	return c
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err() //nolint:wrapcheck // Wait names the instance
	}
}
