package turns

import (
	"cmp"
	"log/slog"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch/internal/body"
	"github.com/perdure/perdure/dispatch/internal/intake"
	"github.com/perdure/perdure/internal/payloads"
	"github.com/perdure/perdure/internal/registry"
	"github.com/perdure/perdure/provider"
)

// Options holds the options of an Orchestrator. See dispatch.OrchestratorOptions.
type Options struct {
	BuildID       string
	Clock         func() time.Time
	Logger        *slog.Logger
	CacheBytes    int
	TurnTimeout   time.Duration
	DisableJitter bool
	MaxCrashes    int
	HubName       string
	Metrics       intake.Metrics
	Retention     time.Duration
	Interceptors  []perdure.Interceptor
	// InlineTimeout is described in dispatch.OrchestratorOptions.
	InlineTimeout time.Duration
	Codecs        []perdure.Codec
}

// DefaultCacheBytes is the default size limit of the cache of warm instances.
const DefaultCacheBytes = 64 << 20

const defaultTurnLimit = 10 * time.Second

// DefaultInlineTimeout is the default time limit of an inline activity.
const DefaultInlineTimeout = 2 * time.Second

// NewOrchestrator returns an orchestrator. It makes no calls.
func NewOrchestrator(r *registry.Registry, p provider.Provider, opts Options) *Orchestrator {
	opts.BuildID = cmp.Or(opts.BuildID, intake.DefaultBuildID)
	opts.CacheBytes = cmp.Or(opts.CacheBytes, DefaultCacheBytes)
	opts.TurnTimeout = cmp.Or(opts.TurnTimeout, defaultTurnLimit)
	opts.InlineTimeout = cmp.Or(opts.InlineTimeout, DefaultInlineTimeout)
	opts.MaxCrashes = cmp.Or(opts.MaxCrashes, intake.DefaultMaxAttempts)
	base := intake.NewBase(p, opts.Clock, opts.Logger)
	meter := intake.NewMeter(opts.Metrics, opts.HubName, intake.DimensionOrchestration, &base)
	opts.Clock, opts.Logger = base.Clock, base.Logger
	v, _ := payloads.New(opts.Codecs, payloads.StoreOf(p)) // package dispatch has checked them
	return &Orchestrator{
		encoding: v,
		base:     base, registry: r, options: opts, provider: p, cache: newCache(opts.CacheBytes, opts.Clock), alone: intake.NewAlone(), asked: newAskLimits(), rooms: newRooms(), sessions: newSessions(),
		interceptors: interceptorsOf(&opts), listeners: taskListenersOf(&opts), around: body.ChainOf(opts.Logger, opts.Interceptors), meter: meter, stepMeter: meter.By(intake.DimensionActivity),
	}
}
