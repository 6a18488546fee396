package dispatch

import (
	"log/slog"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/provider"
)

// Options is what an Orchestrator, a Worker and a Timekeeper are made of. Provider is required, and Registry but for a
// Timekeeper; the rest has defaults.
type Options struct {
	Registry *perdure.Registry
	Provider provider.Provider
	// BuildID names the deployed code, for TurnStarted, and for what is blocked: code that could not take an instance's turns is
	// not run for it again under the same name (R18). Default "dev", which names nothing: it is tried once a process.
	BuildID string
	// HubName is the hub's in the metrics of a Timekeeper.
	HubName string
	// Queue is the work queue a Worker serves. Default "default".
	Queue string
	// Clock is where times come from. Default time.Now.
	Clock func() time.Time
	// Logger is where the engine logs, and the orchestrations' replay-safe loggers write. Default slog.Default().
	Logger *slog.Logger
	// OmitErrorTexts keeps what activities fail with out of the log: of an error that is tried again a Worker logs its type alone. Errors may
	// hold what logs must not. History has them whole.
	OmitErrorTexts bool
	// CacheBytes bounds the warm orchestrations that are kept. Default 64 MiB; negative keeps none.
	CacheBytes int
	// TurnLimit is how long a body may run between two awaits before the turn is given up as blocked outside perdure.
	// Default 10 s.
	TurnLimit time.Duration
	// ExactRetries records the retry policies of what an Orchestrator schedules without their jitter, so that waits are exact: for tests.
	ExactRetries bool
	// MaxAttempts is how often the code that a record leads to may take its process down, alone and one after the other, before the
	// record is poison: it was delivered twice without a mark, and once beside others, before (R13). What fails without that is tried
	// again for as long as it takes. Default 10.
	MaxAttempts int
	// Retention is how long an Orchestrator has instances kept after their end whose code does not say otherwise
	// (perdure.WithRetention). Default: for ever.
	Retention time.Duration
	// SendAnewAfter is in which delivery a work item that its code had no part in failing (this build does not know it, its outcome
	// was not accepted) is sent anew as a fresh record, so that no outage uses up the deliveries its queue has. Default 50, half of
	// them: what is sent anew while its old record cannot be deleted is there twice. Negative: never, it ends in the dead letters.
	SendAnewAfter int

	// LockAfter is how long an activity runs on the lock that came with its pushed record; one that takes longer is leased.
	// Default 3 s.
	LockAfter time.Duration
	// LockTimeout is for how long a lease locks a record, in whole seconds: when a worker dies, its activities are begun
	// again after as long. Default 30 s.
	LockTimeout time.Duration
	// LockRenewalBuffer is how long before its end a lease is renewed. Default 5 s, or a third of LockTimeout if that is less.
	LockRenewalBuffer time.Duration
	// CancelPollInterval is how often a Worker looks whether the activities that it runs are cancelled. Default 1 s.
	CancelPollInterval time.Duration
	// CancellationGracePeriod is how long a Worker waits for an activity whose context it has ended. Default 10 s; negative:
	// not at all.
	CancellationGracePeriod time.Duration
}

const (
	defaultBuildID    = "dev"
	defaultCacheBytes = 64 << 20
	defaultTurnLimit  = 10 * time.Second

	defaultMaxAttempts   = 10
	defaultSendAnewAfter = 50

	defaultLockAfter          = 3 * time.Second
	defaultLockTimeout        = 30 * time.Second
	defaultLockRenewalBuffer  = 5 * time.Second
	defaultCancelPollInterval = time.Second
	defaultCancellationGrace  = 10 * time.Second
)

// A handled error is tried again in seconds; visibility alone would make it minutes (R19). What goes on failing waits longer
// and longer: a hundred deliveries, after which a queue gives a message up, then outlast a night.
const (
	firstRetryDelay   = 2 * time.Second
	longestRetryDelay = 5 * time.Minute
)

// retryDelay is how long a record that failed in its n-th delivery stays invisible.
func retryDelay(n int) time.Duration {
	return min(firstRetryDelay<<min(max(n-1, 0), 8), longestRetryDelay)
}

// wallClock is time.Now without its monotonic reading, which stands still while a Lambda is frozen (R6).
func wallClock() time.Time { return time.Now().Round(0) } //nolint:forbidigo // the default clock

func (o Options) withDefaults() Options {
	if o.BuildID == "" {
		o.BuildID = defaultBuildID
	}
	if o.Queue == "" {
		o.Queue = perdure.DefaultQueue
	}
	if o.Clock == nil {
		o.Clock = wallClock
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.CacheBytes == 0 {
		o.CacheBytes = defaultCacheBytes
	}
	if o.TurnLimit == 0 {
		o.TurnLimit = defaultTurnLimit
	}
	if o.MaxAttempts <= 0 {
		o.MaxAttempts = defaultMaxAttempts
	}
	if o.SendAnewAfter == 0 {
		o.SendAnewAfter = defaultSendAnewAfter
	}
	return o.withActivityDefaults()
}

func (o Options) withActivityDefaults() Options {
	if o.LockAfter <= 0 {
		o.LockAfter = defaultLockAfter
	}
	if o.LockTimeout <= 0 {
		o.LockTimeout = defaultLockTimeout
	}
	o.LockTimeout = max(o.LockTimeout.Truncate(time.Second), time.Second)
	if o.LockRenewalBuffer <= 0 || o.LockRenewalBuffer >= o.LockTimeout {
		o.LockRenewalBuffer = min(defaultLockRenewalBuffer, o.LockTimeout/3)
	}
	if o.CancelPollInterval <= 0 {
		o.CancelPollInterval = defaultCancelPollInterval
	}
	if o.CancellationGracePeriod == 0 {
		o.CancellationGracePeriod = defaultCancellationGrace
	}
	return o
}
