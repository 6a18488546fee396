package dispatch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch/internal/activities"
	"github.com/perdure/perdure/dispatch/internal/intake"
	"github.com/perdure/perdure/dispatch/internal/turns"
	"github.com/perdure/perdure/internal/payloads"
	"github.com/perdure/perdure/provider"
)

// OrchestratorOptions configures an Orchestrator. The zero value of a field selects its default. A negative value
// disables a limit if the field says so. NewOrchestrator rejects other negative values.
type OrchestratorOptions struct {
	// BuildID names the deployed code. It is recorded in TurnStarted events. A build does not run an instance that was
	// blocked in a build with the same ID (R18). The default is "dev". With this default, each process runs a blocked
	// instance once.
	BuildID string
	// Clock returns the current time. The default is time.Now.
	Clock func() time.Time
	// Logger is the logger of the engine, and of the replay-safe loggers of orchestrations. The default is
	// slog.Default().
	Logger *slog.Logger
	// CacheBytes is the maximum size of the cache of warm instances. The default is DefaultCacheBytes. A negative value
	// disables the cache.
	CacheBytes int
	// TurnTimeout is the maximum time for which code may run between two awaits. If code takes longer, the turn fails
	// with history.TypeBlockingCall, because the code blocks outside of a future. The default is 10 s. It must not be
	// negative.
	TurnTimeout time.Duration
	// DisableJitter records retry policies without jitter, so that tests have exact delays.
	DisableJitter bool
	// MaxCrashes is the number of times that the code of a record may end its process, while it runs alone, before the
	// record counts as poison. The record was delivered three times before: twice without a crash marker, and once
	// together with others (R13). Other failures are retried without a limit. The default is DefaultMaxCrashes. It
	// must not be negative.
	MaxCrashes int
	// HubName is the name of the hub in metrics. The default is empty.
	HubName string
	// Metrics selects the dimensions of the engine's metrics (docs/operate/telemetry.md). CloudWatch bills each metric
	// per value of its dimensions.
	Metrics Metrics
	// Retention is the time for which ended instances are kept, unless their code sets it (perdure.WithRetention).
	// Ended instances are kept forever by default, or if the value is negative (perdure.RetainForever).
	Retention time.Duration
	// Interceptors are called around each turn (Turn), with the tasks that a turn scheduled and ended (Tasks), and
	// around each run of an inline activity (Activity). The first one is the outermost. The default is none.
	Interceptors []perdure.Interceptor
	// InlineTimeout is the maximum time for which an inline activity (perdure.Inline) may run before it is stopped and
	// sent to its work queue. The limit is never more than a third of the invocation's remaining time. The default is
	// DefaultInlineTimeout. A negative value disables inline execution.
	InlineTimeout time.Duration
	// Codecs encode and decode payloads. The first one encodes, and all of them decode. If the first one is nil,
	// payloads are not encoded. The default is none.
	Codecs []perdure.Codec
}

