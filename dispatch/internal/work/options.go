package work

import (
	"cmp"
	"log/slog"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch/internal/body"
	"github.com/perdure/perdure/dispatch/internal/intake"
	"github.com/perdure/perdure/internal/registry"
	"github.com/perdure/perdure/internal/standings"
	"github.com/perdure/perdure/internal/vault"
	"github.com/perdure/perdure/provider"
)

// Options holds the options of a Worker. See dispatch.WorkerOptions.
type Options struct {
	HubName                 string
	Metrics                 intake.Metrics
	BuildID                 string
	Queue                   string
	Clock                   func() time.Time
	Logger                  *slog.Logger
	OmitErrorTexts          bool
	MaxCrashes              int
	ResendAfterDeliveries   int
	LeaseAfter              time.Duration
	LockTimeout             time.Duration
	LockRenewalBuffer       time.Duration
	CancelPollInterval      time.Duration
	CancellationGracePeriod time.Duration
	Interceptors            []perdure.Interceptor
	Codecs                  []perdure.Codec
}

// The defaults of a worker's options.
const (
	DefaultSendAnewAfter      = 50
	DefaultLockAfter          = 3 * time.Second
	DefaultLockTimeout        = 30 * time.Second
	DefaultLockRenewalBuffer  = 5 * time.Second
	DefaultCancelPollInterval = 250 * time.Millisecond
)

// NewWorker returns a worker. It makes no calls.
func NewWorker(r *registry.Registry, p provider.Provider, opts Options) *Worker {
	base := intake.NewBase(p, opts.Clock, opts.Logger)
	opts.Clock, opts.Logger = base.Clock, base.Logger
	w := &Worker{base: base, options: opts, provider: p}
	w.meter = intake.NewMeter(opts.Metrics, opts.HubName, intake.DimensionActivity, &w.base)
	w.options.setDefaults()
	w.reporter = &reporter{options: &w.options, provider: p}
	w.manager = newManager(&w.base, &w.options, w.reporter)
	w.admission = &admission{
		base: &w.base, registry: r, options: &w.options, provider: p, manager: w.manager, standings: standings.New(), alone: intake.NewAlone(),
		interceptors: body.ChainOf(w.options.Logger, w.options.Interceptors),
	}
	w.vault, _ = vault.New(opts.Codecs, vault.StoreOf(p)) // package dispatch has checked them
	w.settlement = &settlement{base: &w.base, options: &w.options, provider: p, manager: w.manager}
	return w
}

// grace is for how long an activity is waited for whose context has ended.
func (o *Options) grace() time.Duration { return max(o.CancellationGracePeriod, 0) }

// atMostEvery is how often what costs a write, or misses nothing, is done for an activity that runs.
func (o *Options) atMostEvery() time.Duration { return max(o.CancelPollInterval, strongEvery) }

// setDefaults sets what is not set. Package dispatch has refused negative numbers where nothing can be switched off.
func (o *Options) setDefaults() {
	o.BuildID = cmp.Or(o.BuildID, intake.DefaultBuildID)
	o.Queue = cmp.Or(o.Queue, perdure.DefaultQueue)
	o.MaxCrashes = cmp.Or(o.MaxCrashes, intake.DefaultMaxAttempts)
	o.ResendAfterDeliveries = cmp.Or(o.ResendAfterDeliveries, DefaultSendAnewAfter)
	o.LeaseAfter = cmp.Or(o.LeaseAfter, DefaultLockAfter)
	o.LockTimeout = max(cmp.Or(o.LockTimeout, DefaultLockTimeout).Truncate(time.Second), time.Second)
	if o.LockRenewalBuffer == 0 || o.LockRenewalBuffer >= o.LockTimeout {
		o.LockRenewalBuffer = min(DefaultLockRenewalBuffer, o.LockTimeout/3)
	}
	o.CancelPollInterval = cmp.Or(o.CancelPollInterval, DefaultCancelPollInterval)
	o.CancellationGracePeriod = cmp.Or(o.CancellationGracePeriod, intake.DefaultGrace)
}
