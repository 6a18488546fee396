package memhub

import (
	"cmp"
	"fmt"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/outputs"
)

// outbox sends the outputs of committed segments.
type outbox struct {
	*base

	inbox      *inbox
	workQueues *workQueues
	timers     *timers
	rejections *rejections
	activities *activities
}

// send sends the outputs of a segment, and returns the outputs that can never be sent.
func (st *outbox) send(out outputs.Set) (refused []provider.OutputFailure) {
	refused = st.workQueues.sendAll(out.WorkItems)
	for i := range out.Messages {
		m := out.Messages[i]
		id := m.SourceEventID
		if m.Kind == provider.MessageStart || m.IsSent() {
			m.SourceEventID = 0
		}
		problem := tooLarge(encode(&m))
		if isReply := m.Kind == provider.MessageChildOutcome ||
			m.Kind == provider.MessageUpdateAnswered; isReply && problem != "" {
			// the waiting caller must receive an outcome anyway
			m.Result, m.Error = nil, &history.Failure{
				Type: history.TypePayloadTooLarge, Message: problem, NonRetryable: true,
			}
			problem = ""
		}
		if problem != "" {
			refused = append(refused, refuse(id, history.TypePayloadTooLarge, problem))
			continue
		}
		st.inbox.send(m)
	}
	for i := range out.Timers {
		st.timers.send(&out.Timers[i])
	}
	st.rejections.putUpdateResults(out.UpdateResults)
	return refused
}

func refuse(eventID int64, errorType, problem string) provider.OutputFailure {
	return provider.OutputFailure{
		EventID: eventID, Failure: history.Failure{Type: errorType, Message: problem, NonRetryable: true},
	}
}

// tooLarge returns the problem of a body that no queue accepts, or an empty string.
func tooLarge(body string) string {
	if len(body) <= maxBody {
		return ""
	}
	return fmt.Sprintf("message of %d bytes exceeds the limit of %d bytes", len(body), maxBody)
}

// clockSkew is the maximum difference between the clocks of two processes.
const clockSkew = 2 * time.Second

// sendEnds sends the ends of cancelled activities that wait for their next attempt, if the orchestration waits for
// their ends. No code of such an activity runs. For a pending attempt, it sends a timer for the end of the grace
// period.
func (st *outbox) sendEnds(x outputs.Origin, sequence int64, cancelled []history.OpenItem) {
	var ends []provider.ActivityOutcome
	for i := range cancelled {
		o := &cancelled[i]
		r, failed := st.activities.factsOf(x.ExecutionID).retries[o.ID]
		switch {
		case !o.WaitsForCancellation || !failed || x.Ended:
		case r.Pending != nil:
			at := st.now().Add(time.Duration(r.Pending.GraceMs) * time.Millisecond)
			if !r.NextCheckAt.IsZero() && r.NextCheckAt.Before(at) {
				at = r.NextCheckAt
			}
			st.timers.send(&provider.Timer{
				V: provider.WireVersion, InstanceID: x.InstanceID, ExecutionID: x.ExecutionID, Segment: sequence,
				TimerID: o.ID, FireAt: at, Attempt: r.Attempt, WaitForCancellation: true,
			})
		case r.At.Sub(st.now()) > clockSkew:
			ends = append(ends, provider.ActivityOutcome{
				ActivityID: o.ID, Attempt: r.Attempt - 1, Error: r.Error,
				Ended: cmp.Or(r.Ended, history.OutcomeReturned),
			})
		}
	}
	if len(ends) > 0 {
		st.inbox.send(provider.Message{
			Kind: provider.MessageActivityOutcomes, InstanceID: x.InstanceID, ExecutionID: x.ExecutionID,
			Segment: sequence, Outcomes: ends,
		})
	}
}
