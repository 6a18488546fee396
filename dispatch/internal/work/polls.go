package work

import (
	"context"
	"time"

	"github.com/perdure/perdure/dispatch/internal/intake"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/provider"
)

// cancelPolls reads on in the cancel records of the executions of which activities are running: once an interval for all activities of
// an execution. The manager's lock guards it.
type cancelPolls struct {
	manager  *manager
	provider provider.Provider
	reporter *reporter

	executions map[string]*polled
	// unused are empty, for executions to come: no poll has them. They are as many as were polled at once.
	unused []*polled
}

// polled is an execution of which activities are running.
type polled struct {
	executionID string
	instanceID  string
	running     int
	among       int             // of eachWhole
	from        int64           // the segment from which on one of the activities has not read the cancel record
	ctx         context.Context //nolint:containedctx // of the batch that came last: polls are made with it
	pace        pace
	polling     bool
}

// watch has the execution of a task polled that begins, and returns when that is next.
func (p *cancelPolls) watch(t *task) (next time.Time) {
	x := p.executions[t.item.ExecutionID]
	if x == nil {
		x = p.fresh()
		x.executionID, x.instanceID, x.from = t.item.ExecutionID, t.item.InstanceID, t.unread
		x.pace.begins(t.began)
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
	if x.running--; x.running > 0 {
		return
	}
	delete(p.executions, x.executionID)
	if !x.polling { // else its poll has it
		*x = polled{pace: pace{asked: x.pace.asked[:0]}}
		p.unused = append(p.unused, x)
	}
}

// fresh is for an execution that is not polled yet.
func (p *cancelPolls) fresh() *polled {
	n := len(p.unused)
	if n == 0 {
		return &polled{}
	}
	x := p.unused[n-1]
	p.unused = p.unused[:n-1]
	return x
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

func (p *cancelPolls) poll(ctx context.Context, x *polled, from int64, how reading) {
	p.reporter.atWork(ctx)
	limited, stop := context.WithTimeout(context.WithoutCancel(ctx), how.limit)
	defer stop()
	read := p.provider.PollCancels
	if how.consistency == provider.Strong {
		read = p.provider.ReadCancels
	}
	cancels, next, err := read(limited, x.executionID, from)

	m, instanceID, executionID := p.manager, x.instanceID, x.executionID // x may be another's as soon as it polls no more
	m.mu.Lock()
	if err == nil && x.from == from { // else an activity has begun meanwhile that has read less
		x.from = next
	}
	x.polling = false
	firstFailure := x.pace.end(how.consistency, err, m.options.Clock())
	m.heedAll(executionID, cancels)
	if x.running > 0 {
		m.arm(x.pace.next)
	} else {
		firstFailure = false // it concerns nobody
	}
	m.mu.Unlock()

	if firstFailure {
		m.options.Logger.WarnContext(ctx, "cancel record read failed, retrying",
			"event", logevent.CancelRecordReadFailed, "instance", instanceID, "execution", executionID, "error", err)
	}
	if len(cancels) > 0 { // else there is nothing to stop: to look at all that runs behind each of a thousand polls is a million looks
		m.look()
	}
}

// from is the segment from which on a renewal of a task is to answer.
func (p *cancelPolls) from(t *task) int64 {
	if x := p.executions[t.item.ExecutionID]; x != nil {
		return x.from
	}
	return t.item.CancelsFrom
}

// instead has a renewal of tasks answer what the next polls of their executions would.
func (p *cancelPolls) instead(tasks []*task, now time.Time) {
	p.eachWhole(tasks, func(x *polled) { x.pace.instead(now, len(p.executions)) })
}

// answered takes the answer of a renewal of tasks that was asked at a time.
func (p *cancelPolls) answered(tasks []*task, asked time.Time) {
	p.eachWhole(tasks, func(x *polled) { x.pace.answered(asked) })
}

// eachWhole calls f for the executions of which all activities that run are among the tasks: a renewal tells no other that it is cancelled.
func (p *cancelPolls) eachWhole(tasks []*task, f func(*polled)) {
	for _, t := range tasks {
		if x := p.of(t); x != nil {
			x.among++
		}
	}
	for _, t := range tasks {
		x := p.of(t)
		if x == nil || x.among == 0 {
			continue
		}
		if x.among == x.running {
			f(x)
		}
		x.among = 0
	}
}

// of returns the execution of a task that runs, or nil.
func (p *cancelPolls) of(t *task) *polled {
	if t == nil || t.phase != phaseRunning {
		return nil
	}
	return p.executions[t.item.ExecutionID]
}

// soon has the execution of a task polled at once, since a renewal has failed that was to answer the same.
func (p *cancelPolls) soon(t *task, now time.Time) {
	if x := p.executions[t.item.ExecutionID]; x != nil {
		x.pace.soon(now)
	}
}
