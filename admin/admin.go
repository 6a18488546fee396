package admin

import (
	"context"
	"iter"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/clientcall"
	"github.com/perdure/perdure/internal/sleep"
	"github.com/perdure/perdure/provider"
)

// Client operates one task hub. It is safe for concurrent use.
type Client struct {
	hub   Backend // nil: the hub is remote
	ops   operations
	now   func() time.Time
	sleep func(ctx context.Context, d time.Duration) error
	calls *clientcall.Runner
}

// Backend is the part of a provider that a Client uses. Every provider.Provider implements it.
//
// A Client also uses these interfaces if the Backend implements them: client.CallerIdentifier,
// provider.PayloadStoreProvider, provider.DeadLetters, provider.Monitoring and provider.Reconciler. A Backend that
// wraps another Backend has a method Unwrap() Backend. The Client then also looks for these interfaces on the wrapped
// Backend.
type Backend interface {
	// ListInstances, ListExecutions and ReadHistory are methods of provider.Instances.
	ListInstances(ctx context.Context, q provider.ListQuery) (provider.Page, error)
	ListExecutions(ctx context.Context, instanceID string) iter.Seq2[provider.Execution, error]
	ReadHistory(ctx context.Context, instanceID, executionID string, after int64) iter.Seq2[history.Event, error]
	// The following four methods belong to provider.Jobs.
	PutJob(ctx context.Context, j *provider.Job) error
	ReadJob(ctx context.Context, id string) (provider.Job, error)
	ListJobs(ctx context.Context) ([]provider.Job, error)
	MatchInstances(
		ctx context.Context, f provider.Filter, from string, most int,
	) (found []provider.Target, next string, err error)
}

// Option configures a Client.
type Option func(*options)

type options struct {
	now          func() time.Time
	sleep        func(ctx context.Context, d time.Duration) error
	identify     clientcall.Identify
	interceptors []perdure.Interceptor
}

// WithClock sets the clock of the client. The default is time.Now.
func WithClock(now func() time.Time) Option { return func(o *options) { o.now = now } }

// WithSleep sets the function that waits between two calls. It must return after d, or with an error when ctx ends. The
// default uses a timer.
func WithSleep(sleep func(ctx context.Context, d time.Duration) error) Option {
	return func(o *options) { o.sleep = sleep }
}

// WithCaller sets the caller's name, which jobs record as requestedBy. client.ContextWithCaller overrides it for a
// single call. The default is the IAM identity of the provider's credentials if the provider knows it, as with
// client.WithCaller. An empty name means that the caller is unknown.
func WithCaller(name string) Option {
	return func(o *options) { o.identify = clientcall.Fixed(name) }
}

// WithInterceptors adds interceptors whose ClientCall functions run around StartJob and CancelJob. The first
// interceptor is the outermost one. Interceptors of earlier options run outside interceptors of later options. A panic
// of an interceptor is logged to slog.Default.
func WithInterceptors(interceptors ...perdure.Interceptor) Option {
	return func(o *options) { o.interceptors = append(o.interceptors, interceptors...) }
}

// New returns a client that operates a task hub. It makes no calls.
func New(h Backend, opts ...Option) *Client {
	o := options{sleep: sleep.For, identify: clientcall.IdentifyBy(h)}
	o.now = time.Now //nolint:forbidigo // the default clock
	for _, opt := range opts {
		opt(&o)
	}
	c := &Client{hub: h, now: o.now, sleep: o.sleep, calls: clientcall.NewRunner(o.identify, o.interceptors)}
	c.ops = local{c}
	return c
}
