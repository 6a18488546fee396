// Package cancelpoll reads the cancel records of executions while their activities run in a worker. Activities of one
// execution share their polls.
package cancelpoll

import (
	"context"
	"sync"
	"time"

	"github.com/perdure/perdure/dispatch/internal/intake"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/provider"
)

// Supervisor stops running activities. It holds its lock while it calls a method of a Poller.
type Supervisor interface {
	sync.Locker
	// StopCancelled stops the running activities of an execution that are cancelled. The lock is held.
	StopCancelled(executionID string, cancels provider.Cancels)
	// WakeAt makes the supervisor call StartDue at the given time. The lock is held.
	WakeAt(at time.Time)
	// Check applies the changes of StopCancelled. The lock is not held.
	Check()
}

// Poller polls the cancel records of the executions whose activities run. The lock of its Supervisor guards it.
type Poller struct {
	*intake.Base

	supervisor Supervisor
	beforePoll func(context.Context)

	executions map[string]*execution
	// unused holds executions for reuse, as many as were polled at the same time. No poll refers to them.
	unused []*execution
}

// New returns a Poller without activities. It calls beforePoll, if not nil, before each poll.
func New(b *intake.Base, s Supervisor, beforePoll func(context.Context)) *Poller {
	return &Poller{Base: b, supervisor: s, beforePoll: beforePoll, executions: map[string]*execution{}}
}

// Activity is a running activity, as far as polls need it.
type Activity struct {
	InstanceID, ExecutionID string
	// CancelsFrom is the first segment whose cancels the activity has not read.
	CancelsFrom int64
	// Interval is the requested interval of polls.
	Interval  time.Duration
	StartedAt time.Time
}

// execution is an execution whose activities run.
type execution struct {
	executionID string
	instanceID  string
	running     int             // activities
	matched     int             // activities that eachWhole has counted
	from        int64           // the first segment that an activity has not read
	ctx         context.Context //nolint:containedctx // of the activity that started last, for the polls
	schedule    schedule
	polling     bool
}

// Watch polls for an activity until Unwatch, and returns the time of the next poll of its execution. The polls have the
// values of ctx.
func (p *Poller) Watch(ctx context.Context, a *Activity) (next time.Time) {
	x := p.executions[a.ExecutionID]
	if x == nil {
		x = p.newExecution()
		x.executionID, x.instanceID, x.from = a.ExecutionID, a.InstanceID, a.CancelsFrom
		x.schedule.readBefore(a.StartedAt)
		p.executions[x.executionID] = x
	}
	x.running++
	x.from = min(x.from, a.CancelsFrom)
	x.ctx = ctx
	x.schedule.add(a.Interval, a.StartedAt)
	return x.schedule.next
}

// Unwatch stops polls for an activity.
func (p *Poller) Unwatch(executionID string, interval time.Duration) {
	x := p.executions[executionID]
	x.schedule.remove(interval)
	if x.running--; x.running > 0 {
		return
	}
	delete(p.executions, x.executionID)
	if !x.polling { // otherwise its poll still refers to it
		*x = execution{schedule: schedule{requests: x.schedule.requests[:0]}}
		p.unused = append(p.unused, x)
	}
}

func (p *Poller) newExecution() *execution {
	n := len(p.unused)
	if n == 0 {
		return &execution{}
	}
	x := p.unused[n-1]
	p.unused = p.unused[:n-1]
	return x
}

// StartDue starts the polls that are due, and returns the time of the next ones.
func (p *Poller) StartDue(now time.Time) (next time.Time) {
	for _, x := range p.executions {
		switch {
		case x.polling:
		case !x.schedule.isDue(now):
			next = intake.Earlier(next, x.schedule.next)
		default:
			x.polling = true
			go p.poll(x.ctx, x, x.from, x.schedule.start(now, len(p.executions)))
		}
	}
	return next
}

func (p *Poller) poll(ctx context.Context, x *execution, from int64, how pollRead) {
	if p.beforePoll != nil {
		p.beforePoll(ctx)
	}
	limited, stop := context.WithTimeout(context.WithoutCancel(ctx), how.timeout)
	defer stop()
	read := p.Provider.PollCancels
	if how.consistency == provider.Strong {
		read = p.Provider.ReadCancels
	}
	cancels, next, err := read(limited, x.executionID, from)

	// when polling is false, x may be reused for another execution
	instanceID, executionID := x.instanceID, x.executionID
	p.supervisor.Lock()
	if err == nil && x.from == from { // otherwise an activity has started that has read less
		x.from = next
	}
	x.polling = false
	firstFailure := x.schedule.finish(how.consistency, err, p.Clock())
	p.supervisor.StopCancelled(executionID, cancels)
	if x.running > 0 {
		p.supervisor.WakeAt(x.schedule.next)
	} else {
		firstFailure = false // no activity is affected
	}
	p.supervisor.Unlock()

	if firstFailure {
		p.Logger.WarnContext(ctx, "cancel record read failed, retrying",
			"event", logevent.CancelRecordReadFailed, "instance", instanceID, "execution", executionID, "error", err)
	}
	if len(cancels) > 0 { // a check after each of a thousand polls would cost a million comparisons
		p.supervisor.Check()
	}
}

// CancelsFrom returns the first segment whose cancels a lock renewal must read for an execution. ok is false if none of
// its activities runs.
func (p *Poller) CancelsFrom(executionID string) (segment int64, ok bool) {
	x := p.executions[executionID]
	if x == nil {
		return 0, false
	}
	return x.from, true
}

// Skip skips the next polls of executions, because a lock renewal of running activities reads the same cancel records.
// executions has the execution of each of these activities.
func (p *Poller) Skip(executions []string, now time.Time) {
	p.eachWhole(executions, func(x *execution) { x.schedule.skip(now, len(p.executions)) })
}

// Renewed records a lock renewal of running activities that started at the given time. executions has the execution of
// each of these activities.
func (p *Poller) Renewed(executions []string, started time.Time) {
	p.eachWhole(executions, func(x *execution) { x.schedule.renewed(started) })
}

// eachWhole calls f for each execution whose running activities are all listed. A renewal reports the cancels of the
// listed activities only.
func (p *Poller) eachWhole(executions []string, f func(*execution)) {
	for _, id := range executions {
		if x := p.executions[id]; x != nil {
			x.matched++
		}
	}
	for _, id := range executions {
		x := p.executions[id]
		if x == nil || x.matched == 0 {
			continue
		}
		if x.matched == x.running {
			f(x)
		}
		x.matched = 0
	}
}

// PollNow makes a poll of an execution due immediately, because a lock renewal failed to read the cancel record.
func (p *Poller) PollNow(executionID string, now time.Time) {
	if x := p.executions[executionID]; x != nil {
		x.schedule.pollNow(now)
	}
}
