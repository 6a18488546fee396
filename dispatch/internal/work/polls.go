package work

import (
	"context"
	"time"

	"github.com/perdure/perdure/dispatch/internal/intake"
	"github.com/perdure/perdure/provider"
)

// cancelPolls reads on in the cancel records of the executions of which activities are running: once an interval for all activities of
// an execution. The manager's lock guards it.
type cancelPolls struct {
	manager  *manager
	provider provider.Provider
	reporter *reporter

	executions map[string]*polled
}

// polled is an execution of which activities are running.
type polled struct {
	executionID string
	instanceID  string
	running     int
	from        int64           // the segment from which on one of the activities has not read the cancel record
	ctx         context.Context //nolint:containedctx // of the batch that came last: polls are made with it
	pace        pace
	polling     bool
}

// pollLimit is how long a poll may take.
const pollLimit = 5 * time.Second

// watch has the execution of a task polled that begins, and returns when that is next.
func (p *cancelPolls) watch(t *task) (next time.Time) {
	x := p.executions[t.item.ExecutionID]
	if x == nil {
		x = &polled{executionID: t.item.ExecutionID, instanceID: t.item.InstanceID, from: t.unread, pace: newPace(t.began)}
		p.executions[x.executionID] = x
	}
	x.running++
	x.from = min(x.from, t.unread)
	x.ctx = t.batch.ctx
	x.pace.ask(t.pollEvery, t.began)
	return x.pace.next
}

// unwatch ends that for a task.
func (p *cancelPolls) unwatch(t *task) {
	x := p.executions[t.item.ExecutionID]
	x.pace.leave(t.pollEvery)
	if x.running--; x.running == 0 {
		delete(p.executions, x.executionID)
	}
}

// due begins the polls that are due, or are so soon that they need no look of their own, and returns when the next are.
func (p *cancelPolls) due(now time.Time) (next time.Time) {
	for _, x := range p.executions {
		switch {
		case x.polling:
		case !x.pace.isDue(now):
			next = intake.Earlier(next, x.pace.next)
		default:
			x.polling = true
			go p.poll(x.ctx, x, x.from, x.pace.begin(now, len(p.executions)))
		}
	}
	return next
}

func (p *cancelPolls) poll(ctx context.Context, x *polled, from int64, c provider.Consistency) {
	p.reporter.atWork(ctx)
	limited, stop := context.WithTimeout(context.WithoutCancel(ctx), pollLimit)
	defer stop()
	read := p.provider.PollCancels
	if c == provider.Strong {
		read = p.provider.ReadCancels
	}
	cancels, next, err := read(limited, x.executionID, from)

	m := p.manager
	m.mu.Lock()
	if err == nil && x.from == from { // else an activity has begun meanwhile that has read less
		x.from = next
	}
	x.polling = false
	firstFailure := x.pace.end(err)
	m.heedAll(x.executionID, cancels)
	if x.running > 0 {
		m.arm(x.pace.next)
	} else {
		firstFailure = false // it concerns nobody
	}
	m.mu.Unlock()

	if firstFailure {
		m.options.Logger.WarnContext(ctx, "the cancel record of an execution cannot be read, its activities run on meanwhile", "instance", x.instanceID, "execution", x.executionID, "error", err)
	}
	if len(cancels) > 0 { // else there is nothing to stop: to look at all that runs behind each of a thousand polls is a million looks
		m.look()
	}
}

// instead has a renewal answer what the next poll of a task's execution would, and returns the segment from which on it is to answer.
func (p *cancelPolls) instead(t *task, now time.Time) (from int64) {
	x := p.executions[t.item.ExecutionID]
	if x == nil {
		return t.item.CancelsFrom
	}
	x.pace.instead(now, len(p.executions))
	return x.from
}

// soon has the execution of a task polled at once, since a renewal has failed that was to answer the same.
func (p *cancelPolls) soon(t *task, now time.Time) {
	if x := p.executions[t.item.ExecutionID]; x != nil {
		x.pace.soon(now)
	}
}
