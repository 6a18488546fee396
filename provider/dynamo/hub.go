package dynamo

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/perdure/perdure/internal/dynamoknobs"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/attempts"
	"github.com/perdure/perdure/provider/dynamo/internal/builds"
	"github.com/perdure/perdure/provider/dynamo/internal/cancels"
	"github.com/perdure/perdure/provider/dynamo/internal/deadletters"
	"github.com/perdure/perdure/provider/dynamo/internal/deletion"
	"github.com/perdure/perdure/provider/dynamo/internal/erasure"
	"github.com/perdure/perdure/provider/dynamo/internal/finalexec"
	"github.com/perdure/perdure/provider/dynamo/internal/hubstore"
	"github.com/perdure/perdure/provider/dynamo/internal/inbox"
	"github.com/perdure/perdure/provider/dynamo/internal/instances"
	"github.com/perdure/perdure/provider/dynamo/internal/lists"
	"github.com/perdure/perdure/provider/dynamo/internal/outbox"
	"github.com/perdure/perdure/provider/dynamo/internal/payloads"
	"github.com/perdure/perdure/provider/dynamo/internal/queries"
	"github.com/perdure/perdure/provider/dynamo/internal/reconcile"
	"github.com/perdure/perdure/provider/dynamo/internal/rejections"
	"github.com/perdure/perdure/provider/dynamo/internal/retention"
	"github.com/perdure/perdure/provider/dynamo/internal/retries"
	"github.com/perdure/perdure/provider/dynamo/internal/segments"
	"github.com/perdure/perdure/provider/dynamo/internal/sqsqueue"
	"github.com/perdure/perdure/provider/dynamo/internal/starts"
	"github.com/perdure/perdure/provider/dynamo/internal/sweep"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
	"github.com/perdure/perdure/provider/dynamo/internal/timers"
	"github.com/perdure/perdure/provider/dynamo/internal/tokens"
	"github.com/perdure/perdure/provider/dynamo/internal/updates"
	"github.com/perdure/perdure/provider/dynamo/internal/workqueue"
)

// HubConfig contains the names and URLs of a task hub's resources. Name, Table and InboxURL are required. Processes that run
// turns or process timers require all fields, and workers require WorkQueues and DeadLetters. The JSON is the format of
// the hub's SSM parameter.
type HubConfig struct {
	Name     string `json:"hub"`
	Table    string `json:"table"`
	InboxURL string `json:"inboxUrl"`
	// WorkQueues contains the URLs of the work queues by name.
	WorkQueues map[string]string `json:"workQueues"`
	TimersURL  string            `json:"timersUrl"`
	// DeadLetters contains the URLs of the dead-letter queues by queue: provider.QueueInbox, provider.QueueTimers and
	// each work queue.
	DeadLetters map[string]string `json:"deadLetters"`

	// TimerMode selects how timers beyond the maximum delay of a queue are held: TimersSchedules or TimersRequeue. The
	// default is TimersRequeue. The following fields are required for TimersSchedules.
	TimerMode     string `json:"timers"`
	ScheduleGroup string `json:"scheduleGroup"`
	// ScheduleRoleARN is the role with which EventBridge Scheduler sends.
	ScheduleRoleARN      string `json:"scheduleRoleArn"`
	TimersARN            string `json:"timersArn"`
	TimersDeadLettersARN string `json:"timersDeadLettersArn"`

	// Orchestrator is the ARN or name of the function that runs queries, with its alias if it has one. If it is empty,
	// queries are not available.
	Orchestrator string `json:"orchestrator"`

	// PayloadBucket is the bucket of the payload store. If it is empty, there is no payload store.
	PayloadBucket string `json:"payloadBucket,omitempty"`
}

// The values of HubConfig.TimerMode. It selects how to hold timers that exceed the maximum delay of a queue.
const (
	TimersSchedules = "schedules" // a one-time EventBridge schedule sends them to the queue
	TimersRequeue   = "hops"      // they are sent again with the maximum delay until they are due
)

func (h HubConfig) validate() error {
	if err := missing([2]string{"hub", h.Name}, [2]string{"table", h.Table}, [2]string{"inboxUrl", h.InboxURL}); err != nil {
		return fmt.Errorf("dynamo: hub %q: %w", h.Name, err)
	}
	if h.TimerMode != "" && h.TimerMode != TimersSchedules && h.TimerMode != TimersRequeue {
		problem := fmt.Sprintf("is %q, but must be %s or %s", h.TimerMode, TimersSchedules, TimersRequeue)
		return fmt.Errorf("dynamo: hub %q: %w", h.Name, &provider.FieldError{Field: "timers", Problem: problem})
	}
	return nil
}

