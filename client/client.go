package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/offered"
	"github.com/perdure/perdure/internal/sleep"
	"github.com/perdure/perdure/internal/standings"
	"github.com/perdure/perdure/internal/vault"
	"github.com/perdure/perdure/provider"
)

// Errors that the client returns; test for them with errors.Is. An error with the same name in package provider is the
// same value.
var (
	// ErrNotFound means that the instance, execution, activity, job or schedule does not exist.
	ErrNotFound = provider.ErrNotFound
	// ErrAlreadyExists means that the instance ID is in use, by an instance that is running or has ended. The error
	// contains an *AlreadyExistsError that describes the instance.
	ErrAlreadyExists = provider.ErrAlreadyExists
	// ErrPurged means that a start with this idempotency key was made before and its instance has been purged. It is an
	// ErrAlreadyExists.
	ErrPurged = provider.ErrPurged
	// ErrAlreadyStarted means that a start with this idempotency key was made before. Only PrepareStart returns it. Start
	// returns the instance instead.
	ErrAlreadyStarted = provider.ErrAlreadyStarted
	// ErrEnded means that the instance has ended.
	ErrEnded = provider.ErrEnded
	// ErrNotEnded means that the instance has not ended. A purge then requires Force, and a restart is not possible.
	ErrNotEnded = provider.ErrNotEnded
	// ErrUnknownOrchestration means that no deployed build has an orchestration of that name and version.
	ErrUnknownOrchestration = provider.ErrUnknownOrchestration
	// ErrActivityNotFound means that the current execution of the instance has no such activity. It is an ErrNotFound.
	ErrActivityNotFound = fmt.Errorf("the current execution has no such activity: %w", ErrNotFound)
	// ErrNotCancellable means that the activity is neither pending nor running.
	ErrNotCancellable = errors.New("activity is neither pending nor running")
	// ErrNotPaused means that the instance or schedule is not paused.
	ErrNotPaused = errors.New("not paused")
)

// Client starts, reads and manages the instances of one task hub. It is safe for concurrent use.
type Client struct {
	hub      Backend
	now      func() time.Time
	sleep    func(ctx context.Context, d time.Duration) error
	identify func(ctx context.Context) string // nil: there is no way to know
	asker    provider.Querier                 // nil: the hub, if it is one

	codecs []perdure.Codec
	vault  *vault.Vault // nil: payloads are as they are given

	standings *standings.Standings // of executions whose activities were completed

	intercept    []perdure.Interceptor
	interceptors *callChain // nil where there are none
}

// Option configures a Client.
type Option func(*Client)

// WithClock sets the clock of the client, which stamps new instance IDs among others. The default is time.Now.
func WithClock(now func() time.Time) Option { return func(c *Client) { c.now = now } }

// WithSleep sets the function that waits between two polls. It must return after d, or with an error when ctx ends. The
// default uses a timer.
func WithSleep(sleep func(ctx context.Context, d time.Duration) error) Option {
	return func(c *Client) { c.sleep = sleep }
}

// Backend is the part of a provider that a Client uses. Every provider.Provider implements it.
//
// A Backend may also implement Waiter, UpdateWaiter, CallerIdentifier, provider.Querier, provider.StartPreparer,
// provider.PayloadStoreProvider, provider.DeadLetters or provider.Reconciler, which the client then uses. A Backend
// that wraps another one has a method Unwrap() Backend. The client then also looks for these interfaces on the wrapped
// Backend.
type Backend interface {
	provider.Instances
	// ReadActivityRecord is the method of provider.WorkItems. ReadWorkers is the method of provider.Workers.
	ReadActivityRecord(ctx context.Context, executionID string, activityID int64) (provider.ActivityRecord, error)
	ReadWorkers(ctx context.Context) (map[string]provider.WorkerReport, error)
	// VerifyWorkItemToken and RenewWorkItemLocks are methods of provider.WorkItems.
	VerifyWorkItemToken(ctx context.Context, token string) (provider.WorkItem, error)
	RenewWorkItemLocks(ctx context.Context, queue string, lock time.Duration, items ...provider.LockedWorkItem) ([]provider.Renewal, error)
	// The following seven are methods of provider.WorkItems.
	VerifyCompletionToken(ctx context.Context, token string) (provider.WorkItem, error)
	ReadWorkItem(ctx context.Context, instanceID, executionID string, segment, activityID int64) (provider.WorkItem, error)
	HeartbeatPending(ctx context.Context, executionID string, b provider.PendingHeartbeat) (counted bool, err error)
	TimeOutPending(ctx context.Context, executionID string, activityID int64, attempt int, beatenAt time.Time) (ended bool, err error)
	ReadRetry(ctx context.Context, executionID string, activityID int64) (provider.ActivityRetry, error)
	ReadSettled(ctx context.Context, executionID string, from int64) (provider.Settlements, error)
	ReadCancels(ctx context.Context, executionID string, from int64) (cancels provider.Cancels, next int64, err error)
	// ReadDocument is the method of provider.Orchestrations.
	ReadDocument(ctx context.Context, instanceID string, ref history.Reference) (json.RawMessage, error)
	// The following are methods of provider.Jobs.
	PutJob(ctx context.Context, j *provider.Job) error
	ReadJob(ctx context.Context, id string) (provider.Job, error)
	ListJobs(ctx context.Context) ([]provider.Job, error)
	MatchInstances(ctx context.Context, f provider.Filter, from string, most int) (found []provider.Target, next string, err error)
	DeleteIncarnation(ctx context.Context, instanceID, startID string, force bool) error

	provider.Schedules
}

// New returns a client of a task hub. It makes no calls. It panics if the codecs of WithCodec are invalid.
func New(h Backend, opts ...Option) *Client {
	c := &Client{hub: h, now: time.Now, sleep: sleep.For, standings: standings.New()} //nolint:forbidigo // the default clock
	if i, ok := offered.By[CallerIdentifier](h); ok {
		c.identify = i.Caller
	}
	for _, opt := range opts {
		opt(c)
	}
	c.interceptors = interceptorsOf(c.intercept)
	c.vault = newVault(c.codecs, h)
	return c
}
