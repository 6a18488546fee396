package attempts

import (
	"context"
	"time"

	"github.com/perdure/perdure/dispatch/internal/execution"
	"github.com/perdure/perdure/dispatch/internal/intake"
	"github.com/perdure/perdure/provider"
)

// Processor processes the attempts of messages before a turn. It is safe for concurrent use.
type Processor struct{ *intake.Base }

// Result is the result of Process.
type Result struct {
	// Unknown is set if the open activities are not known, because neither the code nor the history was loaded. Nothing
	// was processed.
	Unknown bool
	// Refused are outputs that can never be sent. The next turn records them.
	Refused []provider.OutputFailure
}

// run is the processing of the messages of one turn.
type run struct {
	*Processor

	ledger     *Ledger
	x          *execution.Execution
	instanceID string
	refused    []provider.OutputFailure
}

// collection contains the unprocessed attempts of messages, and their sources.
type collection struct {
	failed     []provider.ActivityOutcome
	failedFrom []source
	due        []provider.DueAttempt
	checks     []check // one for each due attempt
	pending    []pendingAttempt
	// settled are the activities that messages before the last one have settled. No turn has consumed these messages
	// yet.
	settled map[int64]bool
}

// settle adds the activities that the outcomes of a message settle, independent of their attempts.
func (c *collection) settle(m *provider.InboxMessage) {
	if m.Kind != provider.MessageActivityOutcomes {
		return
	}
	if c.settled == nil {
		c.settled = map[int64]bool{}
	}
	for i := range m.Outcomes {
		c.settled[m.Outcomes[i].ActivityID] = true
	}
}

// Process processes the attempts that have failed or are due by the messages of the next turn, and records the
// verdicts.
func (p *Processor) Process(
	ctx context.Context, l *Ledger, x *execution.Execution, instanceID string, taken []provider.InboxMessage,
) (Result, error) {
	var c collection
	for i := range taken {
		m := &taken[i]
		if !x.Recipient.Concerns(m) {
			continue
		}
		if !c.add(x, m, l) {
			return Result{Unknown: true}, nil
		}
		if i+1 < len(taken) {
			c.settle(m)
		}
	}
	if len(c.failed)+len(c.due)+len(c.pending) == 0 {
		return Result{}, nil
	}
	r := run{Processor: p, ledger: l, x: x, instanceID: instanceID}
	err := r.process(ctx, &c)
	return Result{Refused: r.refused}, err
}

func (r *run) process(ctx context.Context, c *collection) error {
	c.setRetryTimes(r.Clock())
	if len(c.failed)+len(c.due) == 0 {
		return r.checkPending(ctx, c, nil)
	}
	waiting, err := r.retry(ctx, c)
	if err != nil {
		return err
	}
	return r.checkPending(ctx, c, waiting)
}

// retry stores and sends the next attempts of a collection, and records the verdicts.
func (r *run) retry(ctx context.Context, c *collection) (waiting []provider.ActivityRetry, err error) {
	results, err := r.Provider.RetryActivities(ctx, &provider.RetryRequest{
		InstanceID: r.instanceID, Head: r.x.Head(), Failed: c.failed, Due: c.due,
	})
	if err != nil {
		return nil, err
	}
	if results.Verified {
		r.x.MarkVerified()
	}
	r.refused = append(r.refused, results.RejectedOutputs...)
	r.ledger.setResults(c, results)
	return results.Waiting, nil
}

// add adds the unprocessed attempts of a message. Another attempt can follow a failed one if the activity is open. If
// the activity is cancelled and its end is awaited, no attempt follows, and a failure of the current attempt is the end
// of the activity. A due attempt of such an activity is sent, and its worker reports the end. add returns false if the
// open activities are not known.
func (c *collection) add(x *execution.Execution, m *provider.InboxMessage, l *Ledger) (known bool) {
	for j := range m.Outcomes {
		o, from := &m.Outcomes[j], source{m.Record.ID, j}
		if !isOfAttempt(o) || l.hasVerdict(from) || c.settled[o.ActivityID] {
			continue
		}
		open, ending, known := x.OpenActivity(o.ActivityID)
		if !known {
			return false
		}
		switch {
		case !open && !ending:
		case o.Pending != nil:
			c.pending = append(c.pending, pendingAttempt{check{m, from, ending}, o})
		default:
			c.failed, c.failedFrom = append(c.failed, failure(o, open)), append(c.failedFrom, from)
		}
	}

	if m.Kind != provider.MessageTimerFired || m.Activity {
		return true
	}
	return c.addDue(x, m, l)
}

// isOfAttempt reports whether an outcome concerns only an attempt: it is pending, or another attempt may follow.
func isOfAttempt(o *provider.ActivityOutcome) bool {
	return o.Pending != nil || o.Run != "" && o.Error != nil
}

func (c *collection) addDue(x *execution.Execution, m *provider.InboxMessage, l *Ledger) (known bool) {
	from := source{m.Record.ID, 0}
	if l.hasVerdict(from) || c.settled[m.TimerID] {
		return true
	}
	open, ending, known := x.OpenActivity(m.TimerID)
	if open || ending {
		by := check{m, from, ending}
		c.due = append(c.due, provider.DueAttempt{
			ActivityID: m.TimerID, Attempt: m.Attempt, MessageID: by.messageID(), Segment: m.Segment,
		})
		c.checks = append(c.checks, by)
	}
	return known
}

// failure returns the failure of an attempt, without a retry time if no attempt follows.
func failure(o *provider.ActivityOutcome, retries bool) provider.ActivityOutcome {
	failed := *o
	if !retries {
		failed.RetryAt = nil
	}
	return failed
}

// setRetryTimes sets the due times of next attempts by this process's clock, if the token holder has reported the
// failure. If the failure is redelivered, the time that was stored first counts.
func (c *collection) setRetryTimes(now time.Time) {
	for i := range c.failed {
		if o := &c.failed[i]; o.RetryAt != nil && o.RetryInMs > 0 {
			at := now.Add(time.Duration(o.RetryInMs) * time.Millisecond).UTC().Truncate(time.Millisecond)
			o.RetryAt = &at
		}
	}
}
