package turns

import (
	"context"
	"slices"

	"github.com/perdure/perdure/dispatch/internal/messages"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// carryOverError is the error of an execution that continues as new with too many parked inputs for a commit. Code that
// consumes more inputs before it continues as new can proceed.
type carryOverError struct{ err error }

func (e *carryOverError) Error() string {
	return "too many parked inputs for the next execution; consume more of them before ContinueAsNew: " + e.err.Error()
}

// Unwrap returns the error of the commit.
func (e *carryOverError) Unwrap() error { return e.err }

// Diagnosis implements execution.Diagnosed.
func (e *carryOverError) Diagnosis() *history.Failure {
	return &history.Failure{Type: history.TypePayloadTooLarge, Message: e.Error()}
}

// hasTrigger reports whether a redelivery of a consumed, unacknowledged message would continue this execution (R4).
func (t *turn) hasTrigger() bool {
	return slices.ContainsFunc(t.queue.Pending(), func(m provider.InboxMessage) bool {
		return t.x.Head().Watermark.Covers(m.Position)
	})
}

// carryOver passes the inputs of a message that concern the instance to the next execution, behind the parked ones,
// because the code could not receive them.
func (t *turn) carryOver(m *provider.InboxMessage) {
	messages.RecordUnprocessed(&t.out.Events[len(t.out.Events)-1], *m)
	if t.out.Continued == nil {
		return
	}
	for _, in := range messages.AppendInputs(nil, t.x, m, &t.attempts) {
		if !in.Kind.HasSource() { // the tasks of this execution have ended
			in.Time = t.out.Events[0].Time
			t.out.Continued.PassOn(in)
		}
	}
}

// newSuccessor returns the execution that continues as new (R3). Its version is the version that the start of the
// instance has requested. If the start has requested none, it is the highest registered version.
func (t *turn) newSuccessor() *provider.Successor {
	out := &t.out
	start := *t.x.Start()
	start.Time = out.Events[0].Time
	start.Number++
	start.StartAt = nil
	start.Input, start.CarriedEvents, start.EventIDs = out.Continued.Input, out.Continued.Events, out.Continued.EventIDs
	start.Inputs = out.Continued.Inputs
	start.TraceParent = out.Events[0].TraceParent

	executionID := provider.NewExecutionID(t.o.Clock(), t.item.InstanceID, t.x.Head().ExecutionID)
	out.Events[len(out.Events)-1].ExecutionID = executionID
	return &provider.Successor{ExecutionID: executionID, Start: start}
}

// maxExecutions is the maximum number of executions that an invocation begins. Code that only continues as new must not
// hold the function until it is killed.
const maxExecutions = 100

// finish begins the next execution if the turn continues as new, and otherwise passes a long chain of inline activities
// to another invocation. It returns done if another invocation continues the instance.
func (t *turn) finish(ctx context.Context) (state, error) {
	if t.commit.Next == nil {
		return acknowledging, t.leaveChain(ctx)
	}
	previous := t.x
	err := t.loadFrom(ctx, &provider.Orchestration{
		InstanceID: t.commit.InstanceID, Head: t.commit.After(), Previous: t.commit.Head.ExecutionID, Verified: true,
		Segments: []provider.Segment{t.commit.Next.Segment(t.commit.Watermark)},
	})
	if err != nil {
		return done, err
	}
	t.x.Recipient.InheritRejectedEvents(&previous.Recipient)
	if t.executions++; t.executions < maxExecutions {
		return receiving, nil // the first turn runs before any message is acknowledged (R3)
	}
	if t.queue.WillContinue() {
		return done, nil // the messages are redelivered, which has the effect of a wake
	}
	if err := t.passOn(ctx); err != nil {
		return done, err
	}
	t.queue.Acknowledge()
	return done, nil
}
