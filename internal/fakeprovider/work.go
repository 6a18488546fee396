package fakeprovider

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/outputs"
	"github.com/perdure/perdure/provider/wire"
)

// DecodeWorkItems implements provider.WorkItems.
func (p *Provider) DecodeWorkItems(
	ctx context.Context, records []provider.Record,
) (items []provider.LockedWorkItem, unreadable []provider.Unreadable) {
	for _, r := range records {
		w, err := wire.DecodeWorkItem(r.Body)
		if err == nil {
			err = checkHub(&w.Hub)
		}
		if err != nil {
			unreadable = append(unreadable, provider.Unreadable{Record: r, Err: err})
			continue
		}
		items = append(items, provider.LockedWorkItem{WorkItem: w, Record: r})
	}
	provider.AttachCancelReads(ctx, items, p.ReadCancels)
	return items, unreadable
}

// AckWorkItems implements provider.WorkItems. It sends outcomes before it deletes records (R14).
func (p *Provider) AckWorkItems(
	ctx context.Context, name string, done []provider.CompletedWorkItem,
) (failed []provider.Record, err error) {
	if err := p.begin(ctx); err != nil {
		return recordsOf(done), err
	}
	defer p.mu.Unlock()
	q, err := p.queueNamed(name)
	if err != nil && len(done) > 0 {
		return recordsOf(done), err
	}
	var errs []error
	var own []provider.CompletedWorkItem
	for _, d := range done {
		if d.Record.Held(p.now()) {
			own = append(own, d)
			continue
		}
		failed = append(failed, d.Record)
		errs = append(errs, fmt.Errorf("fake: activity #%d: %w", d.ActivityID, provider.ErrLockLost))
	}
	p.sendMessages(bundle(own)...)
	for _, d := range own {
		if !d.KeepRecord {
			q.remove([]provider.Record{d.Record})
		}
	}
	return failed, errors.Join(errs...)
}

func recordsOf(done []provider.CompletedWorkItem) (all []provider.Record) {
	for i := range done {
		all = append(all, done[i].Record)
	}
	return all
}

// bundle returns messages with the outcomes of each execution: one for each kind, as far as they fit.
func bundle(done []provider.CompletedWorkItem) (ms []provider.Message) {
	const most = maxBody / 2
	last, size := map[string]int{}, map[string]int{}
	for i := range done {
		d := &done[i]
		if d.Outcome == nil {
			continue
		}
		kind := provider.MessageActivityOutcomes
		switch {
		case d.Outcome.Pending != nil:
			kind = provider.MessageActivityPending
		case d.Outcome.Run != "":
			kind = provider.MessageActivityAttempts
		}
		outcome := *d.Outcome
		n := len(encode(&outcome))
		if n > most { // no message can contain it
			outcome.Result = nil
			outcome.Error = &history.Failure{
				Type: history.TypePayloadTooLarge, NonRetryable: true,
				Message: fmt.Sprintf("outcome of activity #%d has %d bytes, more than the limit of %d",
					d.ActivityID, n, most),
			}
			n = 0
		}
		key := d.ExecutionID + string(kind)
		if _, open := last[key]; !open || size[key]+n > most {
			last[key], size[key] = len(ms), 0
			ms = append(ms, provider.Message{Kind: kind, InstanceID: d.InstanceID, ExecutionID: d.ExecutionID})
		}
		m := &ms[last[key]]
		size[key] += n
		m.Outcomes = append(m.Outcomes, outcome)
		m.Segment = max(m.Segment, d.Segment)
	}
	return ms
}

// PutWorkItems implements provider.WorkItems.
func (p *Provider) PutWorkItems(ctx context.Context, items ...provider.WorkItem) error {
	if err := p.begin(ctx); err != nil {
		return err
	}
	defer p.mu.Unlock()
	refused := p.sendOutputs(outputs.Set{WorkItems: append([]provider.WorkItem(nil), items...)})
	if len(refused) > 0 {
		return fmt.Errorf("fake: activity #%d: %s", refused[0].EventID, refused[0].Failure.Message)
	}
	return nil
}

