package fakeprovider

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/outputs"
	"github.com/perdure/perdure/provider/wire"
)

// interruptionTime is the time for which ReadInterruption returns a request.
const interruptionTime = time.Hour

// EnqueueForOrchestrator implements provider.Instances.
func (p *Provider) EnqueueForOrchestrator(ctx context.Context, ms ...provider.Message) error {
	if err := p.begin(ctx); err != nil {
		return err
	}
	defer p.mu.Unlock()
	for i := range ms {
		if n := len(encode(&ms[i])); n > maxBody {
			return fmt.Errorf("fake: %s message for instance %q: %d bytes exceed the limit of %d bytes", ms[i].Kind,
				ms[i].InstanceID, n, maxBody)
		}
	}
	p.sentMessages = append(p.sentMessages, ms...)
	p.sendMessages(ms...)
	for i := range ms {
		if ms[i].Interrupts() {
			p.identity(ms[i].InstanceID).interruptedAt = p.time()
		}
		p.answerUpdate(&ms[i])
	}
	return nil
}

// sendMessages sends messages to the inbox, in the group of their instance.
func (p *Provider) sendMessages(ms ...provider.Message) {
	for _, m := range ms {
		m.V, m.Hub = provider.WireVersion, hubName
		body, dedup := encode(&m), ""
		if isRepeatable(&m) {
			dedup = body
		}
		p.queues[provider.QueueInbox].send(p.now(), p.now(), m.InstanceID, body, dedup)
	}
}

// isRepeatable reports whether an equal message is a repetition. A wake, a termination and a client's cancel belong to
// their moment.
func isRepeatable(m *provider.Message) bool {
	switch m.Kind {
	case provider.MessageWake, provider.MessageTerminate, provider.MessageCancelActivity:
		return m.Redrive != nil
	case provider.MessageCancel:
		return m.Parent != nil || m.Redrive != nil
	case provider.MessageEventRaised, provider.MessageExecutionSuspended, provider.MessageExecutionResumed:
		return m.EventID != "" || m.Redrive != nil
	default:
		return true
	}
}

// checkHub returns an error for the name of another hub. Otherwise it clears the name.
func checkHub(name *string) error {
	if *name != "" && *name != hubName {
		return fmt.Errorf("fake: %w",
			&provider.FieldError{Field: "hub", Problem: fmt.Sprintf("is %q, but this hub is %q", *name, hubName)})
	}
	*name = ""
	return nil
}

// DecodeOrchestrationItems implements provider.Orchestrations. A record in the group of another instance is unreadable,
// because its position cannot be compared with the watermark.
func (p *Provider) DecodeOrchestrationItems(
	records []provider.Record,
) (items []*provider.OrchestrationItem, unreadable []provider.Unreadable) {
	byInstance := map[string]*provider.OrchestrationItem{}
	for _, r := range records {
		m, err := wire.DecodeMessage(r.Body)
		if err == nil && r.Group != m.InstanceID {
			err = fmt.Errorf("fake: inbox message: %w", &provider.FieldError{
				Field: "instanceId", Problem: fmt.Sprintf("%q is not the message group %q", m.InstanceID, r.Group),
			})
		}
		if err == nil {
			err = checkHub(&m.Hub)
		}
		if err != nil {
			unreadable = append(unreadable, provider.Unreadable{Record: r, Err: err})
			continue
		}
		it := byInstance[m.InstanceID]
		if it == nil {
			it = &provider.OrchestrationItem{InstanceID: m.InstanceID}
			byInstance[m.InstanceID] = it
			items = append(items, it)
		}
		it.Messages = append(it.Messages, provider.InboxMessage{
			Message: m, Position: provider.Position{Inbox: hubName, Sequence: r.Sequence}, Record: r,
		})
	}
	return items, unreadable
}

// RejectStart implements provider.Rejections.
func (p *Provider) RejectStart(ctx context.Context, m *provider.InboxMessage) error {
	if err := p.begin(ctx); err != nil {
		return err
	}
	defer p.mu.Unlock()
	id := p.identity(m.InstanceID)
	id.rejected[m.StartID] = true
	if m.Parent == nil {
		return nil
	}
	taken := provider.NewAlreadyExistsError(m.InstanceID, &provider.Instance{}, provider.ErrAlreadyExists)
	if id.instance != nil {
		taken = provider.NewAlreadyExistsError(m.InstanceID, &id.instance.Instance, provider.ErrAlreadyExists)
	}
	f := &history.Failure{Type: history.TypeAlreadyExists, NonRetryable: true, Message: taken.Error()}
	if id.spent[m.StartID] { // it has run, and its outcome may be lost
		f = &history.Failure{Type: history.TypeOutcomeLost, NonRetryable: true}
		f.Message = fmt.Sprintf("instance %q was purged before its outcome arrived", m.InstanceID)
	}
	p.sendChildOutcome(m, f)
	return nil
}