// missing returns an error for the first of these names whose value is empty.
func missing(fields ...[2]string) error {
	for _, f := range fields {
		if f[1] == "" {
			return &provider.FieldError{Field: f[0], Problem: "is missing"}
		}
	}
	return nil
}

// Clients contains the AWS clients of a Provider. The provider retries by itself, so it disables the retries of SDK
// clients.
type Clients struct {
	Table  TableAPI
	Queues QueueAPI
	// Schedules is required if timers are held with schedules.
	Schedules ScheduleAPI
	// Functions is required for queries (QueryInstance).
	Functions FunctionAPI
	// Bucket is required if the hub has a PayloadBucket.
	Bucket BucketAPI
}

// Option configures a Provider.
type Option func(*settings)

// settings are declared in an internal package, so that the module's own functions and tests can set those that are not
// public options.
type settings = dynamoknobs.Settings

// WithClock sets the clock for timestamps and delays. The default is time.Now.
func WithClock(now func() time.Time) Option { return func(s *settings) { s.Now = now } }

// WithLogger sets the logger. The default is slog.Default().
func WithLogger(l *slog.Logger) Option { return func(s *settings) { s.Log = l } }

// defaults returns the settings before options are applied.
func defaults() settings {
	return settings{
		Now:          func() time.Time { return time.Now().Round(0) }, //nolint:forbidigo // the default clock, without the monotonic reading that a frozen Lambda stops
		Log:          slog.Default(),
		LongestDelay: dynamoknobs.LongestDelay,
		ScheduleLead: dynamoknobs.ScheduleLead,
		Rollup:       dynamoknobs.Rollup,
	}
}

// Provider implements provider.Provider with DynamoDB and SQS. It is safe for concurrent use. Its only state is caches
// of builds, keys and segments.
type Provider struct {
	hub         HubConfig
	table       *table.Table
	queue       *sqsqueue.Queues
	schedules   ScheduleAPI
	functions   FunctionAPI
	payloads    *payloads.Store // nil if the hub has no bucket
	now         func() time.Time
	log         *slog.Logger
	builds      *builds.Builds
	tokens      *tokens.Keys
	hubItems    *hubstore.Store
	inbox       *inbox.Inbox
	cancels     *cancels.Store
	instances   *instances.Store
	lists       *lists.Lists
	sweep       *sweep.Searches
	segments    *segments.Store
	timers      *timers.Timers
	workQueues  *workqueue.WorkQueues
	updates     *updates.Store
	outbox      *outbox.Outbox
	retries     *retries.Retries
	rejections  *rejections.Rejections
	starts      *starts.Starts
	erasure     *erasure.Eraser
	finalexec   *finalexec.Reader
	deletion    *deletion.Deleter
	retention   *retention.Retention
	reconcile   *reconcile.Reconciler
	deadLetters *deadletters.DeadLetters
	queries     *queries.Queries
	documents   *segments.Documents
	workItems   *segments.WorkItems
	attempts    *attempts.Store

	lead time.Duration // of schedules
	// caller reads the identity of the clients' credentials.
	caller caller
}

var (
	_ provider.Provider    = (*Provider)(nil)
	_ provider.DeadLetters = (*Provider)(nil)
	_ provider.Poller      = (*Provider)(nil)
	_ provider.Querier     = (*Provider)(nil)
	_ provider.Reconciler  = (*Provider)(nil)
)