// RenewWorkItemLocks implements provider.WorkItems.
func (p *Provider) RenewWorkItemLocks(
	ctx context.Context, name string, lock time.Duration, items ...provider.LockedWorkItem,
) ([]provider.Renewal, error) {
	if err := p.begin(ctx); err != nil {
		return make([]provider.Renewal, len(items)), err
	}
	defer p.mu.Unlock()
	renewals := make([]provider.Renewal, len(items))
	q, err := p.queueNamed(name)
	if err != nil {
		return renewals, err
	}
	until := p.now().Add(lock)
	for i := range items {
		it := &items[i]
		r, set := p.locks[it.Record.ReceiptHandle]
		record := q.locked(p.now(), it.Record.ReceiptHandle)
		switch {
		case set && !r.Until.IsZero():
			r.Until = until
		case set:
		case record == nil:
			r.Lost = true
		default:
			record.visibleAt, r.Until = until, until
		}
		if !set && it.ExecutionID != "" {
			cancels, _ := p.cancelsSince(it.ExecutionID, max(it.CancelsFrom, it.Segment))
			r.Cancel = cancels.Of(it.ActivityID)
		}
		renewals[i] = r
	}
	return renewals, nil
}

// VerifyWorkItemToken implements provider.Completions. Every token that begins with w1 belongs to a hub of New.
func (p *Provider) VerifyWorkItemToken(ctx context.Context, token string) (provider.WorkItem, error) {
	if err := p.begin(ctx); err != nil {
		return provider.WorkItem{}, err
	}
	defer p.mu.Unlock()
	w, err := p.tokens.Verify(token)
	if err != nil && strings.HasPrefix(token, "w1") && p.forClients {
		return provider.WorkItem{V: provider.WireVersion, Queue: DefaultQueue, ExecutionID: token}, nil
	}
	return w, err
}

// CompletionTokens implements provider.Completions.
func (p *Provider) CompletionTokens(ctx context.Context) (provider.CompletionSigner, error) {
	if err := p.begin(ctx); err != nil {
		return nil, err
	}
	defer p.mu.Unlock()
	return p.tokens, nil
}

// VerifyCompletionToken implements provider.Completions.
func (p *Provider) VerifyCompletionToken(ctx context.Context, token string) (provider.WorkItem, error) {
	if err := p.begin(ctx); err != nil {
		return provider.WorkItem{}, err
	}
	defer p.mu.Unlock()
	if w, handed := p.handed[token]; handed {
		return w, nil
	}
	if strings.HasPrefix(token, ForeignToken) {
		return provider.WorkItem{}, &provider.ForeignTokenError{Hub: "foreign", Own: hubName}
	}
	return p.tokens.VerifyCompletion(token)
}

// ReadWorkItem implements provider.Completions.
func (p *Provider) ReadWorkItem(
	ctx context.Context, instanceID, executionID string, segment, activityID int64,
) (provider.WorkItem, error) {
	if err := p.begin(ctx); err != nil {
		return provider.WorkItem{}, err
	}
	defer p.mu.Unlock()
	for _, w := range p.handed {
		if w.ExecutionID == executionID && w.ActivityID == activityID {
			return w, nil
		}
	}
	return p.workItem(instanceID, executionID, segment, activityID)
}

// workItem returns the work item of an activity's first attempt.
func (p *Provider) workItem(instanceID, executionID string, segment, activityID int64) (provider.WorkItem, error) {
	if x := p.executions[executionID]; x != nil && !x.erased && 0 <= segment && segment < int64(len(x.segments)) {
		origin := outputs.Origin{InstanceID: instanceID, ExecutionID: executionID}
		out := outputs.Of(origin, x.segments[segment], nil)
		for i := range out.WorkItems {
			if out.WorkItems[i].ActivityID == activityID {
				return out.WorkItems[i], nil
			}
		}
	}
	return provider.WorkItem{}, fmt.Errorf("fake: instance %q: execution %s: activity #%d: %w", instanceID, executionID,
		activityID, provider.ErrNotFound)
}
