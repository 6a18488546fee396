package dynamo

import (
	"fmt"
	"log/slog"
	"time"

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
}

func (h Hub) validate() error {
	for _, f := range []struct{ name, value string }{{"hub", h.Name}, {"table", h.Table}, {"inboxUrl", h.InboxURL}} {
		if f.value == "" {
			return fmt.Errorf("dynamo: hub %q: %w", h.Name, &provider.FieldError{Field: f.name, Problem: "is missing"})
		}
	}
	return nil
}

// Clients are the AWS clients the provider calls: of SDK v2, or stand-ins with the same methods.
type Clients struct {
	Table  tableAPI
	Queues queueAPI
}

// Option changes how a Provider works.
type Option func(*Provider)

// WithClock sets the clock that timestamps and delays are reckoned from. The default is time.Now.
func WithClock(now func() time.Time) Option { return func(p *Provider) { p.now = now } }

// WithLogger sets where the provider logs. The default is slog.Default().
func WithLogger(l *slog.Logger) Option { return func(p *Provider) { p.log = l } }

// Provider is provider.Provider on DynamoDB and SQS. It is safe for concurrent use and holds no state but a cache of the
// builds it has seen.
type Provider struct {
	hub    Hub
	table  tableAPI
	queues queueAPI
	now    func() time.Time
	log    *slog.Logger
	builds builds
}

var _ provider.Provider = (*Provider)(nil)

// New makes a provider for a hub. It calls nothing.
func New(hub Hub, clients Clients, opts ...Option) (*Provider, error) {
	if err := hub.validate(); err != nil {
		return nil, err
	}
	p := &Provider{hub: hub, table: clients.Table, queues: clients.Queues, log: slog.Default()}
	p.now = func() time.Time { return time.Now().Round(0) } //nolint:forbidigo // the default clock, without the monotonic reading that a frozen Lambda stops
	for _, opt := range opts {
		opt(p)
	}
	return p, nil
}

// Hub returns where the provider's table and queues are.
func (p *Provider) Hub() Hub { return p.hub }