// WorkerOptions configures a Worker. The zero value of a field selects its default. A negative value disables a limit
// if the field says so. NewWorker rejects other negative values.
type WorkerOptions struct {
	// HubName is the name of the hub in metrics. The default is empty.
	HubName string
	// Metrics is described in OrchestratorOptions.
	Metrics Metrics
	// BuildID names the deployed code in reports of activities that it does not register. The default is "dev".
	BuildID string
	// Queue is the work queue. The default is "default".
	Queue string
	// Clock returns the current time. The default is time.Now.
	Clock func() time.Time
	// Logger is the logger of the engine. The default is slog.Default().
	Logger *slog.Logger
	// OmitErrorTexts omits the messages of activity errors from the log, because they can contain confidential data.
	// Only the type of a retried error is logged. History contains the full error.
	OmitErrorTexts bool
	// MaxCrashes is described in OrchestratorOptions.
	MaxCrashes int
	// ResendAfterDeliveries is the number of deliveries after which a work item is sent again as a new record, if its
	// code did not cause the failures. Examples are a build that does not register the activity, or an outcome that SQS
	// did not accept. A long outage therefore does not exhaust the deliveries of the queue. The default is 50. A
	// negative value disables this, and the work item ends in the dead-letter queue.
	ResendAfterDeliveries int

	// LeaseAfter is the time for which an activity of a pushed record runs before it gets a lease. The default is 3 s.
	// It must not be negative.
	LeaseAfter time.Duration
	// LockTimeout is the length of a lease in whole seconds. If the worker crashes, its activities are started again
	// after this time. The default is DefaultLockTimeout. The minimum is a second, and the maximum is 12 hours. It must
	// not be negative.
	LockTimeout time.Duration
	// LockRenewalBuffer is the time between the renewal and the end of a lease. The default is
	// DefaultLockRenewalBuffer, or a third of LockTimeout if that is shorter. The same third applies if the value is
	// not less than LockTimeout. It must not be negative.
	LockRenewalBuffer time.Duration
	// CancelPollInterval is the interval at which a Worker reads whether its running activities are cancelled, with one
	// read per execution. One read per second is strongly consistent. The others are eventually consistent, at half the
	// price. The interval is longer while reads fail, or if the process runs activities of more than 50 executions, but
	// at most a second unless this value is longer. perdure.WithCancelPollInterval sets it for one activity. The
	// default is DefaultCancelPollInterval. It must not be negative.
	CancelPollInterval time.Duration
	// CancellationGracePeriod is the time for which a Worker waits for an activity to return after its context has
	// ended. The default is DefaultCancellationGracePeriod. If the value is negative, the Worker does not wait.
	CancellationGracePeriod time.Duration
	// Interceptors are called around each run of an activity (Activity). The first one is the outermost. The default is
	// none.
	Interceptors []perdure.Interceptor
	// Codecs are described in OrchestratorOptions.
	Codecs []perdure.Codec
}

// RenewerOptions configures a Renewer. The zero value of a field selects its default.
type RenewerOptions struct {
	// HubName is the name of the hub in metrics. The default is empty.
	HubName string
	// Metrics is described in OrchestratorOptions.
	Metrics Metrics
	// Clock returns the current time. The default is time.Now.
	Clock func() time.Time
	// Logger is the logger of the engine. The default is slog.Default().
	Logger *slog.Logger
}

// Metrics selects the dimensions of the engine's metrics, or disables them (docs/operate/telemetry.md). CloudWatch
// bills each metric per value of its dimensions.
type Metrics = intake.Metrics

// The values of Metrics.
const (
	// MetricsOff disables metrics. Its value is empty.
	MetricsOff = intake.MetricsOff
	// MetricsByHub ("hub") uses the hub as the only dimension.
	MetricsByHub = intake.MetricsByHub
	// MetricsByName ("name") uses the hub and the name of the activity or orchestration.
	MetricsByName = intake.MetricsByName
)

// PollOptions configures Poll. The zero value of a field selects its default. A negative value disables a limit if the
// field says so. Poll rejects other negative values.
type PollOptions struct {
	// Concurrency is the number of batches that are processed concurrently. The default is 4, or 1 for the timers
	// queue. It must not be negative.
	Concurrency int
	// LockTimeout is the length of the lock after each renewal. The default is the visibility timeout of the queue. It
	// must not be negative or more than 12 hours.
	LockTimeout time.Duration
	// GracePeriod is the time for which Poll waits for running calls after its context has ended. The default is 30 s.
	// If the value is negative, Poll does not wait.
	GracePeriod time.Duration
	// UnwindTimeout is the time for which Poll waits after GracePeriod, after it has ended the contexts of the
	// remaining calls. A Worker waits for its activities for up to its CancellationGracePeriod. The default is 12 s. If
	// the value is negative, Poll does not wait.
	UnwindTimeout time.Duration
	// Renew extends the locks of records that are being processed. The default is provider.Poller.RenewRecords. For a
	// work queue, use Worker.RenewRecords, which also reads cancellations.
	Renew func(ctx context.Context, lock time.Duration, records ...provider.Record) (lost []provider.Record, err error)
	// Logger is the logger of Poll. The default is slog.Default().
	Logger *slog.Logger
}

