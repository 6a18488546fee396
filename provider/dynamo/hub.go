package dynamo

import (
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// Hub says where a task hub's table and queues are. Name, Table and InboxURL are always needed; the others by those who
// run turns (all), work (WorkQueues, DeadLetters), or keep time (all). The JSON is that of the hub's SSM parameter.
type Hub struct {
	Name        string            `json:"hub"`
	Table       string            `json:"table"`
	InboxURL    string            `json:"inboxUrl"`
	WorkQueues  map[string]string `json:"workQueues"`  // name to URL
	TimersURL   string            `json:"timersUrl"`   //
	DeadLetters map[string]string `json:"deadLetters"` // name to URL: provider.QueueInbox, provider.QueueTimers and each work queue's

	// What becomes of timers that a queue cannot delay for long enough: TimersSchedules or TimersHops, which is also what
	// "" means. The rest is needed by those who keep time with schedules.
	Timers               string `json:"timers"`
	ScheduleGroup        string `json:"scheduleGroup"`
	ScheduleRoleARN      string `json:"scheduleRoleArn"` // of the role that Scheduler sends with
	TimersARN            string `json:"timersArn"`
	TimersDeadLettersARN string `json:"timersDeadLettersArn"`
}

func (h Hub) validate() error {
	if err := missing([2]string{"hub", h.Name}, [2]string{"table", h.Table}, [2]string{"inboxUrl", h.InboxURL}); err != nil {
		return fmt.Errorf("dynamo: hub %q: %w", h.Name, err)
	}
	if h.Timers != "" && h.Timers != TimersSchedules && h.Timers != TimersHops {
		problem := fmt.Sprintf("is %q: neither %s nor %s", h.Timers, TimersSchedules, TimersHops)
		return fmt.Errorf("dynamo: hub %q: %w", h.Name, &provider.FieldError{Field: "timers", Problem: problem})
	}
	return nil
}

// missing is the error of the first of these names and values that is without a value.
func missing(fields ...[2]string) error {
	for _, f := range fields {
		if f[1] == "" {
			return &provider.FieldError{Field: f[0], Problem: "is missing"}
		}
	}
	return nil
}

// Clients are the AWS clients the provider calls: of SDK v2, or stand-ins with the same methods. What is worth repeating is repeated by the
// provider, so the SDK's own retries are switched off.
type Clients struct {
	Table  tableAPI
	Queues queueAPI
	// Schedules is needed by those who hold timers with schedules.
	Schedules scheduleAPI
}

// Option changes how a Provider works.
type Option func(*Provider)

// WithClock sets the clock that timestamps and delays are reckoned from. The default is time.Now.
func WithClock(now func() time.Time) Option { return func(p *Provider) { p.now = now } }

// WithLogger sets where the provider logs. The default is slog.Default().
func WithLogger(l *slog.Logger) Option { return func(p *Provider) { p.log = l } }

// WithLongestDelay sets how long a timer is delayed by a queue at most, from 1 s to SQS's 900 s, the default. It is for tests
// of long timers that have no time.
func WithLongestDelay(d time.Duration) Option { return func(p *Provider) { p.longestDelay = d } }

// WithScheduleLead sets how long before its timer is due a schedule fires. It is for tests, as WithLongestDelay is, and at least
// a second less. The default is 2 minutes.
func WithScheduleLead(d time.Duration) Option { return func(p *Provider) { p.lead = d } }

// Provider is provider.Provider on DynamoDB and SQS. It is safe for concurrent use and holds no state but caches, of the
// builds it has seen and of segments.
type Provider struct {
	hub       Hub
	table     tableAPI
	queues    queueAPI
	schedules scheduleAPI
	now       func() time.Time
	log       *slog.Logger
	builds    builds
	// visibilities are the queues' visibility timeouts, by URL, once they were asked for.
	visibilities sync.Map
	// scheduled are the work items of segments that were read for retries; sentRetries are the attempts that were sent.
	scheduled   *lru[map[int64]provider.WorkItem]
	sentRetries *lru[struct{}]
	// documents are segments that documents were read from.
	documents *lru[[]history.Event]

	longestDelay, lead time.Duration // of timers
	// caller is whose credentials the clients have.
	caller caller
	// large has a place for each that reads a large history.
	large chan struct{}
}

var _ provider.Provider = (*Provider)(nil)

// New makes a provider for a hub. It calls nothing.
func New(hub Hub, clients Clients, opts ...Option) (*Provider, error) {
	if err := hub.validate(); err != nil {
		return nil, err
	}
	clients = askOnce(clients)
	p := &Provider{
		hub: hub, table: clients.Table, queues: clients.Queues, schedules: clients.Schedules, log: slog.Default(),
		longestDelay: maxDelay, lead: scheduleLead, large: make(chan struct{}, largeAtOnce), caller: caller{turn: make(chan struct{}, 1)},
		scheduled: newLRU[map[int64]provider.WorkItem](scheduledBytes), sentRetries: newLRU[struct{}](sentRetries), documents: newLRU[[]history.Event](documentCache),
	}
	p.now = func() time.Time { return time.Now().Round(0) } //nolint:forbidigo // the default clock, without the monotonic reading that a frozen Lambda stops
	for _, opt := range opts {
		opt(p)
	}
	if err := p.checkTiming(); err != nil {
		return nil, fmt.Errorf("dynamo: hub %q: %w", hub.Name, err)
	}
	return p, nil
}

// Hub returns where the provider's table and queues are.
func (p *Provider) Hub() Hub { return p.hub }
