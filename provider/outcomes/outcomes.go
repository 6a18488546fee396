// Package outcomes groups the outcomes of completed work items into messages for their executions.
package outcomes

import (
	"fmt"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// group identifies the outcomes that are sent as one message, if they fit.
type group struct {
	executionID string
	kind        provider.MessageKind
}

// groupOf returns the group of a work item with an outcome.
func groupOf(d *provider.CompletedWorkItem) group {
	of := group{d.ExecutionID, provider.MessageActivityOutcomes}
	switch {
	case d.Outcome.Pending != nil:
		of.kind = provider.MessageActivityPending
	case d.Outcome.Run != "":
		of.kind = provider.MessageActivityAttempts
	}
	return of
}

// countLeading counts the outcomes of a group at the front. These are usually all outcomes.
func countLeading(done []provider.CompletedWorkItem, of group) (n int) {
	for n < len(done) && done[n].Outcome != nil && groupOf(&done[n]) == of {
		n++
	}
	return n
}

// bundle is the last message of a group.
type bundle struct {
	index int // of the message
	bytes int // of its outcomes
}

// Bundle returns up to three kinds of messages for each execution. The first has its outcomes, the second has failed
// attempts that may not be the last of their activities, and the third has pending attempts. A message has outcomes of
// at most limit bytes, and size returns the bytes of an outcome in a message. Bundle replaces an outcome that no
// message can contain, also in done.
func Bundle(
	done []provider.CompletedWorkItem, limit int, size func(*provider.ActivityOutcome) int,
) []provider.Message {
	var ms []provider.Message
	open := map[group]bundle{}
	for i := range done {
		d := &done[i]
		if d.Outcome == nil {
			continue
		}
		of := groupOf(d)
		last, ok := open[of]
		bytes := size(d.Outcome)
		// no message can contain it, and it must not block the others or make the activity run forever
		if bytes > limit {
			d.Outcome = replaceTooLarge(d.Outcome, bytes, limit)
			bytes = 0
		}
		if !ok || last.bytes+bytes > limit {
			last = bundle{index: len(ms)}
			ms = append(ms, provider.Message{
				Kind:        of.kind,
				InstanceID:  d.InstanceID,
				ExecutionID: d.ExecutionID,
				Outcomes:    make([]provider.ActivityOutcome, 0, countLeading(done[i:], of)),
			})
		}

		last.bytes += bytes
		open[of] = last
		m := &ms[last.index]
		m.Outcomes = append(m.Outcomes, *d.Outcome)
		m.Segment = max(m.Segment, d.Segment)
	}
	return ms
}

// replaceTooLarge replaces an outcome that does not fit a message.
func replaceTooLarge(o *provider.ActivityOutcome, bytes, limit int) *provider.ActivityOutcome {
	cut := *o
	cut.Result = nil
	cut.Error = &history.Failure{
		Type: history.TypePayloadTooLarge, NonRetryable: true,
		Message: fmt.Sprintf("outcome of activity #%d has %d bytes, more than the limit of %d for a message",
			o.ActivityID, bytes, limit),
	}
	return &cut
}
