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
	"github.com/perdure/perdure/dispatch/internal/intake"
	"github.com/perdure/perdure/dispatch/internal/turns"
	"github.com/perdure/perdure/dispatch/internal/work"
	"github.com/perdure/perdure/internal/vault"
	"github.com/perdure/perdure/provider"
)

// OrchestratorOptions change how an Orchestrator works. The zero value of each field is its default. A negative number switches off what
// the field bounds where its comment says so; NewOrchestrator refuses any other.
type OrchestratorOptions struct {
	// BuildID names the deployed code, for TurnStarted, and for what is blocked: code that could not take an instance's turns is
	// not run for it again under the same name (R18). Default "dev", which names nothing: it is tried once a process.
	BuildID string
	// Clock is where times come from. Default time.Now.
	Clock func() time.Time
	// Logger is where the engine logs, and the orchestrations' replay-safe loggers write. Default slog.Default().
	Logger *slog.Logger
	// CacheBytes bounds the warm orchestrations that are kept. Default DefaultCacheBytes; negative: none is kept.
	CacheBytes int
	// TurnLimit is how long a body may run between two awaits before the turn is given up as blocked outside perdure.
	// Default 10 s; must not be negative.
	TurnLimit time.Duration
	// ExactRetries records the retry policies of what is scheduled without their jitter, so that waits are exact: for tests.
	ExactRetries bool
	// MaxAttempts is how often the code that a record leads to may take its process down, alone and one after the other, before the
	// record is poison: it was delivered twice without a mark, and once beside others, before (R13). What fails without that is tried
	// again for as long as it takes. Default DefaultMaxAttempts; must not be negative.
	MaxAttempts int
	// HubName is the hub's in metrics. Default: none.
	HubName string
	// Metrics are logged in CloudWatch's embedded metric format, a line an invocation. Default: MetricsOff.
	Metrics Metrics
	// Retention is how long instances are kept after their end whose code does not say otherwise (perdure.WithRetention). Default,
	// and negative (perdure.KeepForEver): for ever.
	Retention time.Duration
	// Interceptors are called around each turn, the first of them outermost: their Turn functions; their Tasks functions with what a turn has begun
	// and ended; and their Activity functions around each run of an inline activity. Default: none.
	Interceptors []perdure.Interceptor
	// InlineTimeout is how long an inline activity (perdure.Inline) may take before it is stopped, and sent to its worker queue; a third of
	// what the invocation has where that is less. Default DefaultInlineTimeout; negative: none runs inline.
	InlineTimeout time.Duration
	// Codecs encode and decode payloads: the first one encodes, all of them decode; nothing is encoded where the first is nil. Default: none.
	Codecs []perdure.Codec
}

// WorkerOptions change how a Worker works. The zero value of each field is its default. A negative number switches off what the field
// bounds where its comment says so; NewWorker refuses any other.
type WorkerOptions struct {
	// HubName is the hub's in metrics. Default: none.
	HubName string
	// Metrics is as in OrchestratorOptions.
	Metrics Metrics
	// BuildID names the deployed code, for what is said of activities that it does not know. Default "dev".
	BuildID string
	// Queue is the work queue that is served. Default "default".
	Queue string
	// Clock is where times come from. Default time.Now.
	Clock func() time.Time
	// Logger is where the engine logs. Default slog.Default().
	Logger *slog.Logger
	// OmitErrorTexts keeps what activities fail with out of the log: of an error that is tried again its type alone is logged. Errors may
	// hold what logs must not. History has them whole.
	OmitErrorTexts bool
	// MaxAttempts is as in OrchestratorOptions: default DefaultMaxAttempts; must not be negative.
	MaxAttempts int
	// SendAnewAfter is in which delivery a work item that its code had no part in failing (this build does not know it, its outcome
	// was not accepted) is sent anew as a fresh record, so that no outage uses up the deliveries its queue has. Default 50, half of
	// them: what is sent anew while its old record cannot be deleted is there twice. Negative: never, it ends in the dead letters.
	SendAnewAfter int

	// LockAfter is how long an activity runs on the lock that came with its pushed record; one that takes longer is leased.
	// Default 3 s; must not be negative.
	LockAfter time.Duration
	// LockTimeout is for how long a lease locks a record, in whole seconds: when a worker dies, its activities are begun
	// again after as long. Default DefaultLockTimeout; less than a second is a second; must not be negative, nor more than 12 hours.
	LockTimeout time.Duration
	// LockRenewalBuffer is how long before its end a lease is renewed. Default DefaultLockRenewalBuffer, or a third of LockTimeout if that
	// is less, as where it is not less than LockTimeout; must not be negative.
	LockRenewalBuffer time.Duration
	// CancelPollInterval is how often a Worker looks whether the activities that it runs are cancelled: one read for all of an execution. One look a second
	// is strongly consistent, the others are eventually consistent, at half the price, and given up when that one is due. Where looks fail, and where a
	// process runs activities of more than 50 executions, it looks less often, but once a second unless this is longer. An activity may ask for another
	// (perdure.CancelPollInterval). Default DefaultCancelPollInterval; must not be negative.
	CancelPollInterval time.Duration
	// CancellationGracePeriod is how long a Worker waits for an activity whose context it has ended. Default DefaultCancellationGracePeriod;
	// negative: not at all.
	CancellationGracePeriod time.Duration
	// Interceptors are called around each run of an activity, the first of them outermost: their Activity functions. Default: none.
	Interceptors []perdure.Interceptor
	// Codecs are as in OrchestratorOptions.
	Codecs []perdure.Codec
}

