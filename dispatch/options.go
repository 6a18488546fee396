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
	// retryDelay is when a handled error is tried again; visibility alone would make it minutes (R19).
	retryDelay = 2 * time.Second
)

func (o Options) withDefaults() Options {
	if o.BuildID == "" {
		o.BuildID = "dev"
	}
	if o.Queue == "" {
		o.Queue = perdure.DefaultQueue
	}
	if o.Clock == nil {
		o.Clock = time.Now //nolint:forbidigo // the default clock
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
