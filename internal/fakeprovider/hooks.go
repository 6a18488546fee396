package fakeprovider

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/fakeprovider/letters"
	"github.com/perdure/perdure/internal/memhub"
	"github.com/perdure/perdure/provider"
)

// ForeignToken is the prefix of the completion tokens of another hub.
const ForeignToken = "c1.foreign"

// Provider is a hub for tests of clients, which do not need turns. Tests add events to an instance with Append, and set
// other state with the other methods. The default queue has a worker, and every token of a work item is valid.
type Provider struct {
	*memhub.Hub

	now func() time.Time

	mu        sync.Mutex
	failure   error
	reads     int // calls of ReadInstance
	sent      []provider.Message
	damaged   map[string]error             // by execution ID
	workers   map[string]time.Time         // last reports by queue, or nil before SetWorkers
	renewals  map[string]provider.Renewal  // by receipt handle
	workItems map[string]provider.WorkItem // by completion token
	run       func(provider.QueryRequest) (json.RawMessage, error)
	update    func(provider.Message) *provider.UpdateResult
}

// New returns an empty hub whose build has these orchestrations. now is its clock.
func New(now func() time.Time, orchestrations ...string) *Provider {
	b := provider.Build{ID: "test", Orchestrations: map[string][]string{}}
	for _, name := range orchestrations {
		b.Orchestrations[name] = []string{"1.0.0"}
	}
	p := &Provider{
		Hub: memhub.New(now, time.Minute), now: now, damaged: map[string]error{},
		renewals: map[string]provider.Renewal{}, workItems: map[string]provider.WorkItem{},
	}
	_ = p.PutBuild(context.Background(), b) // the hub fails only after FailWith
	return p
}

// FailWith makes every later call fail with err, until FailWith(nil).
func (p *Provider) FailWith(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failure = err
	p.Fail(err)
}

// SetQueryFunc sets the function that runs queries.
func (p *Provider) SetQueryFunc(run func(provider.QueryRequest) (json.RawMessage, error)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.run = run
}

// QueryInstance implements provider.Querier. It returns provider.ErrQueriesUnsupported unless SetQueryFunc was called.
func (p *Provider) QueryInstance(_ context.Context, q provider.QueryRequest) (json.RawMessage, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.failure != nil:
		return nil, p.failure
	case p.run == nil:
		return nil, provider.ErrQueriesUnsupported
	}
	return p.run(q)
}

// UpdateWith sets the function that handles updates when they are sent. A result that is not nil is stored for
// ReadUpdate.
func (p *Provider) UpdateWith(take func(provider.Message) *provider.UpdateResult) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.update = take
}

// EnqueueForOrchestrator implements provider.Instances. It stores the results of UpdateWith.
func (p *Provider) EnqueueForOrchestrator(ctx context.Context, ms ...provider.Message) error {
	if err := p.Hub.EnqueueForOrchestrator(ctx, ms...); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sent = append(p.sent, ms...)
	var results []provider.UpdateResult
	for i := range ms {
		m := &ms[i]
		if p.update == nil || m.Kind != provider.MessageUpdate {
			continue
		}
		if r := p.update(*m); r != nil {
			r.InstanceID, r.UpdateID, r.Name, r.StartID = m.InstanceID, m.EventID, m.Name, m.StartID
			results = append(results, *r)
		}
	}
	return p.PutUpdateResults(ctx, results...)
}

// Reads returns the number of calls of ReadInstance.
func (p *Provider) Reads() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.reads
}

// ReadInstance implements provider.Instances.
func (p *Provider) ReadInstance(ctx context.Context, instanceID string) (provider.Instance, error) {
	p.mu.Lock()
	p.reads++
	p.mu.Unlock()
	return p.Hub.ReadInstance(ctx, instanceID)
}

// Sent returns the messages that EnqueueForOrchestrator has sent.
func (p *Provider) Sent() []provider.Message {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.sent)
}

// Damage makes every read of an execution's history fail with err.
func (p *Provider) Damage(executionID string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.damaged[executionID] = err
}

