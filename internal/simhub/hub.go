package simhub

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/dynamoknobs"
	"github.com/perdure/perdure/internal/faults"
	"github.com/perdure/perdure/internal/registry"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo"
)

// Options configure a hub. Registry is required.
type Options struct {
	Registry *perdure.Registry
	// Environments is the number of orchestrator environments, which are used in turn. Each has its own warm instances.
	// Default 1.
	Environments int
	// Concurrency limits the concurrent invocations of each function. 0 means no limit.
	Concurrency int
	// BatchSize is the batch size of every mapping. Default 10. With 1, an invocation processes one message at a time.
	BatchSize int
	// CacheBytes is passed to package dispatch.
	CacheBytes int
	// TurnTimeout is passed to package dispatch as TurnTimeout.
	TurnTimeout time.Duration
	// Exclusive adds to each work queue the FIFO queue that exclusive keys require.
	Exclusive bool
	// Reports makes workers report to the hub like deployed functions: at their start, and every five minutes while
	// they work.
	Reports bool
	// Jitter enables the jitter of retry policies. Without it, retry delays are exact.
	Jitter bool
	// Retention is passed to package dispatch.
	Retention time.Duration
	// MaxAttempts is passed to package dispatch as MaxCrashes, and ResendAfterDeliveries under its own name.
	MaxAttempts, ResendAfterDeliveries int
	// Rollup is the smallest number of segments in a rollup. A rollup never contains the first Rollup segments of an
	// execution. The default is the same as in deployments.
	Rollup int64
	// Intercept runs before every AWS call.
	Intercept simaws.Interceptor
	// Clients, if set, creates the clients with which the hub's functions and its Provider call the cloud, such as
	// those of package simsdk.
	Clients func(c *simaws.Cloud) dynamo.Clients
	// Metrics is passed to package dispatch. The hub's name in metrics is "test".
	Metrics dispatch.Metrics
	// Interceptors are installed in all functions.
	Interceptors []perdure.Interceptor
	// Tasks records the tasks that turns schedule and end, and CheckIdle compares it with the histories. The default is
	// nil.
	Tasks *TaskMonitor
	// Codecs are installed in all functions.
	Codecs []perdure.Codec
	// Bucket adds a bucket for large payloads.
	Bucket bool
	// Begins is called with the context of each activity before its code starts, if the hub has a Schedule.
	Begins func(ctx context.Context)
	// BeginsInline is called for each inline activity, with its input, before its code starts.
	BeginsInline func(ctx context.Context, input json.RawMessage)
	// InlineTimeout is passed to package dispatch.
	InlineTimeout time.Duration
	// Schedule, if set, determines the order of all calls.
	Schedule *Schedule
	// Ordered adds an Order, which runs concurrent calls in a fixed order. It requires a hub without a Schedule.
	Ordered bool
	// Sweep adds a Sweeper. It requires virtual time and a hub without a Schedule.
	Sweep bool
	// EndOnRedelivery ends an invocation when one of its messages is redelivered, as the timeout of a function does.
	// Otherwise the invocation continues, like one that was frozen.
	EndOnRedelivery bool
	// Faults observes the faults of user code that the functions report. It may be nil.
	Faults faults.Observer
	// Logger receives all logs. The default discards them.
	Logger *slog.Logger
	// InboxVisibility and WorkVisibility are the visibility timeouts of the inbox and the work queues. The defaults are
	// the values of the stack, 90 s and 15 minutes.
	InboxVisibility, WorkVisibility time.Duration
	// These options are passed to package dispatch.
	LeaseAfter, LockTimeout, LockRenewalBuffer, CancelPollInterval, CancellationGracePeriod time.Duration
	// MaxReceiveCount is the number of deliveries before a queue moves a message to its dead-letter queue. The default
	// is the value of the stack, 100.
	MaxReceiveCount int
	// InvocationLimit is the timeout of every function, and the deadline of the contexts of its invocations. The
	// default is no timeout.
	InvocationLimit time.Duration
	// On is a closed hub whose cloud and table the new hub uses. The new hub also uses the queues, unless NewQueues is
	// set, which is the prefix of the names of new queues. The functions of the closed hub do not run. Intercept,
	// Schedule and Ordered of the closed hub remain in effect.
	On        *Hub
	NewQueues string
	// SameGroup creates new queues, but uses the schedule group of the earlier hub, like a stack that is deployed
	// again.
	SameGroup bool
	// BuildID is the build ID of all functions. The default is "test".
	BuildID string
	// Timers selects how timers are held, as in dynamo.HubConfig. The default is the value of the stack,
	// dynamo.TimersSchedules.
	Timers string
}

