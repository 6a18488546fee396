package turns

import (
	"cmp"
	"log/slog"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch/internal/attempts"
	"github.com/perdure/perdure/dispatch/internal/blocked"
	"github.com/perdure/perdure/dispatch/internal/body"
	"github.com/perdure/perdure/dispatch/internal/builds"
	"github.com/perdure/perdure/dispatch/internal/execution"
	"github.com/perdure/perdure/dispatch/internal/inline"
	"github.com/perdure/perdure/dispatch/internal/intake"
	"github.com/perdure/perdure/dispatch/internal/mailbox"
	"github.com/perdure/perdure/dispatch/internal/observe"
	"github.com/perdure/perdure/dispatch/internal/poison"
	"github.com/perdure/perdure/dispatch/internal/queries"
	"github.com/perdure/perdure/dispatch/internal/turnpayload"
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

const defaultTurnTimeout = 10 * time.Second

// DefaultInlineTimeout is the default time limit of an inline activity.
const DefaultInlineTimeout = 2 * time.Second

// NewOrchestrator returns an orchestrator. It makes no calls.
func NewOrchestrator(r *registry.Registry, p provider.Provider, opts Options) *Orchestrator {
	opts.BuildID = cmp.Or(opts.BuildID, intake.DefaultBuildID)
	opts.CacheBytes = cmp.Or(opts.CacheBytes, DefaultCacheBytes)
	opts.TurnTimeout = cmp.Or(opts.TurnTimeout, defaultTurnTimeout)
	opts.InlineTimeout = cmp.Or(opts.InlineTimeout, DefaultInlineTimeout)
	opts.MaxCrashes = cmp.Or(opts.MaxCrashes, intake.DefaultMaxAttempts)
	base := intake.NewBase(p, opts.Clock, opts.Logger)
	clock, log := base.Clock, base.Logger
	meter := intake.NewMeter(opts.Metrics, opts.HubName, intake.DimensionOrchestration, &base)
	v, _ := payloads.New(opts.Codecs, payloads.StoreOf(p)) // package dispatch has checked the codecs
	observer := observe.New(log, opts.Interceptors, meter)
	encoder := &turnpayload.Encoder{Encoding: v, Clock: clock}
	return &Orchestrator{
		base: &base, provider: p, buildID: opts.BuildID, meter: meter, alone: intake.NewAlone(),
		cache: execution.NewCache(opts.CacheBytes, clock), buffers: newBuffers(), sessions: newSessions(),
		loader: &execution.Loader{
			Provider: p, Registry: r, Encoding: v, Logger: log, Meter: meter, BuildID: opts.BuildID,
			TurnTimeout: opts.TurnTimeout, ExactRetries: opts.DisableJitter, Retention: opts.Retention,
			TracksTasks: observer.TracksTasks(),
		},
		payloads: encoder,
		observer: observer,
		poison:   &poison.Options{Base: &base, MaxCrashes: opts.MaxCrashes, Interceptors: observer.Names},
		attempts: &attempts.Processor{Provider: p, Clock: clock, Logger: log},
		inline: &inline.Host{
			Provider: p, Registry: r, Encoding: v, Clock: clock, Logger: log, Timeout: opts.InlineTimeout,
			Interceptors: body.ChainOf(log, opts.Interceptors), Meter: meter.By(intake.DimensionActivity),
		},
		mailbox: &mailbox.Mailbox{Provider: p, Payloads: encoder, Clock: clock, Logger: log},
		blocked: &blocked.Policy{
			Provider: p, Base: &base, Clock: clock, Logger: log, BuildID: opts.BuildID, MaxCrashes: opts.MaxCrashes,
		},
		queries: queries.NewHandler(queries.Options{
			Provider: p, Registry: r, Encoding: v, Clock: clock, BuildID: opts.BuildID,
			TurnTimeout: opts.TurnTimeout, ExactRetries: opts.DisableJitter,
		}),
		builds: builds.NewReporter(&base, opts.BuildID, r),
	}
}
