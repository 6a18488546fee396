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
	"github.com/perdure/perdure/internal/registry"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo"
)

// Options says what a hub is made of. Registry is required.
type Options struct {
	Registry *perdure.Registry
	// Environments is how many orchestrator environments take turns, each with its own warm orchestrations. Default 1.
	Environments int
	// Concurrency bounds the invocations of each function at once; 0 does not.
	Concurrency int
	// BatchSize is that of every mapping; default 10. With 1 nothing runs side by side within an invocation.
	BatchSize int
	// CacheBytes is as in the options of package dispatch.
	CacheBytes int
	// TurnLimit is as in the options of package dispatch.
	TurnLimit time.Duration
	// Exclusive is that each work queue has the FIFO queue beside it that exclusive keys need.
	Exclusive bool
	// Reports is that workers tell the hub that they are there, as the functions do: a call when they start, and one every five minutes in which they
	// are at work.
	Reports bool
	// Jitter leaves retry policies theirs; without it, retries are exact.
	Jitter bool
	// Retention is as in the options of package dispatch.
	Retention time.Duration
	// MaxAttempts and SendAnewAfter are as in the options of package dispatch.
	MaxAttempts, SendAnewAfter int
	// Rollup is how many segments a rollup holds at least, and so many are never in one. Default as everywhere.
	Rollup int64
	// Intercept stands before every AWS call.
	Intercept simaws.Interceptor
	// Clients, if set, makes the clients that the hub's functions and its Provider call the cloud with, such as those of package simsdk.
	Clients func(c *simaws.Cloud) dynamo.Clients
	// Metrics is as in the options of package dispatch; the hub is called "test" in them.
	Metrics dispatch.Metrics
	// Interceptors are those of all functions.
	Interceptors []perdure.Interceptor
	// Tasks hears what turns begin and end, and CheckRest holds that against the histories. Default: nobody does.
	Tasks *TaskWitness
	// Codecs are those of all functions.
	Codecs []perdure.Codec
	// Bucket is that the hub has a bucket for large payloads.
	Bucket bool
	// Begins, on a hub with a schedule, is called with the context of each activity whose code is about to begin.
	Begins func(ctx context.Context)
	// BeginsInline is the same for each inline activity that an orchestrator runs, with its input.
	BeginsInline func(ctx context.Context, input json.RawMessage)
	// InlineTimeout is as in the options of package dispatch.
	InlineTimeout time.Duration
	// Schedule, if there is one, decides on the order of all that happens.
	Schedule *Schedule
	// Ordered is that what happens side by side is put in order by Hub.Order, for a hub without a schedule.
	Ordered bool
	// Sweep gives the hub a Sweeper, for a hub in virtual time without a schedule.
	Sweep bool
	// Mortal is that an invocation is over when one of its messages is delivered again, as a function's timeout sees to it. Otherwise
	// it goes on, as one that was frozen.
	Mortal bool
	// Logger is where everything logs. Default: nowhere.
	Logger *slog.Logger
	// Visibility is that of the inbox and of the work queues. Defaults: 90 s and 15 minutes, as in the stack.
	InboxVisibility, WorkVisibility time.Duration
	// LockAfter, LockTimeout, LockRenewalBuffer, CancelPollInterval and CancellationGracePeriod are as in the options of package dispatch.
	LockAfter, LockTimeout, LockRenewalBuffer, CancelPollInterval, CancellationGracePeriod time.Duration
	// MaxReceiveCount is how often a queue delivers a message before it moves it to its dead letters. Default 100, as in the stack.
	MaxReceiveCount int
	// InvocationLimit is the timeout of every function: the deadline of its invocations' contexts. Default: none.
	InvocationLimit time.Duration
	// On is an earlier hub, closed by now, whose cloud and table this one takes over, and its queues unless NewQueues begins the
	// names of others. Its functions run no more. Intercept, Schedule and Ordered are then those of the earlier hub.
	On        *Hub
	NewQueues string
	// SameGroup: new queues beside the schedule group of the earlier hub, as those of a stack that is deployed anew.
	SameGroup bool
	// BuildID is that of all functions. Default: "test".
	BuildID string
	// Timers is how long timers are held, as in dynamo.HubConfig. Default: dynamo.TimersSchedules, as in the stack.
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

// Hub is a task hub in memory. Drive it by Cloud.Step or Cloud.Serve, or by Scheduler.Run when it has a schedule.
type Hub struct {
	environments

	Cloud      *simaws.Cloud
	Provider   *dynamo.Provider
	Timekeeper *dispatch.Renewer
	// Workers are the worker functions' environments, by queue.
	Workers map[string]*dispatch.Worker
	// Scheduler drives a hub that has a schedule; nil on others.
	Scheduler *Scheduler
	// Order lets the calls of a hub go one by one that is Ordered; nil on others.
	Order *Order
	// Sweeper runs the watch of a hub with the option Sweep; nil on others.
	Sweeper *Sweeper

	options Options
	added   []string                 // work queues, by AddQueue
	retired []*dispatch.Orchestrator // of builds before this one
	holders holders
	life    context.Context //nolint:containedctx // what all invocations end with, at Close
	end     context.CancelFunc
}

// New makes a hub with its functions mapped to their queues.
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
	clients := dynamo.Clients{Table: h.Cloud.Table, Queues: h.Cloud.Queues, Schedules: h.Cloud.Schedules, Bucket: h.Cloud.Bucket}
	if o.Clients != nil {
		clients = o.Clients(h.Cloud)
	}
	h.Provider, err = dynamo.New(where, clients, dynamo.WithLogger(o.Logger), dynamoknobs.WithRollup(cmp.Or(o.Rollup, dynamoknobs.Rollup)))
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

// build makes the cloud and the queues, or takes over those of an earlier hub.
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

// putKey puts the key of tokens into the table that the hub would make by chance: a seed is one order, down to what messages hold.
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

// Close ends the context of all invocations and unwinds the warm orchestrations.
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

// QueryInstance has an orchestrator environment of the hub answer a query, as an invocation of the function does. Its calls are a client's to what injects faults.
func (h *Hub) QueryInstance(ctx context.Context, q provider.QueryRequest) (json.RawMessage, error) {
	return h.Environment(0).QueryInstance(ctx, q)
}

// table is the stack's, with its indexes.
func table() simaws.TableConfig {
	return simaws.TableConfig{
		Name: "perdure", PartitionKey: "pk", SortKey: "sk",
		Indexes: []simaws.Index{
			{Name: "byCreation", PartitionKey: "gs", SortKey: "created", Include: []string{"status", "name", "version", "execution", "number", "updated", "tags", "parent", "startAt", "customStatus"}},
			{Name: "byAttention", PartitionKey: "attention", SortKey: "updated", Include: []string{"blockedBy"}},
			{Name: "byDue", PartitionKey: "due", SortKey: "created", Include: []string{}},
		},
	}
}

func (h *Hub) createQueues() dynamo.HubConfig {
	where := dynamo.HubConfig{Name: hubName, Table: "perdure", WorkQueues: map[string]string{}, DeadLetters: map[string]string{}}
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
		VisibilityTimeout: visibility, DeadLetterQueue: name + "-dead" + suffix, MaxReceiveCount: h.options.MaxReceiveCount, PerGroupDeduplication: suffix != "",
	})
}

// addScheduling is what timers need that a queue's delay cannot hold.
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

// createWorkQueue creates a work queue, with its dead letters, and what is beside it.
func (h *Hub) createWorkQueue(where *dynamo.HubConfig, name string) {
	where.WorkQueues[name] = h.createQueue(where, name, "", h.options.WorkVisibility)
	if h.options.Exclusive {
		beside := history.ExclusiveQueue(name)
		where.WorkQueues[beside] = h.createQueue(where, beside, ".fifo", h.options.WorkVisibility)
	}
}

// served are the queues that the workers of a work queue serve.
func (o Options) served(name string) []string {
	if o.Exclusive {
		return []string{name, history.ExclusiveQueue(name)}
	}
	return []string{name}
}

// workQueues are those that the registered activities are on, and those that were added.
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
