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
	// BuildID names the deployed code, for TurnStarted. Default "dev".
	BuildID string
	// Queue is the work queue a Worker serves. Default "default".
	Queue string
	// Clock is where times come from. Default time.Now.
	Clock func() time.Time
	// Logger is where the engine logs, and the orchestrations' replay-safe loggers write. Default slog.Default().
	Logger *slog.Logger
	// CacheBytes bounds the warm orchestrations that are kept. Default 64 MiB; negative keeps none.
	CacheBytes int
	// TurnLimit is how long a body may run between two awaits before the turn is given up as blocked outside perdure.
	// Default 10 s.
	TurnLimit time.Duration
}

const (
	defaultCacheBytes = 64 << 20
	defaultTurnLimit  = 10 * time.Second
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
		o.BuildID = "dev"
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
	return o
}
