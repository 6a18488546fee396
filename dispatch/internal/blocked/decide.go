// Package blocked handles messages that the code of an instance cannot process, or must not process because the
// instance is paused.
package blocked

import (
	"context"
	"errors"
	"time"

	"github.com/perdure/perdure/dispatch/internal/attempts"
	"github.com/perdure/perdure/dispatch/internal/execution"
	"github.com/perdure/perdure/dispatch/internal/intake"
	"github.com/perdure/perdure/dispatch/internal/messages"
	"github.com/perdure/perdure/dispatch/internal/poison"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// triesBeforeBlocked is the delivery of a message in which its instance is blocked if the code cannot process it.
// Before that, another environment may have another build (R18), or calls may have been throttled. A later turn can
// unblock the instance. A failure of the instance is final, so it has more conditions (unlessOutdated).
const triesBeforeBlocked = 3

// Policy holds the options of the decisions. It is safe for concurrent use.
type Policy struct {
	*intake.Base

	BuildID string
	// MaxCrashes is also the number of deliveries after which messages to an unreadable history become dead letters.
	MaxCrashes int
}

// Turn is a turn that the code cannot process.
type Turn struct {
	InstanceID string
	Execution  *execution.Execution
	Queue      *messages.Queue
	// Taken are the messages of the turn.
	Taken    []provider.InboxMessage
	Attempts *attempts.Ledger
	Poison   *poison.Check
	// RunsInline is set if inline activities run.
	RunsInline bool
	// Err is the reason for which the code cannot process the turn. It is execution.ErrPaused if the instance is
	// paused.
	Err error
	// Unencoded is set if payloads of the messages could not be encoded, or copied to the execution. History must not
	// contain the payloads in this form, so the messages are redelivered until a build can encode or copy them.
	Unencoded bool
}

// Action is the action that a decision selects.
type Action int

// The actions.
const (
	// Fail fails the session with the error of the turn, so that the messages are redelivered to another build.
	Fail Action = iota
	// Verify reads the history with strong consistency and decides again.
	Verify
	// Commit commits the events without running code, and consumes Decision.Consumed messages.
	Commit
	// Drop drops the messages, which have no effect.
	Drop
)

// Decision is the result of Decide.
type Decision struct {
	Action Action
	// Events are the numbered events to commit. Consumed is the number of messages that the commit consumes.
	Events   []history.Event
	Consumed int
}

// decision is a decision in progress.
type decision struct {
	*Policy
	*Turn

	x *execution.Execution
	// why is the diagnosis. It is nil if the instance is paused, because the code is not at fault.
	why *history.Failure
	// known is set if history shows already that this build cannot process the turn, or that the instance is paused.
	known bool
}

// Decide selects the action for a turn that the code cannot process. Unless Err is execution.ErrPaused, Err has a
// diagnosis, and the caller has discarded the code.
//
// The messages are redelivered first, so that another build can process them. If none does, the messages are parked in
// history, where they wait for such a build and do not stall other instances. If history shows that this build cannot
// process them, the messages are parked at once.
func (p *Policy) Decide(ctx context.Context, t *Turn) (Decision, error) {
	d := &decision{Policy: p, Turn: t, x: t.Execution, known: true}
	if !errors.Is(t.Err, execution.ErrPaused) {
		d.why, d.known = execution.Diagnose(t.Err), IsKnown(t.Err)
	}
	return d.decide(ctx)
}

// IsKnown reports whether err means that history already shows that this build cannot continue.
func IsKnown(err error) bool {
	_, known := errors.AsType[*execution.BlockedError](err)
	return known
}

func (d *decision) decide(ctx context.Context) (Decision, error) {
	end := d.end()
	switch {
	case d.leavesToOthers(end):
		d.reportLeft(ctx)
		return Decision{Action: Fail}, nil
	case d.x.Read() == nil && (end != nil || d.RunsInline):
		return Decision{Action: Verify}, nil // only history has the open tasks, and a redispatch sends the activities
	}
	end, err := d.unlessOutdated(ctx, end)
	if err != nil {
		return Decision{}, err
	}
	if end != nil {
		messages.RecordUnprocessed(end, d.Taken...)
		return d.commit(ctx, len(d.Taken), d.x.EventsToEnd(*end)), nil
	}

	if d.why != nil && d.why.Type == history.TypePoison { // before the messages are parked
		all := d.Queue.Unacknowledged()[:len(d.Queue.Pending())+len(d.Taken)] // an earlier turn may have the trigger
		if err := d.Poison.DeadLetter(ctx, all, d.why); err != nil {
			return Decision{}, err
		}
	}
	if d.Unencoded {
		d.Taken = nil
	}
	parked := d.parkEvent()
	switch {
	case parked != nil:
		return d.commit(ctx, len(d.Taken), []history.Event{*parked}), nil
	case d.Unencoded:
		return Decision{Action: Fail}, nil
	case !d.x.Verified():
		return Decision{Action: Verify}, nil
	default:
		return Decision{Action: Drop}, nil
	}
}

// leavesToOthers reports whether the messages are redelivered, so that an environment with another build may process
// them. If the instance is blocked already, they can be parked at once, because the sweeper makes other builds try. A
// failure is final.
func (d *decision) leavesToOthers(end *history.Event) bool {
	switch {
	case d.known || d.why.Type == history.TypePoison || d.Queue.Deliveries() >= triesBeforeBlocked:
		return false
	case end != nil:
		return end.Kind == history.OrchestrationFailed
	default:
		return !d.x.State().Blocked.Active
	}
}

// end returns an end of the instance that needs no code: a termination, or the failure of code that was registered to
// fail on nondeterminism. It returns nil if there is none.
func (d *decision) end() *history.Event {
	for i := range d.Taken {
		for _, in := range messages.AppendInputs(nil, d.x, &d.Taken[i], d.Attempts) {
			if in.Kind == history.OrchestrationTerminated {
				return &in
			}
		}
	}
	nondeterministic := d.why != nil && d.why.Type == history.TypeNondeterminism
	if d.x.Code.FailsOnNondeterminism && !d.known && nondeterministic {
		return &history.Event{Kind: history.OrchestrationFailed, Error: d.why}
	}
	return nil
}

// parkEvent returns the event that stores the inputs and the diagnosis. It returns nil if there are no inputs and
// history has the diagnosis of this build. An instance that is known to be blocked in several builds stays blocked in
// the last of them, unless a wake requests this one. Otherwise the environments of a deployment would record it
// alternately, and the sweeper could not determine which build it has woken.
func (d *decision) parkEvent() *history.Event {
	parked := history.Event{Kind: history.InputsParked, Inputs: messages.OutputFailures(d.Queue.Refused())}
	woken := false
	for i := range d.Taken {
		parked.Inputs = messages.AppendInputs(parked.Inputs, d.x, &d.Taken[i], d.Attempts)
		woken = woken || d.Taken[i].Kind == provider.MessageWake
	}

	blocked := &d.x.State().Blocked
	switch {
	case d.x.Paused(): // builds are not at fault
	case d.known && !woken:
		parked.Error, parked.BuildID = blocked.Diagnosis, blocked.LastBuild
	default:
		parked.Error, parked.BuildID = d.why, d.BuildID
	}
	if len(parked.Inputs) == 0 && (d.x.Paused() || blocked.Contains(&parked)) {
		return nil
	}
	setInputTimes(&parked, d.Clock())
	return &parked
}

func setInputTimes(parked *history.Event, now time.Time) {
	for i := range parked.Inputs {
		parked.Inputs[i].Time = now.UTC()
	}
}

// commit returns the decision to commit events that consume messages.
func (d *decision) commit(ctx context.Context, taken int, events []history.Event) Decision {
	events = d.x.Number(d.Clock(), events...)
	d.report(ctx, events[len(events)-1].Kind)
	return Decision{Action: Commit, Events: events, Consumed: taken}
}

// Committed discards the code of an execution that is now blocked in this build, so that the next messages are parked
// without another try.
func (p *Policy) Committed(x *execution.Execution) {
	if why := execution.BlockedIn(p.BuildID, &x.State().Blocked); why != nil {
		x.DiscardCode(&execution.BlockedError{Why: why})
	}
}
