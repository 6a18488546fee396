package fakeprovider

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/fakeprovider/letters"
	"github.com/perdure/perdure/provider"
)

// ForeignToken is the prefix of the completion tokens of another hub.
const ForeignToken = "c1.foreign"

// Provider is a hub for tests of clients, which do not need turns: they add events to an instance with Append, and set
// other state with the other methods. The default queue has a worker, and every token of a work item is valid.
type Provider struct {
	*Hub

	sent    []provider.Message
	damaged map[string]error             // by execution ID
	locks   map[string]provider.Renewal  // by receipt handle
	handed  map[string]provider.WorkItem // by completion token
	answer  func(provider.QueryRequest) (json.RawMessage, error)
	update  func(provider.Message) *provider.UpdateResult
}

// New returns an empty hub whose build has these orchestrations. now is its clock.
func New(now func() time.Time, orchestrations ...string) *Provider {
	b := provider.Build{ID: "test", Orchestrations: map[string][]string{}}
	for _, name := range orchestrations {
		b.Orchestrations[name] = []string{"1.0.0"}
	}
	p := &Provider{
		Hub: NewHub(now, time.Minute), damaged: map[string]error{}, locks: map[string]provider.Renewal{},
		handed: map[string]provider.WorkItem{},
	}
	p.builds.reported, p.histories.anySegment = []provider.Build{b}, true
	return p
}

// FailWith makes every later call fail with err, until FailWith(nil).
func (p *Provider) FailWith(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failure = err
}

// AnswerWith sets the function that runs queries.
func (p *Provider) AnswerWith(answer func(provider.QueryRequest) (json.RawMessage, error)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answer = answer
}

// QueryInstance implements provider.Querier. It returns provider.ErrQueriesUnsupported unless AnswerWith was called.
func (p *Provider) QueryInstance(_ context.Context, q provider.QueryRequest) (json.RawMessage, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.failure != nil:
		return nil, p.failure
	case p.answer == nil:
		return nil, provider.ErrQueriesUnsupported
	}
	return p.answer(q)
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
	for i := range ms {
		m := &ms[i]
		if p.update == nil || m.Kind != provider.MessageUpdate {
			continue
		}
		if r := p.update(*m); r != nil {
			r.InstanceID, r.UpdateID, r.Name, r.StartID = m.InstanceID, m.EventID, m.Name, m.StartID
			p.results[updateKey(r.InstanceID, r.UpdateID)] = *r
		}
	}
	return nil
}

// Reads returns the number of calls of ReadInstance.
func (p *Provider) Reads() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.instances.reads
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
		err := p.begin(ctx)
		if err == nil {
			err = p.damaged[executionID]
			p.mu.Unlock()
		}
		if err != nil {
			yield(history.Event{}, err)
			return
		}
		p.Hub.ReadHistory(ctx, instanceID, executionID, after)(yield)
	}
}

// Leave adds activity records to an execution.
func (p *Provider) Leave(executionID string, records ...provider.ActivityRecord) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range records {
		p.factsOf(executionID).record(records[i].ActivityID).ActivityRecord = records[i]
	}
}

// Retry sets the current attempt of an activity of an execution.
func (p *Provider) Retry(executionID string, r provider.ActivityRetry) {
	p.Retries(executionID, []provider.ActivityRetry{r})
}

// Retries sets the current attempts of activities of an execution.
func (p *Provider) Retries(executionID string, rs []provider.ActivityRetry) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range rs {
		p.factsOf(executionID).retries[rs[i].ActivityID] = rs[i]
	}
}

// Work sets the times at which workers last reported, by queue. By default, the default queue has a worker that has
// just reported.
func (p *Provider) Work(seen map[string]time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.workers = map[string]provider.WorkerReport{}
	for queue, at := range seen {
		p.workers[queue] = provider.WorkerReport{Queue: queue, SeenAt: at}
	}
}

// ReadWorkers implements provider.Monitoring.
func (p *Provider) ReadWorkers(ctx context.Context) (map[string]provider.WorkerReport, error) {
	reports, err := p.Hub.ReadWorkers(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil && p.workers == nil {
		reports[DefaultQueue] = provider.WorkerReport{Queue: DefaultQueue, SeenAt: p.now()}
	}
	return reports, err
}

// Hand makes token the completion token of an activity.
func (p *Provider) Hand(token string, w *provider.WorkItem) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.handed[token] = *w
}

// VerifyCompletionToken implements provider.Completions.
func (p *Provider) VerifyCompletionToken(ctx context.Context, token string) (provider.WorkItem, error) {
	if err := p.begin(ctx); err != nil {
		return provider.WorkItem{}, err
	}
	w, handed := p.handed[token]
	p.mu.Unlock()
	switch {
	case handed:
		return w, nil
	case strings.HasPrefix(token, ForeignToken):
		return provider.WorkItem{}, &provider.ForeignTokenError{Hub: "foreign", Own: hubName}
	default:
		return p.Hub.VerifyCompletionToken(ctx, token)
	}
}

// ReadWorkItem implements provider.Completions.
func (p *Provider) ReadWorkItem(
	ctx context.Context, instanceID, executionID string, segment, activityID int64,
) (provider.WorkItem, error) {
	if err := p.begin(ctx); err != nil {
		return provider.WorkItem{}, err
	}
	for _, w := range p.handed {
		if w.ExecutionID == executionID && w.ActivityID == activityID {
			p.mu.Unlock()
			return w, nil
		}
	}
	p.mu.Unlock()
	return p.Hub.ReadWorkItem(ctx, instanceID, executionID, segment, activityID)
}

// VerifyWorkItemToken implements provider.Completions.
func (p *Provider) VerifyWorkItemToken(ctx context.Context, token string) (provider.WorkItem, error) {
	w, err := p.Hub.VerifyWorkItemToken(ctx, token)
	if errors.Is(err, provider.ErrInvalidToken) && strings.HasPrefix(token, "w1") {
		return provider.WorkItem{V: provider.WireVersion, Queue: DefaultQueue, ExecutionID: token}, nil
	}
	return w, err
}

// Lock sets the result of renewals of a receipt handle. If r.Until is set, the lock is extended from the time of the
// renewal, whatever the value is.
func (p *Provider) Lock(receiptHandle string, r provider.Renewal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.locks[receiptHandle] = r
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
		r, set := p.locks[items[i].Record.ReceiptHandle]
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
