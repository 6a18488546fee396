package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client/internal/cancelling"
	"github.com/perdure/perdure/client/internal/completion"
	"github.com/perdure/perdure/client/internal/hub"
	localhub "github.com/perdure/perdure/client/internal/local"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/clientcall"
	"github.com/perdure/perdure/internal/sleep"
	"github.com/perdure/perdure/internal/unwrap"
	"github.com/perdure/perdure/provider"
)

// The errors that the client returns. Use errors.Is to test for them. An error with the same name in package provider
// is the same value.
var (
	// ErrNotFound means that the instance, execution, activity or schedule does not exist.
	ErrNotFound = provider.ErrNotFound
	// ErrAlreadyExists means that a running or ended instance uses the instance ID. The error contains an
	// *AlreadyExistsError that describes the instance.
	ErrAlreadyExists = provider.ErrAlreadyExists
	// ErrPurged means that the instance of an earlier start with this idempotency key was purged. It wraps
	// ErrAlreadyExists.
	ErrPurged = provider.ErrPurged
	// ErrAlreadyStarted means that a start with this idempotency key was made before. Only PrepareStart returns it.
	// Start returns the instance instead.
	ErrAlreadyStarted = provider.ErrAlreadyStarted
	// ErrEnded means that the instance has ended.
	ErrEnded = provider.ErrEnded
	// ErrNotEnded means that the instance has not ended. A purge then requires Force, and a restart is not possible.
	ErrNotEnded = provider.ErrNotEnded
	// ErrUnknownOrchestration means that no deployed build has an orchestration of that name and version.
	ErrUnknownOrchestration = provider.ErrUnknownOrchestration
	// ErrActivityNotFound means that the current execution of the instance has no such activity. It wraps ErrNotFound.
	ErrActivityNotFound = cancelling.ErrActivityNotFound
	// ErrNotCancellable means that the activity is neither pending nor running.
	ErrNotCancellable = cancelling.ErrNotCancellable
	// ErrNotPaused means that the instance or schedule is not paused.
	ErrNotPaused = errors.New("not paused")
)

// Client starts, reads and manages the instances of one task hub. It is safe for concurrent use.
type Client struct {
	hub       *hub.Hub // has no Backend if the hub is remote
	ops       operations
	schedules scheduleOperations
	querier   provider.Querier       // nil if the hub cannot run queries
	preparer  provider.StartPreparer // nil if the hub cannot prepare starts
	attempts  attempts
	remote    bool
}

// Option configures a Client.
type Option func(*options)

type options struct {
	now          func() time.Time
	sleep        func(ctx context.Context, d time.Duration) error
	identify     clientcall.Identify
	querier      provider.Querier
	codecs       []perdure.Codec
	interceptors []perdure.Interceptor
}

// WithClock sets the clock of the client, for example for the times in new instance IDs. The default is time.Now.
func WithClock(now func() time.Time) Option { return func(o *options) { o.now = now } }

// WithSleep sets the function that waits between two polls. It must return after d, or with an error when ctx ends. The
// default uses a timer.
func WithSleep(sleep func(ctx context.Context, d time.Duration) error) Option {
	return func(o *options) { o.sleep = sleep }
}

// Backend is the part of a provider that a Client uses: some interfaces of package provider, and single methods of
// others. Every provider.Provider implements it.
//
// A Client also uses these interfaces if the Backend implements them: Waiter, UpdateWaiter, TailReader,
// CallerIdentifier, provider.Querier, provider.StartPreparer and provider.PayloadStoreProvider. A Backend that wraps
// another Backend has a method Unwrap() Backend. The client also looks for these interfaces on the wrapped Backend.
type Backend interface {
	provider.Instances
	// ReadActivityRecord is a method of provider.Activities, and ReadWorkers is a method of provider.Monitoring.
	ReadActivityRecord(ctx context.Context, executionID string, activityID int64) (provider.ActivityRecord, error)
	ReadWorkers(ctx context.Context) (map[string]provider.WorkerReport, error)
	// VerifyWorkItemToken is a method of provider.Completions, and RenewWorkItemLocks is a method of
	// provider.WorkItems.
	VerifyWorkItemToken(ctx context.Context, token string) (provider.WorkItem, error)
	RenewWorkItemLocks(
		ctx context.Context, queue string, lock time.Duration, items ...provider.LockedWorkItem,
	) ([]provider.Renewal, error)
	// The following seven methods belong to provider.Completions and provider.Activities.
	VerifyCompletionToken(ctx context.Context, token string) (provider.WorkItem, error)
	ReadWorkItem(
		ctx context.Context, instanceID, executionID string, segment, activityID int64,
	) (provider.WorkItem, error)
	HeartbeatPending(ctx context.Context, executionID string, b provider.PendingHeartbeat) (counted bool, err error)
	EndPending(
		ctx context.Context, executionID string, activityID int64, attempt int, lastHeartbeatAt time.Time,
	) (ended bool, err error)
	ReadRetry(ctx context.Context, executionID string, activityID int64) (provider.ActivityRetry, error)
	ReadSettled(ctx context.Context, executionID string, from int64) (provider.Settlements, error)
	ReadCancels(ctx context.Context, executionID string, from int64) (cancels provider.Cancels, next int64, err error)
	// ReadDocument is a method of provider.Orchestrations.
	ReadDocument(ctx context.Context, instanceID string, ref history.Reference) (json.RawMessage, error)
	// DeleteIncarnation is a method of provider.Instances.
	DeleteIncarnation(ctx context.Context, instanceID, startID string, force bool) error

	provider.Annotations
	provider.Schedules
}

// New returns a client of a task hub. It makes no calls. It panics if the codecs of WithCodec are invalid.
func New(h Backend, opts ...Option) *Client {
	o := options{sleep: sleep.For, identify: clientcall.IdentifyBy(h)}
	o.now = time.Now //nolint:forbidigo // the default clock
	for _, opt := range opts {
		opt(&o)
	}
	connection := &hub.Hub{
		Backend: h, Now: o.now, Sleep: o.sleep, Calls: clientcall.NewRunner(o.identify, o.interceptors),
		Encoding: newEncoding(o.codecs, h),
	}
	connection.Waiter, _ = unwrap.As[Waiter](h)
	connection.UpdateWaiter, _ = unwrap.As[UpdateWaiter](h)
	connection.TailReader, _ = unwrap.As[TailReader](h)
	c := &Client{hub: connection, querier: o.querier, attempts: completion.NewAttempts(connection, publicTokenError)}
	c.ops = local{localhub.Hub{Hub: connection}}
	c.schedules = localSchedules{localhub.Schedules{Hub: connection, Calls: instanceCalls{c}}}
	if c.querier == nil {
		c.querier, _ = unwrap.As[provider.Querier](h)
	}
	c.preparer, _ = unwrap.As[provider.StartPreparer](h)
	return c
}

// optionsOf returns the options that a call sets.
func optionsOf[T any, Option ~func(*T)](opts []Option) (o T) {
	for _, opt := range opts {
		opt(&o)
	}
	return o
}

// wrap adds the name of a call to its error. It returns nil for nil.
func wrap(call string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("client: %s: %w", call, err)
}
