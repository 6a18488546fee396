package activities

import (
	"cmp"
	"log/slog"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch/internal/cancelpoll"
	"github.com/perdure/perdure/dispatch/internal/intake"
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
	DefaultResendAfterDeliveries = 50
	DefaultLeaseAfter            = 3 * time.Second
	DefaultLockTimeout           = 30 * time.Second
	DefaultLockRenewalBuffer     = 5 * time.Second
	DefaultCancelPollInterval    = 250 * time.Millisecond
)

// setDefaults sets the defaults. Package dispatch has rejected invalid negative values.
func (o *Options) setDefaults() {
	o.BuildID = cmp.Or(o.BuildID, intake.DefaultBuildID)
	o.Queue = cmp.Or(o.Queue, perdure.DefaultQueue)
	o.MaxCrashes = cmp.Or(o.MaxCrashes, intake.DefaultMaxCrashes)
	o.ResendAfterDeliveries = cmp.Or(o.ResendAfterDeliveries, DefaultResendAfterDeliveries)
	o.LeaseAfter = cmp.Or(o.LeaseAfter, DefaultLeaseAfter)
	o.LockTimeout = max(cmp.Or(o.LockTimeout, DefaultLockTimeout).Truncate(time.Second), time.Second)
	if o.LockRenewalBuffer == 0 || o.LockRenewalBuffer >= o.LockTimeout {
		o.LockRenewalBuffer = min(DefaultLockRenewalBuffer, o.LockTimeout/3)
	}
	o.CancelPollInterval = cmp.Or(o.CancelPollInterval, DefaultCancelPollInterval)
	o.CancellationGracePeriod = cmp.Or(o.CancellationGracePeriod, intake.DefaultGrace)
}

// gracePeriod returns the time for which the worker waits for an activity whose context has ended.
func (o *Options) gracePeriod() time.Duration { return max(o.CancellationGracePeriod, 0) }

// writeInterval returns the minimum interval between writes of heartbeats.
func (o *Options) writeInterval() time.Duration {
	return max(o.CancelPollInterval, cancelpoll.StrongInterval)
}

// textOf returns the part of an activity's failure that the log may contain.
func (o *Options) textOf(f *failure) string {
	if o.OmitErrorTexts {
		return "of type " + f.Type
	}
	return f.Message
}