func (o Options) withDefaults() Options {
	if o.Environments == 0 {
		o.Environments = 1
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.InboxVisibility == 0 {
		o.InboxVisibility = 90 * time.Second
	}
	if o.WorkVisibility == 0 {
		o.WorkVisibility = 15 * time.Minute
	}
	if o.MaxReceiveCount == 0 {
		o.MaxReceiveCount = 100
	}
	if o.Tasks != nil {
		o.Interceptors = append(slices.Clip(o.Interceptors), o.Tasks.Interceptor())
	}
	o.BuildID = cmp.Or(o.BuildID, buildID)
	if o.Timers == "" {
		o.Timers = dynamo.TimersSchedules
	}
	return o
}

// Hub is a task hub in memory. Drive it with Cloud.Step or Cloud.Serve, or with Scheduler.Run if it has a Schedule.
type Hub struct {
	environments

	Cloud    *simaws.Cloud
	Provider *dynamo.Provider
	Renewer  *dispatch.Renewer
	// Workers contains the environments of the worker functions, by queue.
	Workers map[string]*dispatch.Worker
	// Scheduler drives a hub with the option Schedule. It is nil on other hubs.
	Scheduler *Scheduler
	// Order runs the calls of a hub with the option Ordered one at a time. It is nil on other hubs.
	Order *Order
	// Sweeper runs the sweeps of a hub with the option Sweep. It is nil on other hubs.
	Sweeper *Sweeper

	options Options
	added   []string                 // work queues, by AddQueue
	retired []*dispatch.Orchestrator // of earlier builds
	holders holders
	life    context.Context //nolint:containedctx // ends all invocations at Close
	end     context.CancelFunc
}

// New creates a hub, with its functions mapped to their queues.
func New(o Options) (*Hub, error) {
	o = o.withDefaults()
	h := &Hub{options: o, Workers: map[string]*dispatch.Worker{}, holders: holders{by: map[string]*invocation{}}}
	h.life, h.end = context.WithCancel(context.Background())
	intercept := o.Intercept
	if o.Sweep {
		h.Sweeper = newSweeper(h)
		intercept = h.Sweeper.interceptor(intercept)
	}
	if o.Schedule != nil {
		h.Scheduler = newScheduler(*o.Schedule)
		intercept = h.Scheduler.interceptor(intercept)
	}
	if o.Ordered {
		h.Order = newOrder()
		intercept = h.Order.interceptor(intercept)
	}
	where := h.build(intercept)
	var err error
	clients := dynamo.Clients{
		Table: h.Cloud.Table, Queues: h.Cloud.Queues, Schedules: h.Cloud.Schedules, Bucket: h.Cloud.Bucket,
	}
	if o.Clients != nil {
		clients = o.Clients(h.Cloud)
	}
	h.Provider, err = dynamo.New(where, clients, dynamo.WithLogger(o.Logger),
		dynamoknobs.WithRollup(cmp.Or(o.Rollup, dynamoknobs.Rollup)))
	if err != nil {
		return nil, fmt.Errorf("simhub: %w", err)
	}
	if err := h.mapFunctions(where); err != nil {
		return nil, fmt.Errorf("simhub: %w", err)
	}
	if o.On == nil {
		if err := h.putKey(where.Table); err != nil {
			return nil, err
		}
	}
	if h.Sweeper != nil {
		if err := h.Sweeper.putMark(where.Table); err != nil {
			return nil, err
		}
	}
	if err := h.announce(h.life); err != nil {
		return nil, err
	}
	h.Cloud.ResetCounts()
	return h, nil
}

// build creates the cloud and the queues, or uses those of an earlier hub.
func (h *Hub) build(intercept simaws.Interceptor) dynamo.HubConfig {
	if on := h.options.On; on != nil {
		h.Cloud = on.Cloud
		h.Cloud.Unmap()
		if h.options.NewQueues == "" {
			where := on.Provider.Config()
			where.PayloadBucket = payloadBucket(&h.options)
			return where
		}
		return h.createQueues()
	}
	h.Cloud = simaws.New(simaws.WithTable(table()), simaws.WithInterceptor(intercept))
	if h.Scheduler != nil {
		h.Scheduler.cloud = h.Cloud
	}
	return h.createQueues()
}

// pkHub is the partition of the hub's own items.
const pkHub = "hub"

// putKey stores a fixed key for tokens, which would be random otherwise, so that a seed determines even the contents of
// messages.
func (h *Hub) putKey(table string) error {
	it := map[string]types.AttributeValue{
		"pk": &types.AttributeValueMemberS{Value: pkHub}, "sk": &types.AttributeValueMemberS{Value: "key#0000000001"},
		"secret": &types.AttributeValueMemberS{Value: base64.StdEncoding.EncodeToString(make([]byte, 32))},
	}
	if _, err := h.Cloud.Table.PutItem(h.life, &dynamodb.PutItemInput{TableName: &table, Item: it}); err != nil {
		return fmt.Errorf("simhub: %w", err)
	}
	return nil
}

// Close ends the contexts of all invocations and unwinds the warm instances.
func (h *Hub) Close() {
	h.end()
	if h.Scheduler != nil {
		h.Scheduler.end()
	}
	if h.Order != nil {
		h.Order.end()
	}
	for _, o := range slices.Concat(h.retired, h.Orchestrators) {
		o.Close()
	}
}

// QueryInstance runs a query in an orchestrator environment of the hub, like an invocation of the function. For fault
// injection, its calls count as those of a client.
func (h *Hub) QueryInstance(ctx context.Context, q provider.QueryRequest) (json.RawMessage, error) {
	return h.Environment(0).QueryInstance(ctx, q)
}

// table returns the table of the stack with its indexes.
func table() simaws.TableConfig {
	return simaws.TableConfig{
		Name: "perdure", PartitionKey: "pk", SortKey: "sk",
		Indexes: []simaws.Index{
			{
				Name: "byCreation", PartitionKey: "gs", SortKey: "created",
				Include: []string{
					"status", "name", "version", "execution", "number", "updated", "tags", "parent", "startAt",
					"customStatus",
				},
			},
			{Name: "byAttention", PartitionKey: "attention", SortKey: "updated", Include: []string{"blockedBy"}},
			{Name: "byDue", PartitionKey: "due", SortKey: "created", Include: []string{}},
		},
	}
}

func (h *Hub) createQueues() dynamo.HubConfig {
	where := dynamo.HubConfig{
		Name: hubName, Table: "perdure", WorkQueues: map[string]string{}, DeadLetters: map[string]string{},
	}
	where.PayloadBucket = payloadBucket(&h.options)
	where.InboxURL = h.createQueue(&where, provider.QueueInbox, ".fifo", h.options.InboxVisibility)
	where.TimersURL = h.createQueue(&where, provider.QueueTimers, "", time.Minute)
	for _, name := range h.workQueues() {
		h.createWorkQueue(&where, name)
	}
	h.addScheduling(&where)
	return where
}

func payloadBucket(o *Options) string {
	if o.Bucket {
		return PayloadBucket
	}
	return ""
}

// createQueue creates a queue with its dead letters.
func (h *Hub) createQueue(where *dynamo.HubConfig, name, suffix string, visibility time.Duration) (url string) {
	name, short := h.options.NewQueues+strings.TrimSuffix(name, suffix), name
	where.DeadLetters[short] = h.Cloud.Queues.Create(name+"-dead"+suffix, simaws.QueueConfig{})
	return h.Cloud.Queues.Create(name+suffix, simaws.QueueConfig{
		VisibilityTimeout: visibility, DeadLetterQueue: name + "-dead" + suffix,
		MaxReceiveCount: h.options.MaxReceiveCount, PerGroupDeduplication: suffix != "",
	})
}

// addScheduling adds the schedule group for timers that exceed the delay of a queue.
func (h *Hub) addScheduling(where *dynamo.HubConfig) {
	group := h.options.NewQueues + "perdure-" + where.Name
	if h.options.SameGroup {
		group = h.options.On.Provider.Config().ScheduleGroup
	} else {
		h.Cloud.Schedules.CreateGroup(group)
	}
	where.TimerMode = h.options.Timers
	where.ScheduleGroup, where.ScheduleRoleARN = group, "arn:aws:iam::000000000000:role/schedules"
	where.TimersARN = h.Cloud.Queues.ARN(where.TimersURL)
	where.TimersDeadLettersARN = h.Cloud.Queues.ARN(where.DeadLetters[provider.QueueTimers])
}

// createWorkQueue creates a work queue, its dead-letter queue, and its queue for exclusive keys.
func (h *Hub) createWorkQueue(where *dynamo.HubConfig, name string) {
	where.WorkQueues[name] = h.createQueue(where, name, "", h.options.WorkVisibility)
	if h.options.Exclusive {
		beside := history.ExclusiveQueue(name)
		where.WorkQueues[beside] = h.createQueue(where, beside, ".fifo", h.options.WorkVisibility)
	}
}

// served returns the queues that the workers of a work queue serve.
func (o Options) served(name string) []string {
	if o.Exclusive {
		return []string{name, history.ExclusiveQueue(name)}
	}
	return []string{name}
}

// workQueues returns the queues of the registered activities and the added queues.
func (h *Hub) workQueues() []string {
	queues := append([]string{perdure.DefaultQueue}, h.added...)
	seen := map[string]bool{}
	for _, name := range queues {
		seen[name] = true
	}
	code := (*registry.Registry)(h.options.Registry)
	for _, name := range code.Names().Activities {
		if a, ok := code.Activity(name); ok && !seen[a.Queue] {
			seen[a.Queue] = true
			queues = append(queues, a.Queue)
		}
	}
	return queues
}
