// Package execution holds the current execution of an instance in memory. An execution has its code, replayed up to a
// head, and the state of its history at that head.
package execution

import (
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch/internal/tasks"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// Execution is an execution of an instance at a head. Only one session uses it at a time.
type Execution struct {
	// The parts of an execution. Each is changed only by its own methods.
	Code      Code
	Index     Index
	Recipient Recipient
	// Tasks are the open tasks for interceptors. It is nil if no interceptor needs them.
	Tasks *tasks.Open

	head provider.Head
	// verified is set if the head was read with strong consistency, or written, in this invocation (R5).
	verified bool
	// due is set if a turn is due in this invocation even if no message has an input, such as the first turn.
	due bool
	// read is the history as read in this invocation. It is nil if the execution is warm.
	read *provider.Orchestration
	// state is the fold of the history up to the head.
	state *history.State
	// coverage records whether a message refers to the outputs of the last turns.
	coverage coverage
	// cancels are the cancels of the last turns.
	cancels provider.CancelBlock
	// retention is the time for which the instance is kept after its end. 0 means forever.
	retention time.Duration
	// start is the first event of the execution, without its payloads.
	start history.Event
}

// Head returns the head of the history.
func (x *Execution) Head() provider.Head { return x.head }

// State returns the state of the history at the head. The caller must not change it.
func (x *Execution) State() *history.State { return x.state }

// Start returns the first event of the execution, without its payloads. The caller must not change it.
func (x *Execution) Start() *history.Event { return &x.start }

// Read returns the history if it was read in this invocation and nothing was committed since. Otherwise it returns nil.
func (x *Execution) Read() *provider.Orchestration { return x.read }

// Verified reports whether the head was read with strong consistency, or written, in this invocation (R5).
func (x *Execution) Verified() bool { return x.verified }

// MarkVerified records that a read with strong consistency has shown the same head.
func (x *Execution) MarkVerified() { x.verified = true }

// Due reports whether a turn is due even if no message has an input.
func (x *Execution) Due() bool { return x.due }

// ClearDue records that no turn is due, because it had no effect or another invocation runs it.
func (x *Execution) ClearDue() { x.due = false }

// Ended reports whether the execution has ended.
func (x *Execution) Ended() bool { return x.state.Ended() }

// Paused reports whether the execution is paused.
func (x *Execution) Paused() bool { return x.state.Paused != nil }

// IsBehind reports whether a message was sent after the segment at the head (R5).
func (x *Execution) IsBehind(messages []provider.InboxMessage) bool {
	for i := range messages {
		if messages[i].ExecutionID == x.head.ExecutionID && messages[i].Segment > x.head.Segment {
			return true
		}
	}
	return false
}

// HasUncoveredOutputs reports whether the last segment can have unsent outputs to which no message refers. Its turn
// took only parked inputs (R4), or it is a restart (R30).
func (x *Execution) HasUncoveredOutputs() bool { return x.coverage.none || x.state.RestartPending() }

// PayloadInfo describes the payloads of the execution to codecs.
func (x *Execution) PayloadInfo(instanceID string) perdure.PayloadInfo {
	return perdure.PayloadInfo{InstanceID: instanceID, ExecutionID: x.head.ExecutionID}
}

// OpenActivity reports whether an activity is open: it has neither ended nor been cancelled. ending is set if it was
// cancelled and its end is awaited. known is false if neither the code nor the history is loaded.
func (x *Execution) OpenActivity(id int64) (open, ending, known bool) {
	if x.Code.Instance != nil {
		open, ending = x.Code.OpenActivity(id)
		return open, ending, true
	}
	if !x.state.Tracks(history.TrackOpen) {
		if x.read == nil {
			return false, false, false
		}
		x.state = x.read.State(history.TrackOpen)
	}
	a, there := x.state.Open(id)
	if !there || a.Kind != history.ActivityScheduled || a.OutcomeParked {
		return false, false, true
	}
	cancelled := a.Cancelled || a.CancelRequestParked
	return !cancelled, cancelled && a.WaitsForCancellation, true
}

// NewTurn returns a turn with events that follow the head. It has consumed no message.
func (x *Execution) NewTurn(instanceID string, events []history.Event) provider.Turn {
	t := provider.Turn{
		InstanceID: instanceID, Head: x.head, Watermark: x.head.Watermark, Before: x.state, Events: events,
		Retention: x.retention, Cancels: provider.CancelsOf(events),
	}
	if last := x.cancels.Last; len(t.Cancels) > 0 {
		t.CancelsAfter = &last
	}
	_, t.CancelBlock = x.cancels.Add(t.Head.Segment+1, t.Cancels)
	return t
}

// Number sets the IDs and times of events that follow the head and were not caused by code.
func (x *Execution) Number(now time.Time, events ...history.Event) []history.Event {
	for i := range events {
		events[i].ID, events[i].Time = x.state.LastID+1+int64(i), now.UTC()
	}
	return events
}

// EventsToEnd returns an end that was not caused by code, after the cancels of all open tasks. It requires Read.
func (x *Execution) EventsToEnd(end history.Event) []history.Event {
	return history.EventsToEnd(x.read.State(history.TrackOpen), history.TerminalReason(end.Kind), end)
}

// Commit applies a committed turn. consumed is set if the turn has consumed messages.
func (x *Execution) Commit(t *provider.Turn, consumed bool) {
	x.state.Apply(t.Events...)
	x.head, x.verified, x.read = t.After(), true, nil
	x.due = x.state.IsDue()
	x.Index.add(t.Events)
	x.cancels, _ = x.cancels.Add(t.Head.Segment+1, t.Cancels)
	x.coverage.apply(t.Events, consumed)
	if x.Ended() { // a waiting message may join an update that this turn has ended
		x.Recipient.responses = nil
	}
}

// PrepareForCache prepares the execution for the cache. A later invocation must verify the head again.
func (x *Execution) PrepareForCache() { x.verified, x.read, x.Recipient.responses = false, nil, nil }

// DiscardCode discards code that cannot continue. why is the reason.
func (x *Execution) DiscardCode(why error) {
	x.Code.broken = why
	x.Close()
}

// Close ends the coroutines of the code.
func (x *Execution) Close() { x.Code.Close() }

// executionBytes is the approximate size of an execution without its code.
const executionBytes = 2 << 10

// bytes returns the approximate size of the execution in memory.
func (x *Execution) bytes() int {
	if x.Code.Instance == nil {
		return executionBytes + x.state.OpenCount()*tasks.OpenItemBytes + x.Tasks.Bytes()
	}
	return x.Code.Bytes() + len(x.state.CustomStatus) + x.Tasks.Bytes()
}
