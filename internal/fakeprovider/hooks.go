package fakeprovider

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/fakeprovider/letters"
	"github.com/perdure/perdure/provider"
)

// ForeignToken is the prefix of the completion tokens of another hub.
const ForeignToken = "c1.foreign"

// hooks is what tests of clients set.
type hooks struct {
	failure      error
	reads        int
	sentMessages []provider.Message
	damaged      map[string]error             // by execution ID
	locks        map[string]provider.Renewal  // by receipt handle
	handed       map[string]provider.WorkItem // by completion token
	// forClients is true for a hub of New: the default queue has a worker, every token of a work item is valid, and
	// references need not have the right segment.
	forClients bool
	answer     func(provider.QueryRequest) (json.RawMessage, error)
	update     func(provider.Message) *provider.UpdateResult
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

// answerUpdate stores the result of an update that is sent.
func (p *Provider) answerUpdate(m *provider.Message) {
	if p.update == nil || m.Kind != provider.MessageUpdate {
		return
	}
	if r := p.update(*m); r != nil {
		r.InstanceID, r.UpdateID, r.Name, r.StartID = m.InstanceID, m.EventID, m.Name, m.StartID
		p.updates[updateKey(r.InstanceID, r.UpdateID)] = *r
	}
}

// Reads returns the number of calls of ReadInstance.
func (p *Provider) Reads() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.reads
}

// Sent returns the messages that EnqueueForOrchestrator has sent.
func (p *Provider) Sent() []provider.Message {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.sentMessages)
}

// Damage makes every read of an execution's history fail with err.
func (p *Provider) Damage(executionID string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.damaged == nil {
		p.damaged = map[string]error{}
	}
	p.damaged[executionID] = err
}

// Append adds events to the history of an instance, sets their IDs, and updates its status accordingly. An
// OrchestrationContinuedAsNew starts the next execution with the event's input, and a generated execution ID if the
// event has none. Later events belong to that execution. Append panics if the instance does not exist.
func (p *Provider) Append(instanceID string, events ...history.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	in := p.mustInstance(instanceID)
	for _, e := range events {
		p.append(in, e)
	}
}

func (p *Provider) append(in *instance, e history.Event) {
	x := in.current()
	last := x.segments[len(x.segments)-1]
	e.ID = last.Events[len(last.Events)-1].ID + 1
	in.UpdatedAt, in.Status, in.Diagnosis = e.Time, statusAfter(in.Status, e.Kind), nil
	switch {
	case e.Kind == history.ExecutionSuspended:
		in.Paused = &history.Pause{By: e.RequestedBy, Message: e.Message, At: e.Time}
	case in.Status != provider.StatusPaused:
		in.Paused = nil
	}
	if in.Status == provider.StatusBlocked {
		in.Diagnosis = e.Error
	}
	if e.Kind == history.TurnStarted {
		in.Version = e.Version
	}
	cancels := provider.CancelsOf([]history.Event{e})
	if e.Kind.Terminal() {
		cancels = append(cancels, provider.ActivityCancel{All: true, Reason: "failed"})
	}
	if e.Kind == history.OrchestrationContinuedAsNew {
		next := in.Instance
		next.ExecutionID = cmp.Or(e.ExecutionID, p.nextExecutionID())
		next.ExecutionNumber, next.CreatedAt, next.RequestedBy = in.ExecutionNumber+1, e.Time, ""
		p.addExecution(in, next.ExecutionID, x.ExecutionID, provider.Segment{Events: firstEvents(&next, e.Input, "")})
		e.ExecutionID, e.Input = in.ExecutionID, nil
	}
	x.add(provider.Segment{Sequence: last.Sequence + 1, Events: []history.Event{e}}, cancels)
}

// statusAfter returns the status of an instance after an event. An instance that is cancelling stays so until it ends.
func statusAfter(before provider.RuntimeStatus, k history.Kind) provider.RuntimeStatus {
	s, ended := history.StatusAfter(k)
	switch {
	case ended:
		return s
	case k == history.ExecutionSuspended, before == provider.StatusPaused && k == history.InputsParked:
		return provider.StatusPaused
	case k == history.InputsParked:
		return provider.StatusBlocked
	case k == history.CancelRequested, before == provider.StatusCancelling && !k.Terminal():
		return provider.StatusCancelling
	default:
		return provider.StatusRunning
	}
}

// SetParent makes an instance the child of another.
func (p *Provider) SetParent(instanceID string, parent history.Parent) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mustInstance(instanceID).Parent = &parent
}

func (p *Provider) mustInstance(instanceID string) *instance {
	in, err := p.instance(instanceID)
	if err != nil {
		panic("fakeprovider: no instance " + instanceID)
	}
	return in
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

// Work sets the times at which workers last reported, by queue. By default, the default queue of a hub of New has a
// worker that has just reported.
func (p *Provider) Work(seen map[string]time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.workers = map[string]provider.WorkerReport{}
	for queue, at := range seen {
		p.workers[queue] = provider.WorkerReport{Queue: queue, SeenAt: at}
	}
}

// Hand makes token the completion token of an activity.
func (p *Provider) Hand(token string, w *provider.WorkItem) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.handed == nil {
		p.handed = map[string]provider.WorkItem{}
	}
	p.handed[token] = *w
}

// Lock sets the result of renewals of a receipt handle. If r.Until is set, the lock is extended from the time of the
// renewal, whatever the value is.
func (p *Provider) Lock(receiptHandle string, r provider.Renewal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.locks == nil {
		p.locks = map[string]provider.Renewal{}
	}
	p.locks[receiptHandle] = r
}

// Letters holds dead letters in memory. A hub can use it besides its Provider.
type Letters = letters.Letters

// NewLetters returns Letters with these queues, which are empty.
func NewLetters(now func() time.Time, queues ...string) *Letters { return letters.New(now, queues...) }
