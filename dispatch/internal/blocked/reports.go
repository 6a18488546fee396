package blocked

import (
	"context"

	"github.com/perdure/perdure/dispatch/internal/execution"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/faults"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/provider"
)

// report logs that the messages are parked, or that the instance ends, without its code. If the code was not tried, it
// logs at the debug level, because there may be thousands of messages.
func (d *decision) report(ctx context.Context, end history.Kind) {
	log := d.Logger.With(d.onNewer(ctx)...)
	// newlyBlocked rolls back a canary of this build. Instances that were blocked before are not its fault.
	attributes := []any{
		"instance", d.InstanceID, "execution", d.x.Head().ExecutionID, "buildId", d.BuildID,
		"newlyBlocked", d.why != nil && !d.x.State().Blocked.Active, "attemptCount", d.Queue.Deliveries(),
		"historyEndsWith", end, "error", d.Err,
	}
	switch parked := end == history.InputsParked; {
	case parked && d.x.Paused():
		log.DebugContext(ctx, "messages parked: the instance is paused", attributes...)
	case d.x.Paused():
		log.InfoContext(ctx, "paused instance ended", append(attributes, "event", logevent.InstancePausedEnded)...)
	case parked && d.known:
		log.DebugContext(ctx, "messages parked: the instance is blocked", attributes...)
	case parked:
		faults.ReportError(ctx, d.InstanceID, d.Err)
		log.ErrorContext(ctx, "instance blocked: its code cannot continue", append(attributes,
			"event", logevent.InstanceBlocked)...)
	default:
		faults.ReportError(ctx, d.InstanceID, d.Err)
		log.ErrorContext(ctx, "instance ended although its code cannot continue", append(attributes,
			"event", logevent.InstanceEndedUnrun)...)
	}
}

// reportLeft logs that the code cannot process a turn that another build may process. It also logs newlyBlocked. The
// previous build processes nearly all turns of a canary in the second delivery, so even a build that cannot continue
// any instance would block almost none.
func (d *decision) reportLeft(ctx context.Context) {
	log := d.Logger.With(d.onNewer(ctx)...)
	faults.ReportError(ctx, d.InstanceID, d.Err)
	log.WarnContext(ctx, "code cannot process the turn, leaving its messages to another build",
		"event", logevent.TurnIncompatible, "instance", d.InstanceID, "buildId", d.BuildID,
		"newlyBlocked", !d.x.State().Blocked.Active, "attemptCount", d.Queue.Deliveries(), "error", d.Err)
}

// Mismatch is the error of code that did not match a history that may have been outdated. Either the history or the
// code is at fault. It is empty if there is none.
type Mismatch struct {
	head provider.Head
	err  error
}

// MismatchOf returns the mismatch that a verification of the head decides, or an empty one.
func MismatchOf(x *execution.Execution, err error) Mismatch {
	if why := execution.Diagnose(err); why == nil || why.Type != history.TypeNondeterminism {
		return Mismatch{}
	}
	return Mismatch{x.Head(), err}
}

// ReportMismatch logs that the code was at fault although it matches the verified execution. The code has made
// different decisions on the same history. Nothing else reports this mismatch, and the next one may block the instance.
func (p *Policy) ReportMismatch(ctx context.Context, instanceID string, m Mismatch, x *execution.Execution) {
	if m.err == nil || x == nil || x.Code.Broken() != nil || x.Head() != m.head {
		return
	}
	faults.ReportError(ctx, instanceID, m.err)
	p.Logger.WarnContext(ctx, "nondeterministic code: a second replay made other decisions",
		"event", logevent.ReplayNondeterministic, "instance", instanceID, "execution", m.head.ExecutionID,
		"buildId", p.BuildID, "error", m.err)
}