// The defaults of the options.
const (
	DefaultBuildID                 = intake.DefaultBuildID                // "dev"
	DefaultInlineTimeout           = turns.DefaultInlineTimeout           // 2 s
	DefaultCacheBytes              = turns.DefaultCacheBytes              // 64 MiB
	DefaultMaxCrashes              = intake.DefaultMaxCrashes             // 10
	DefaultLockTimeout             = activities.DefaultLockTimeout        // 30 s
	DefaultLockRenewalBuffer       = activities.DefaultLockRenewalBuffer  // 5 s
	DefaultCancelPollInterval      = activities.DefaultCancelPollInterval // 250 ms
	DefaultCancellationGracePeriod = intake.DefaultGrace                  // 10 s
)

var errNil = errors.New("must not be nil")

func required(what string, r *perdure.Registry, p provider.Provider) error {
	switch {
	case r == nil:
		return fmt.Errorf("dispatch: registry of the %s: %w", what, errNil)
	case p == nil:
		return fmt.Errorf("dispatch: provider of the %s: %w", what, errNil)
	default:
		return nil
	}
}

// refuse returns an error that lists the fields with negative values.
func refuse(options string, fields map[string]int64) error {
	var wrong []error
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if fields[name] < 0 {
			wrong = append(wrong, fmt.Errorf("dispatch: %s.%s must not be negative", options, name))
		}
	}
	return errors.Join(wrong...)
}

// longestLock is the maximum lock of a record, a quota of SQS.
const longestLock = 12 * time.Hour

// lockable returns an error if d exceeds longestLock.
func lockable(field string, d time.Duration) error {
	if d > longestLock {
		return fmt.Errorf("dispatch: %s is %v, but must be at most %v", field, d, longestLock)
	}
	return nil
}

func known(options string, m Metrics) error {
	if m.Known() {
		return nil
	}
	return fmt.Errorf("dispatch: %s.Metrics is %q, but must be empty, %q or %q", options, m, MetricsByHub,
		MetricsByName)
}

func (o *OrchestratorOptions) check() error {
	return errors.Join(
		refuse("OrchestratorOptions", map[string]int64{
			"TurnTimeout": int64(o.TurnTimeout), "MaxCrashes": int64(o.MaxCrashes),
		}),
		known("OrchestratorOptions", o.Metrics), codecs("OrchestratorOptions", o.Codecs))
}

func codecs(options string, all []perdure.Codec) error {
	if _, err := payloads.New(all, nil); err != nil {
		return fmt.Errorf("dispatch: %s.Codecs: %w", options, err)
	}
	return nil
}

func (o *WorkerOptions) check() error {
	return errors.Join(refuse("WorkerOptions", map[string]int64{
		"MaxCrashes": int64(o.MaxCrashes), "LeaseAfter": int64(o.LeaseAfter), "LockTimeout": int64(o.LockTimeout),
		"LockRenewalBuffer": int64(o.LockRenewalBuffer), "CancelPollInterval": int64(o.CancelPollInterval),
	}), lockable("WorkerOptions.LockTimeout", o.LockTimeout), known("WorkerOptions", o.Metrics),
		codecs("WorkerOptions", o.Codecs))
}

func (o *PollOptions) check() error {
	return errors.Join(refuse("PollOptions",
		map[string]int64{"Concurrency": int64(o.Concurrency), "LockTimeout": int64(o.LockTimeout)}),
		lockable("PollOptions.LockTimeout", o.LockTimeout))
}

func orDefault[O any](opts *O) (o O) {
	if opts != nil {
		o = *opts
	}
	return o
}