func (p *Provider) sendChildOutcome(m *provider.InboxMessage, f *history.Failure) {
	answer := outputs.ChildOutcome(m.InstanceID, m.Parent)
	answer.Error = f
	p.sendMessages(answer)
}

// RejectCancel implements provider.Rejections.
func (p *Provider) RejectCancel(ctx context.Context, m *provider.InboxMessage) error {
	if err := p.begin(ctx); err != nil {
		return err
	}
	defer p.mu.Unlock()
	id := p.identity(m.InstanceID)
	if id.instance != nil {
		return fmt.Errorf("fake: instance %q: %w", m.InstanceID, provider.ErrConflict)
	}
	id.rejected[m.StartID] = true
	p.sendChildOutcome(m, &history.Failure{
		Type: history.TypeCancelled, Reason: m.Reason, Message: history.TruncateCancelMessage(m.Text),
	})
	return nil
}

// RejectEvents implements provider.Rejections.
func (p *Provider) RejectEvents(ctx context.Context, over string, ms ...*provider.InboxMessage) error {
	if err := p.begin(ctx); err != nil {
		return err
	}
	defer p.mu.Unlock()
	id, known := p.identity(ms[0].InstanceID), true
	for _, m := range ms {
		known = known && id.events.Has(&m.Message)
	}
	if !known && id.instance != nil && (over == "" || id.instance.ExecutionID != over) {
		return fmt.Errorf("fake: instance %q: %w", ms[0].InstanceID, provider.ErrConflict)
	}
	for _, m := range ms {
		id.reject(m.Parent)
	}
	why := outputs.NotFoundFailure
	if over != "" {
		why = outputs.EndedFailure
	}
	p.sendMessages(outputs.DeliveryReplies(why(ms[0].InstanceID), ms...)...)
	return nil
}

// maxSenders is the maximum number of executions whose rejected events are stored.
const maxSenders = 256

// reject stores a rejected event.
func (id *identity) reject(sender *history.Parent) {
	x, n := sender.ExecutionID, sender.EventID
	r, some := id.events[x]
	if !some {
		r = history.Range{First: n, Last: n}
	}
	if id.events == nil {
		id.events = provider.RejectedEvents{}
	}
	id.events[x] = history.Range{First: min(r.First, n), Last: max(r.Last, n)}
	id.senders = append(slices.DeleteFunc(id.senders, func(o string) bool { return o == x }), x)
	if len(id.senders) > maxSenders {
		delete(id.events, id.senders[0])
		id.senders = id.senders[1:]
	}
}

// ReadRejectedEvents implements provider.Rejections.
func (p *Provider) ReadRejectedEvents(ctx context.Context, instanceID string) (provider.RejectedEvents, error) {
	if err := p.begin(ctx); err != nil {
		return nil, err
	}
	defer p.mu.Unlock()
	return maps.Clone(p.identity(instanceID).events), nil
}

// ReadInterruption implements provider.Orchestrations.
func (p *Provider) ReadInterruption(ctx context.Context, instanceID string) (at time.Time, err error) {
	if err := p.begin(ctx); err != nil {
		return time.Time{}, err
	}
	defer p.mu.Unlock()
	if at = p.identity(instanceID).interruptedAt; p.now().Sub(at) > interruptionTime {
		return time.Time{}, nil
	}
	return at, nil
}

// PutUpdateResults implements provider.Rejections.
func (p *Provider) PutUpdateResults(ctx context.Context, results ...provider.UpdateResult) error {
	if err := p.begin(ctx); err != nil {
		return err
	}
	defer p.mu.Unlock()
	p.putUpdateResults(results)
	return nil
}

func updateKey(instanceID, updateID string) string { return instanceID + "\n" + updateID }

// putUpdateResults stores results of the current incarnation that are not known yet.
func (p *Provider) putUpdateResults(results []provider.UpdateResult) {
	for i := range results {
		r := &results[i]
		in, err := p.instance(r.InstanceID)
		if err != nil || in.StartID != r.StartID {
			continue
		}
		old, known := p.updates[updateKey(r.InstanceID, r.UpdateID)]
		if !known || old.StartID != r.StartID || old.Outcome == provider.UpdateResultExpired {
			p.updates[updateKey(r.InstanceID, r.UpdateID)] = *r
		}
	}
}

// ReadUpdate implements provider.Instances.
func (p *Provider) ReadUpdate(ctx context.Context, instanceID, updateID string) (provider.UpdateResult, error) {
	if err := p.begin(ctx); err != nil {
		return provider.UpdateResult{}, err
	}
	defer p.mu.Unlock()
	r, known := p.updates[updateKey(instanceID, updateID)]
	if !known {
		return r, fmt.Errorf("fakeprovider: update %q: %w", updateID, provider.ErrNotFound)
	}
	return r, nil
}