// TimekeeperOptions change how a Timekeeper works. The zero value of each field is its default.
type TimekeeperOptions struct {
	// HubName is the hub's in metrics. Default: none.
	HubName string
	// Metrics is as in OrchestratorOptions.
	Metrics Metrics
	// Clock is where times come from. Default time.Now.
	Clock func() time.Time
	// Logger is where the engine logs. Default slog.Default().
	Logger *slog.Logger
}

// Metrics says which dimensions the metrics of what is done have, or that there are none (docs/operate/telemetry.md). CloudWatch bills each metric
// of each value of its dimensions.
type Metrics = intake.Metrics

// The values of Metrics.
const (
	MetricsOff    = intake.MetricsOff    // there are none
	MetricsByHub  = intake.MetricsByHub  // "hub": the hub alone
	MetricsByName = intake.MetricsByName // "name": the hub, and the name of the activity or orchestration
)

// PollOptions change how Poll works. The zero value of each field is its default. A negative number switches off what the field bounds
// where its comment says so; Poll refuses any other.
type PollOptions struct {
	// Loops is how many batches are handled side by side. Default 4, of the timers queue 1; must not be negative.
	Loops int
	// Lock is how long each renewal locks a record for. Default: for as long as the queue did; must not be negative, nor more than 12 hours.
	Lock time.Duration
	// Grace is how long Poll waits, once its context has ended, for what is being handled. Default 30 s; negative: not at all.
	Grace time.Duration
	// Unwind is how long Poll then waits, once it has ended the contexts of what is left, for it to heed that. A Worker waits
	// for its activities for as long as its CancellationGracePeriod. Default 12 s; negative: not at all.
	Unwind time.Duration
	// Renew extends the locks of records that are being handled, as provider.Polling's RenewRecords does, which is the default. Of a work
	// queue it is the Worker's: each renewal of a work item answers whether its activity is cancelled.
	Renew func(ctx context.Context, lock time.Duration, records ...provider.Record) (lost []provider.Record, err error)
	// Logger is where Poll logs. Default slog.Default().
	Logger *slog.Logger
}

// The defaults that a configuration may name.
const (
	DefaultBuildID                 = intake.DefaultBuildID          // "dev"
	DefaultInlineTimeout           = turns.DefaultInlineTimeout     // 2 s
	DefaultCacheBytes              = turns.DefaultCacheBytes        // 64 MiB
	DefaultMaxAttempts             = intake.DefaultMaxAttempts      // 10
	DefaultLockTimeout             = work.DefaultLockTimeout        // 30 s
	DefaultLockRenewalBuffer       = work.DefaultLockRenewalBuffer  // 5 s
	DefaultCancelPollInterval      = work.DefaultCancelPollInterval // 250 ms
	DefaultCancellationGracePeriod = intake.DefaultGrace            // 10 s
)

var errNil = errors.New("it is nil")

// required checks what an orchestrator and a worker cannot do without.
func required(what string, r *perdure.Registry, p provider.Provider) error {
	switch {
	case r == nil:
		return fmt.Errorf("dispatch: the registry of the %s: %w", what, errNil)
	case p == nil:
		return fmt.Errorf("dispatch: the provider of the %s: %w", what, errNil)
	default:
		return nil
	}
}

// refuse returns an error that names the numbers that are negative, of fields that cannot be switched off.
func refuse(options string, fields map[string]int64) error {
	var wrong []error
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if fields[name] < 0 {
			wrong = append(wrong, fmt.Errorf("dispatch: %s.%s must not be negative", options, name))
		}
	}
	return errors.Join(wrong...)
}

// longestLock is how long a record may be locked from its receive on: SQS's quota.
const longestLock = 12 * time.Hour

// lockable returns an error for a time that no record can be locked for.
func lockable(field string, d time.Duration) error {
	if d > longestLock {
		return fmt.Errorf("dispatch: %s is %v: a record is locked for %v at most", field, d, longestLock)
	}
	return nil
}

// known returns an error for a value of Metrics that there is not.
func known(options string, m Metrics) error {
	if m.Known() {
		return nil
	}
	return fmt.Errorf("dispatch: %s.Metrics is %q: neither empty nor %q or %q", options, m, MetricsByHub, MetricsByName)
}

func (o *OrchestratorOptions) check() error {
	return errors.Join(
		refuse("OrchestratorOptions", map[string]int64{"TurnLimit": int64(o.TurnLimit), "MaxAttempts": int64(o.MaxAttempts)}),
		known("OrchestratorOptions", o.Metrics), codecs("OrchestratorOptions", o.Codecs))
}

// codecs returns an error for codecs that are none.
func codecs(options string, all []perdure.Codec) error {
	if _, err := vault.New(all, nil); err != nil {
		return fmt.Errorf("dispatch: %s.Codecs: %w", options, err)
	}
	return nil
}

func (o *WorkerOptions) check() error {
	return errors.Join(refuse("WorkerOptions", map[string]int64{
		"MaxAttempts": int64(o.MaxAttempts), "LockAfter": int64(o.LockAfter), "LockTimeout": int64(o.LockTimeout),
		"LockRenewalBuffer": int64(o.LockRenewalBuffer), "CancelPollInterval": int64(o.CancelPollInterval),
	}), lockable("WorkerOptions.LockTimeout", o.LockTimeout), known("WorkerOptions", o.Metrics), codecs("WorkerOptions", o.Codecs))
}

func (o *PollOptions) check() error {
	return errors.Join(refuse("PollOptions", map[string]int64{"Loops": int64(o.Loops), "Lock": int64(o.Lock)}), lockable("PollOptions.Lock", o.Lock))
}

func orDefault[O any](opts *O) (o O) {
	if opts != nil {
		o = *opts
	}
	return o
}
