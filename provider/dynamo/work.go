package dynamo

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// AdoptWorkItems reads the records of a work queue.
func (p *Provider) AdoptWorkItems(records []provider.Record) (items []provider.LockedWorkItem, unreadable []provider.Unreadable) {
	for _, r := range records {
		w, err := provider.DecodeWorkItem(r.Body)
		if err != nil {
			unreadable = append(unreadable, provider.Unreadable{Record: r, Err: err})
			continue
		}
		items = append(items, provider.LockedWorkItem{WorkItem: w, Record: r})
	}
	return items, unreadable
}

// AdoptTimers reads the records of the timers queue.
func (p *Provider) AdoptTimers(records []provider.Record) (timers []provider.LockedTimer, unreadable []provider.Unreadable) {
	for _, r := range records {
		t, err := provider.DecodeTimer(r.Body)
		if err != nil {
			unreadable = append(unreadable, provider.Unreadable{Record: r, Err: err})
			continue
		}
		timers = append(timers, provider.LockedTimer{Timer: t, Record: r})
	}
	return timers, unreadable
}

// AckWorkItems sends outcomes first and deletes records after: the other way round a crash between the two would lose the
// outcome (R14).
func (p *Provider) AckWorkItems(ctx context.Context, queue string, done []provider.CompletedWorkItem) ([]provider.Record, error) {
	records := make([]provider.Record, len(done))
	for i := range done {
		records[i] = done[i].Record
	}
	if err := p.EnqueueForOrchestrator(ctx, bundle(done)...); err != nil {
		return records, err
	}
	if err := p.DeleteRecords(ctx, queue, records...); err != nil {
		p.log.WarnContext(ctx, "work items are done but their records were not deleted: they will be delivered again", "queue", queue, "error", err)
	}
	return nil, nil
}

// bundleBytes keeps a bundle well under the limit of a message.
const bundleBytes = messageLimit / 2

// bundle makes one message of all outcomes of an execution, as far as they fit.
func bundle(done []provider.CompletedWorkItem) []provider.Message {
	var ms []provider.Message
	open := map[string]int{} // execution to its last message
	size := map[string]int{}
	for i := range done {
		d := &done[i]
		if d.Outcome == nil {
			continue
		}
		at, ok := open[d.ExecutionID]
		bytes := outcomeBytes(d.Outcome)
		if bytes > bundleBytes { // no message can hold it: its neighbours must not suffer, nor the activity run for ever
			d.Outcome, bytes = tooLargeToTell(d.Outcome, bytes), 0
		}
		if !ok || size[d.ExecutionID]+bytes > bundleBytes {
			at = len(ms)
			ms = append(ms, provider.Message{Kind: provider.MessageActivityOutcomes, InstanceID: d.InstanceID, ExecutionID: d.ExecutionID})
			open[d.ExecutionID], size[d.ExecutionID] = at, 0
		}
		size[d.ExecutionID] += bytes
		ms[at].Outcomes = append(ms[at].Outcomes, *d.Outcome)
		ms[at].Segment = max(ms[at].Segment, d.Segment)
	}
	return ms
}

// outcomeBytes is what an outcome takes in a message: escapes make it larger than its parts.
func outcomeBytes(o *provider.ActivityOutcome) int {
	b, err := json.Marshal(o)
	if err != nil {
		return 0 // encoding the message will say so
	}
	return len(sqsText(b))
}

// tooLargeToTell replaces an outcome that does not fit a message.
func tooLargeToTell(o *provider.ActivityOutcome, bytes int) *provider.ActivityOutcome {
	return &provider.ActivityOutcome{ActivityID: o.ActivityID, Attempt: o.Attempt, Error: &history.Failure{
		Type: history.TypePayloadTooLarge, NonRetryable: true,
		Message: fmt.Sprintf("the outcome of activity #%d takes %d bytes, of %d that a message has for it", o.ActivityID, bytes, bundleBytes),
	}}
}