// ReadHistory implements provider.Instances.
func (p *Provider) ReadHistory(
	ctx context.Context, instanceID, executionID string, after int64,
) iter.Seq2[history.Event, error] {
	return func(yield func(history.Event, error) bool) {
		p.mu.Lock()
		err := cmp.Or(p.failure, p.damaged[executionID])
		p.mu.Unlock()
		if err != nil {
			yield(history.Event{}, err)
			return
		}
		p.Hub.ReadHistory(ctx, instanceID, executionID, after)(yield)
	}
}

// SetWorkers sets the times at which workers last reported, by queue. By default, the default queue has a worker that
// has just reported.
func (p *Provider) SetWorkers(seen map[string]time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.workers = seen
}

// ReadWorkers implements provider.Monitoring.
func (p *Provider) ReadWorkers(ctx context.Context) (map[string]provider.WorkerReport, error) {
	reports, err := p.Hub.ReadWorkers(ctx)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.workers == nil && len(reports) == 0 {
		reports[memhub.DefaultQueue] = provider.WorkerReport{Queue: memhub.DefaultQueue, SeenAt: p.now()}
	}
	for queue, at := range p.workers {
		reports[queue] = provider.WorkerReport{Queue: queue, SeenAt: at}
	}
	return reports, nil
}

// SetCompletionToken makes token the completion token of an activity.
func (p *Provider) SetCompletionToken(token string, w *provider.WorkItem) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.workItems[token] = *w
}

// VerifyCompletionToken implements provider.Completions.
func (p *Provider) VerifyCompletionToken(ctx context.Context, token string) (provider.WorkItem, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w, known := p.workItems[token]
	switch {
	case p.failure != nil:
		return provider.WorkItem{}, p.failure
	case known:
		return w, nil
	case strings.HasPrefix(token, ForeignToken):
		return provider.WorkItem{}, &provider.ForeignTokenError{Hub: "foreign", Own: memhub.Name}
	default:
		return p.Hub.VerifyCompletionToken(ctx, token)
	}
}

// ReadWorkItem implements provider.Completions.
func (p *Provider) ReadWorkItem(
	ctx context.Context, instanceID, executionID string, segment, activityID int64,
) (provider.WorkItem, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.workItems {
		if p.failure == nil && w.ExecutionID == executionID && w.ActivityID == activityID {
			return w, nil
		}
	}
	return p.Hub.ReadWorkItem(ctx, instanceID, executionID, segment, activityID)
}

// VerifyWorkItemToken implements provider.Completions.
func (p *Provider) VerifyWorkItemToken(ctx context.Context, token string) (provider.WorkItem, error) {
	w, err := p.Hub.VerifyWorkItemToken(ctx, token)
	if errors.Is(err, provider.ErrInvalidToken) && strings.HasPrefix(token, "w1") {
		return provider.WorkItem{V: provider.WireVersion, Queue: memhub.DefaultQueue, ExecutionID: token}, nil
	}
	return w, err
}

// SetRenewal sets the result of renewals of a receipt handle. If r.Until is set to any value, the lock is extended from
// the time of the renewal.
func (p *Provider) SetRenewal(receiptHandle string, r provider.Renewal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.renewals[receiptHandle] = r
}

// RenewWorkItemLocks implements provider.WorkItems.
func (p *Provider) RenewWorkItemLocks(
	ctx context.Context, name string, lock time.Duration, items ...provider.LockedWorkItem,
) ([]provider.Renewal, error) {
	renewals, err := p.Hub.RenewWorkItemLocks(ctx, name, lock, items...)
	if err != nil {
		return renewals, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range items {
		r, set := p.renewals[items[i].Record.ReceiptHandle]
		if !set {
			continue
		}
		if !r.Until.IsZero() {
			r.Until = p.now().Add(lock)
		}
		renewals[i] = r
	}
	return renewals, nil
}

// Letters holds dead letters in memory. A hub can use it besides its Provider.
type Letters = letters.Letters

// NewLetters returns Letters with these queues, which are empty.
func NewLetters(now func() time.Time, queues ...string) *Letters { return letters.New(now, queues...) }
