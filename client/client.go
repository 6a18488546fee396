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

// Sentinels for errors.Is. Those that package provider also has are the same values, so that either name tests for
// both.
var (
	// ErrNotFound: there is no such instance, or no such execution or activity of it.
	ErrNotFound = provider.ErrNotFound
	// ErrAlreadyExists: another start uses the instance id; its instance runs or is over. An AlreadyExistsError names it.
	ErrAlreadyExists = provider.ErrAlreadyExists
	// ErrPurged: a start with this idempotency key has been made before, and its instance was purged since. It is an ErrAlreadyExists.
	ErrPurged = provider.ErrPurged
	// ErrAlreadyStarted: a start with this idempotency key has been made before. Only StartItem tells; Start returns the instance.
	ErrAlreadyStarted = provider.ErrAlreadyStarted
	// ErrTerminal: the instance is over.
	ErrTerminal = provider.ErrTerminal
	// ErrNotTerminal: the instance is not over: it can be purged with Force alone, and cannot be restarted.
	ErrNotTerminal = provider.ErrNotTerminal
	// ErrUnknownOrchestration: no deployed build knows an orchestration of that name (and version).
	ErrUnknownOrchestration = provider.ErrUnknownOrchestration
	// ErrActivityNotFound: the instance's current execution has no such activity. It is an ErrNotFound.
	ErrActivityNotFound = fmt.Errorf("the current execution has no such activity: %w", ErrNotFound)
	// ErrNotCancellable: the activity is neither pending nor running.
	ErrNotCancellable = errors.New("the activity is neither pending nor running")
	// ErrNotPaused: the instance does not show that it is paused. Nothing is wrong with it.
	ErrNotPaused = errors.New("it is not paused")
)

// Client starts and reads instances of one task hub. It is safe for concurrent use, and keeps nothing of what it
// reads but what StoredPayload has read last, and which activities the last executions have settled of which it was given tokens.
type Client struct {
	hub      Hub
	now      func() time.Time
	sleep    func(ctx context.Context, d time.Duration) error
	identify func(ctx context.Context) string // nil: there is no way to know
	asker    provider.Asker                   // nil: the hub, if it is one

	codecs []perdure.Codec
	vault  *vault.Vault // nil: payloads are as they are given

	standings *standings.Standings // of executions whose activities were completed

	intercept    []perdure.Interceptor
	interceptors *callChain // nil where there are none
}

// Option changes how a Client works.
type Option func(*Client)

// WithClock sets the clock that new instance ids are stamped with. The default is time.Now.
func WithClock(now func() time.Time) Option { return func(c *Client) { c.now = now } }

// WithSleep sets how Wait passes the time between two reads: it returns after d, or with an error when ctx ends first.
// The default is a timer.
func WithSleep(sleep func(ctx context.Context, d time.Duration) error) Option {
	return func(c *Client) { c.sleep = sleep }
}

// Hub is what a Client needs of a task hub. Every provider.Provider implements it. A Hub that is also a Waiter, an
// UpdateWaiter, an Identifier, or a provider's Asker, StartPreparer, PayloadKeeper, DeadLetters or Reconciling, is used as such. One that stands before another has a
// method Unwrap() Hub that returns it: what it is not itself, the other may be.
type Hub interface {
	provider.Instances
	// ReadActivityRecord is as in provider.WorkItems, ReadWorkers as in provider.Workers.
	ReadActivityRecord(ctx context.Context, executionID string, activityID int64) (provider.ActivityRecord, error)
	ReadWorkers(ctx context.Context) (map[string]provider.WorkerReport, error)
	// OpenWorkItem and RenewWorkItemLocks are as in provider.WorkItems.
	OpenWorkItem(ctx context.Context, token string) (provider.WorkItem, error)
	RenewWorkItemLocks(ctx context.Context, queue string, lock time.Duration, items ...provider.LockedWorkItem) ([]provider.Renewal, error)
	// These are as in provider.WorkItems, and ReadRetry, ReadSettled and ReadCancels, too.
	OpenCompletion(ctx context.Context, token string) (provider.WorkItem, error)
	ReadWorkItem(ctx context.Context, instanceID, executionID string, segment, activityID int64) (provider.WorkItem, error)
	BeatPending(ctx context.Context, executionID string, b provider.PendingBeat) (counted bool, err error)
	EndPending(ctx context.Context, executionID string, activityID int64, attempt int, beatenAt time.Time) (ended bool, err error)
	ReadRetry(ctx context.Context, executionID string, activityID int64) (provider.ActivityRetry, error)
	ReadSettled(ctx context.Context, executionID string, from int64) (provider.Settlements, error)
	ReadCancels(ctx context.Context, executionID string, from int64) (cancels provider.Cancels, next int64, err error)
	// ReadDocument is as in provider.Orchestrations.
	ReadDocument(ctx context.Context, instanceID string, ref history.Reference) (json.RawMessage, error)
	// These are as in provider.Jobs.
	PutJob(ctx context.Context, j *provider.Job) error
	ReadJob(ctx context.Context, id string) (provider.Job, error)
	ListJobs(ctx context.Context) ([]provider.Job, error)
	MatchInstances(ctx context.Context, f provider.Filter, from string, most int) (found []provider.Target, next string, err error)
	DeleteLife(ctx context.Context, instanceID, startID string, force bool) error

	provider.Schedules
}

// New makes a client of a task hub. It makes no calls.
func New(h Hub, opts ...Option) *Client {
	c := &Client{hub: h, now: time.Now, sleep: sleep.For, standings: standings.New()} //nolint:forbidigo // the default clock
	if i, ok := offered.By[Identifier](h); ok {
		c.identify = i.Caller
	}
	for _, opt := range opts {
		opt(c)
	}
	c.interceptors = interceptorsOf(c.intercept)
	c.vault = newVault(c.codecs, h)
	return c
}
