package perduretest

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// maxAdvance is the maximum step by which Wait moves the clock while an activity is running.
const maxAdvance = time.Hour

// IdleError means that an instance has not ended and no work in the Env can end it. No message is due or delayed, and
// no bulk job or deletion is running. No activity is running, except activities that have sent no heartbeat for hours.
// The instance waits for an action of the test, or it is in an endless loop (see LoopDiagnosis).
type IdleError struct {
	// InstanceID is the ID of the instance, and Status is its status.
	InstanceID string
	Status     provider.RuntimeStatus
	// Waited is the duration of a wait in a deployed hub. It is 0 in virtual time.
	Waited time.Duration
	// LoopDiagnosis is the reason why a wait in virtual time stopped although the instance is still active. It contains
	// the duration of the wait and the instances that made turns. It is empty if the Env is idle.
	LoopDiagnosis string
	// Diagnosis is the reason why a blocked instance cannot continue. It is nil for other instances.
	Diagnosis *history.Failure
	// WaitingFor describes the waits of the instance and its sub-orchestrations. Examples are an event that was not
	// raised, an activity that is not registered, or a retry with its last failure.
	WaitingFor []string
}

// Error implements error.
func (e *IdleError) Error() string {
	text := fmt.Sprintf("perduretest: instance %q is %s and nothing will end it", e.InstanceID, e.Status)
	if e.Waited > 0 {
		text = fmt.Sprintf("perduretest: instance %q is %s after %v", e.InstanceID, e.Status, e.Waited)
	}
	if e.LoopDiagnosis != "" {
		text = fmt.Sprintf("perduretest: instance %q is %s and %s", e.InstanceID, e.Status, e.LoopDiagnosis)
	}
	if e.Diagnosis != nil {
		text += ": " + e.Diagnosis.Message
	}
	if len(e.WaitingFor) > 0 {
		text += "; it is waiting for\n  " + strings.Join(e.WaitingFor, "\n  ")
	}
	return text
}

// wait advances the clock until an instance has ended.
func (e *Env) wait(ctx context.Context, p provider.Provider, instanceID string) (in provider.Instance, err error) {
	e.t.Helper()
	err = until(ctx, e, p, instanceID, func(context.Context) (bool, error) {
		e.do(func() { in, err = p.ReadInstance(context.WithoutCancel(ctx), instanceID) })
		return in.Status.Terminal(), err
	})
	return in, err
}

// until advances the clock until poll reports done.
func until(
	ctx context.Context, e *Env, p provider.Provider, instanceID string,
	poll func(context.Context) (done bool, err error),
) error {
	e.t.Helper()
	began, loop, q := e.Now(), newLoopDetector(e), idleCheck{e}
	for {
		e.drive(e.clock.settle)
		if done, err := poll(ctx); done || err != nil {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if q.isIdle() || q.hasStalled(ctx, instanceID, &began) {
			return q.stuck(ctx, p, instanceID, "")
		}
		if why := loop.diagnose(ctx); why != "" {
			return q.stuck(ctx, p, instanceID, why+e.progress.since(loop.from))
		}
		advanceToNext(e)
	}
}

// stuck returns the error of a wait that will not end.
func (q idleCheck) stuck(ctx context.Context, p provider.Provider, instanceID, endless string) error {
	var in provider.Instance
	var err error
	q.env.do(func() { in, err = p.ReadInstance(context.WithoutCancel(ctx), instanceID) })
	if err != nil {
		return err
	}
	idle := q.idle(ctx, &in)
	idle.LoopDiagnosis = endless
	return idle
}

// advanceToNext moves the clock to the next time at which work is due.
func advanceToNext(e *Env) {
	at, planned := e.agenda.next()
	reached := false
	e.drive(func() {
		d := maxAdvance
		if due, some := e.hub.Cloud.NextDue(); some && e.hub.Cloud.InFlight() == 0 && !e.hub.Sweeper.IsRunning() {
			d = max(time.Until(due), 0) // no other work is due earlier
		}
		if planned {
			d = min(d, time.Until(at))
		}
		e.clock.pass(d)
		reached = planned && !time.Now().Before(at)
	})
	if reached {
		e.agenda.run()
	}
}
