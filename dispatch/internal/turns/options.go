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
	opts.MaxCrashes = cmp.Or(opts.MaxCrashes, intake.DefaultMaxCrashes)
	base := intake.NewBase(p, opts.Clock, opts.Logger)
	meter := intake.NewMeter(opts.Metrics, opts.HubName, intake.DimensionOrchestration, base)
	encoding, _ := payloads.New(opts.Codecs, payloads.StoreOf(p)) // package dispatch has checked the codecs
	observer := observe.New(base.Logger, opts.Interceptors, meter)
	encoder := &turnpayload.Encoder{Encoding: encoding, Clock: base.Clock}
	loader := &execution.Loader{
		Base: base, Registry: r, Encoding: encoding, Meter: meter, BuildID: opts.BuildID,
		TurnTimeout: opts.TurnTimeout, ExactRetries: opts.DisableJitter, Retention: opts.Retention,
		TracksTasks: observer.TracksTasks(),
	}

	return &Orchestrator{
		Base: base, meter: meter, alone: intake.NewAlone(), buffers: newBuffers(), sessions: newSessionPool(),
		cache:  execution.NewCache(opts.CacheBytes, base.Clock),
		loader: loader, payloads: encoder, observer: observer,
		poison:   &poison.Options{Base: base, MaxCrashes: opts.MaxCrashes, Interceptors: observer.Names},
		attempts: &attempts.Processor{Base: base},
		inline: &inline.Host{
			Base: base, Registry: r, Encoding: encoding, Timeout: opts.InlineTimeout,
			Interceptors: body.ChainOf(base.Logger, opts.Interceptors), Meter: meter.By(intake.DimensionActivity),
		},
		mailbox: &mailbox.Mailbox{Base: base, Payloads: encoder},
		blocked: &blocked.Policy{Base: base, BuildID: opts.BuildID, MaxCrashes: opts.MaxCrashes},
		queries: queries.NewHandler(loader),
		builds:  builds.NewReporter(base, opts.BuildID, r),
	}
}
