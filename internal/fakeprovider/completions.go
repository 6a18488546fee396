package fakeprovider

import (
	"context"
	"strings"
	"time"

	"github.com/perdure/perdure/provider"
)

// ForeignToken is the prefix of the completion tokens of another hub.
const ForeignToken = "c1.foreign"

// Hand makes token the completion token of an activity.
func (p *Provider) Hand(token string, w *provider.WorkItem) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.handed == nil {
		p.handed = map[string]provider.WorkItem{}
	}
	p.handed[token] = *w
}

// VerifyCompletionToken implements provider.Completions.
func (p *Provider) VerifyCompletionToken(ctx context.Context, token string) (provider.WorkItem, error) {
	if err := p.begin(ctx); err != nil {
		return provider.WorkItem{}, err
	}
	defer p.mu.Unlock()
	w, there := p.handed[token]
	switch {
	case strings.HasPrefix(token, ForeignToken):
		return w, &provider.ForeignTokenError{Hub: "foreign", Own: "test"}
	case !there:
		return w, provider.ErrInvalidToken
	default:
		return w, nil
	}
}

// ReadWorkItem implements provider.Completions. It returns work items that were added with Hand.
func (p *Provider) ReadWorkItem(ctx context.Context, _, executionID string, _, activityID int64) (provider.WorkItem, error) {
	if err := p.begin(ctx); err != nil {
		return provider.WorkItem{}, err
	}
	defer p.mu.Unlock()
	for _, w := range p.handed {
		if w.ExecutionID == executionID && w.ActivityID == activityID {
			return w, nil
		}
	}
	return provider.WorkItem{}, provider.ErrNotFound
}

// ReadRetry implements provider.Activities.
func (p *Provider) ReadRetry(ctx context.Context, executionID string, activityID int64) (provider.ActivityRetry, error) {
	if err := p.begin(ctx); err != nil {
		return provider.ActivityRetry{}, err
	}
	defer p.mu.Unlock()
	for _, r := range p.retries[executionID] {
		if r.ActivityID == activityID {
			return r, nil
		}
	}
	return provider.ActivityRetry{ActivityID: activityID}, nil
}

// ReadSettled implements provider.Activities. Each execution is one segment.
func (p *Provider) ReadSettled(ctx context.Context, executionID string, from int64) (provider.Settlements, error) {
	s := provider.Settlements{Next: from}
	if err := p.begin(ctx); err != nil {
		return s, err
	}
	defer p.mu.Unlock()
	if events := p.events[executionID]; len(events) > 0 {
		s.Apply(&provider.Segment{Sequence: from, Events: events})
	}
	return s, nil
}

// ReadCancels implements provider.Activities.
func (p *Provider) ReadCancels(ctx context.Context, executionID string, from int64) (provider.Cancels, int64, error) {
	if err := p.begin(ctx); err != nil {
		return nil, from, err
	}
	defer p.mu.Unlock()
	cancels := provider.CancelsOf(p.events[executionID])
	if events := p.events[executionID]; len(events) > 0 && events[len(events)-1].Kind.Terminal() {
		cancels = append(cancels, provider.ActivityCancel{All: true, Reason: "failed"})
	}
	return cancels, from + 1, nil
}

// PollCancels implements provider.Activities.
func (p *Provider) PollCancels(ctx context.Context, executionID string, from int64) (provider.Cancels, int64, error) {
	return p.ReadCancels(ctx, executionID, from)
}

// HeartbeatPending implements provider.Completions.
func (p *Provider) HeartbeatPending(ctx context.Context, executionID string, b provider.PendingHeartbeat) (counted bool, err error) {
	if err := p.begin(ctx); err != nil {
		return false, err
	}
	defer p.mu.Unlock()
	p.left[executionID] = append(p.left[executionID], provider.ActivityRecord{ActivityID: b.ActivityID, Details: b.Details, LastHeartbeatAt: b.At, HeartbeatAttempt: b.Attempt})
	return true, nil
}

// TimeOutPending implements provider.Completions.
func (p *Provider) TimeOutPending(ctx context.Context, executionID string, activityID int64, attempt int, _ time.Time) (ended bool, err error) {
	if err := p.begin(ctx); err != nil {
		return false, err
	}
	defer p.mu.Unlock()
	p.left[executionID] = append(p.left[executionID], provider.ActivityRecord{ActivityID: activityID, TimedOutAttempt: attempt})
	return true, nil
}