// New returns a provider for a hub. It makes no calls. It returns an error if the hub or the clients are incomplete.
func New(hub HubConfig, clients Clients, opts ...Option) (*Provider, error) {
	if err := hub.validate(); err != nil {
		return nil, err
	}
	s := defaults()
	for _, opt := range opts {
		opt(&s)
	}

	clients = withoutRetries(clients)
	p := &Provider{
		hub: hub, table: table.New(clients.Table, hub.Table), schedules: clients.Schedules, functions: clients.Functions, now: s.Now, log: s.Log,
		lead: s.ScheduleLead, caller: caller{turn: make(chan struct{}, 1)},
	}
	if hub.PayloadBucket != "" && clients.Bucket == nil {
		return nil, fmt.Errorf("dynamo: hub %q has the payload store %s, but there is no S3 client", hub.Name,
			hub.PayloadBucket)
	}
	p.queue = sqsqueue.New(clients.Queues, sqsqueue.Config{
		Hub: hub.Name, InboxURL: hub.InboxURL, TimersURL: hub.TimersURL, WorkQueues: hub.WorkQueues,
		DeadLetters: hub.DeadLetters, MaxDelay: s.LongestDelay,
	}, s.Now)
	p.tokens = tokens.New(p.table, hub.Name, s.Now, s.Log)
	p.hubItems = hubstore.New(p.table, s.Now, s.Log)
	p.inbox = inbox.New(p.table, p.queue, s.Now)
	p.cancels = cancels.New(p.table, s.Now)
	p.attempts = attempts.New(p.table, p.cancels, s.Now)
	p.builds = builds.New(p.table, p.tokens, p.inbox, hub.Name, s.Now, s.Log)
	p.instances = instances.New(p.table, s.Now)
	p.lists = lists.New(p.table, p.instances, s.Log)
	p.sweep = sweep.New(p.table, p.instances, p.hubItems, p.builds, s.Now, s.Log)
	p.documents = segments.NewDocuments(p.table)
	p.workItems = segments.NewWorkItems(p.table)
	p.segments = segments.New(p.table, p.instances, p.documents, segments.Config{
		Now: s.Now, Log: s.Log, RollupSize: s.Rollup, RollupAlways: s.RollupAnyhow,
	})
	p.timers = timers.New(clients.Schedules, p.queue, p.segments, p.attempts, timers.Config{
		UseSchedules: hub.TimerMode == TimersSchedules, ScheduleGroup: hub.ScheduleGroup,
		ScheduleRoleARN: hub.ScheduleRoleARN, TimersARN: hub.TimersARN,
		TimersDeadLettersARN: hub.TimersDeadLettersARN, ScheduleLead: s.ScheduleLead, Now: s.Now, Log: s.Log,
	})
	p.workQueues = workqueue.New(p.queue, p.inbox, p.tokens, p.cancels, s.Now, s.Log)
	p.updates = updates.New(p.table, s.Now)
	p.outbox = outbox.New(outbox.Stores{
		Table: p.table, Queue: p.queue, Inbox: p.inbox, WorkQueues: p.workQueues, Timers: p.timers,
		Instances: p.instances, Attempts: p.attempts, Segments: p.segments, Updates: p.updates,
	}, s.Now, s.Log)
	p.retries = retries.New(retries.Stores{
		Table: p.table, Queue: p.queue, WorkQueues: p.workQueues, Attempts: p.attempts, WorkItems: p.workItems,
		Outbox: p.outbox,
	}, s.Now)
	p.rejections = rejections.New(p.table, p.inbox, s.Now, s.Log)
	p.starts = starts.New(starts.Stores{
		Table: p.table, Inbox: p.inbox, Builds: p.builds, Timers: p.timers, Instances: p.instances,
		Segments: p.segments, Outbox: p.outbox,
	}, s.Now)
	p.payloads = payloads.New(clients.Bucket, hub.PayloadBucket, hub.Name, s.Now)
	p.erasure = erasure.New(p.table, p.cancels, p.payloads, s.Now)
	p.finalexec = finalexec.New(p.table, p.segments, p.timers, s.Now, s.Log)
	p.deletion = deletion.New(deletion.Stores{
		Table: p.table, Instances: p.instances, Segments: p.segments, Cancels: p.cancels, Updates: p.updates,
		Payloads: p.payloads, Timers: p.timers, Outbox: p.outbox, Eraser: p.erasure, FinalExec: p.finalexec,
	}, s.Now, s.Log)
	p.retention = retention.New(retention.Stores{
		Table: p.table, Instances: p.instances, Segments: p.segments, Eraser: p.erasure, Deleter: p.deletion,
	}, s.Now, s.Log)
	p.reconcile = reconcile.New(reconcile.Stores{
		Queue: p.queue, Inbox: p.inbox, Timers: p.timers, Instances: p.instances, Segments: p.segments,
		Cancels: p.cancels, Attempts: p.attempts, Outbox: p.outbox, Rejections: p.rejections, Deleter: p.deletion,
	}, s.Now)
	p.deadLetters = deadletters.New(p.queue, p.inbox, p.timers, p.tokens)
	p.queries = queries.New(clients.Functions, hub.Name, hub.Orchestrator)
	if err := p.timers.CheckTiming(); err != nil {
		return nil, fmt.Errorf("dynamo: hub %q: %w", hub.Name, err)
	}
	return p, nil
}

// Config returns the names and URLs of the hub's resources.
func (p *Provider) Config() HubConfig { return p.hub }
