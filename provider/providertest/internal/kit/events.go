package kit

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// Names for tests.
const (
	Order  = "order"
	Refund = "refund"
	V1     = "1.0.0"
	Pack   = "pack"
)

// TurnStarted returns the first event of a turn.
func TurnStarted() history.Event {
	return history.Event{Kind: history.TurnStarted, Version: V1, BuildID: "b"}
}

// Activity returns the event that schedules an activity.
func Activity(queue string) history.Event {
	return history.Event{Kind: history.ActivityScheduled, Name: Pack, Queue: queue, Input: history.Payload(`"box"`)}
}

// Completed returns the event that completes an activity.
func Completed(id int64) history.Event {
	return history.Event{
		Kind: history.ActivityCompleted, SourceEventID: id, Result: history.Payload(`"ok"`), Attempt: 1,
	}
}

// Timer returns the event that creates a timer.
func Timer(due time.Time) history.Event {
	return history.Event{Kind: history.TimerCreated, FireAt: &due}
}

// Child returns the event that schedules the sub-orchestration c.
func Child() history.Event {
	const id = "c"
	return history.Event{
		Kind: history.SubOrchestrationScheduled, Name: Refund, InstanceID: id, StartID: "start of " + id,
		Input: history.Payload(`7`), Attempt: 1,
	}
}

// Detached returns the event that starts a detached orchestration.
func Detached(id string) history.Event {
	return history.Event{
		Kind: history.DetachedOrchestrationScheduled, Name: Refund, InstanceID: id, StartID: "start of " + id,
		Input: history.Payload(`7`),
	}
}

// Ended returns the event that completes the execution.
func Ended(output string) history.Event {
	return history.Event{Kind: history.OrchestrationCompleted, Output: history.Payload(output)}
}

// Bulky returns an event of this size that does not compress.
func Bulky(bytes int) history.Event {
	return history.Event{Kind: history.SideEffectRecorded, Value: Noise(bytes)}
}

// Repeat returns n copies of the event.
func Repeat(n int, e history.Event) []history.Event {
	events := make([]history.Event, n)
	for i := range events {
		events[i] = e
	}
	return events
}

// Noise returns a JSON string of this size. Compression reduces it to at least three quarters.
func Noise(bytes int) history.Payload {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	doc := make([]byte, bytes)
	x := uint64(88172645463325252) // xorshift64: the same noise every time
	for i := range doc {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		doc[i] = letters[x>>58]
	}
	doc[0], doc[bytes-1] = '"', '"'
	return history.Payload(doc)
}

// Beat returns an activity record with the details of a heartbeat.
func Beat(id int64, at time.Time, details string) provider.ActivityRecord {
	return provider.ActivityRecord{ActivityID: id, LastHeartbeatAt: at, Details: json.RawMessage(details)}
}

// Parked returns the event of a build that blocks an instance.
func Parked(build string, inputs ...history.Event) history.Event {
	return history.Event{Kind: history.InputsParked, BuildID: build, Inputs: inputs, Error: &history.Failure{
		Type: history.TypeNondeterminism, Message: "m", Expected: "a", Got: "b", EventID: 3,
	}}
}

// StartMessageOf returns the message of a start from a parent.
func StartMessageOf(id, startID string) *provider.InboxMessage {
	return &provider.InboxMessage{
		Message: provider.Message{
			V: provider.WireVersion, Kind: provider.MessageStart, InstanceID: id, Name: Refund, Version: V1,
			Input: history.Payload(`7`), StartID: startID,
			Parent: &history.Parent{InstanceID: "p", ExecutionID: "px", EventID: 5},
		},
		Position: At(9),
	}
}

// Exclusively returns the event that schedules an activity with an exclusive key (R29).
func Exclusively(queue, key string) history.Event {
	e := Activity(history.ExclusiveQueue(queue))
	e.ExclusiveKey = key
	return e
}

// FailedEnd returns a terminal event with a failure and its cause.
func FailedEnd() history.Event {
	return history.Event{
		Kind:  history.OrchestrationFailed,
		Error: &history.Failure{Type: "T", Message: "m", Cause: &history.Failure{Type: "C", Message: "c"}},
	}
}

// Fired returns the message of a timer that fired.
func Fired(id string, timerID int64) provider.Message {
	return provider.Message{Kind: provider.MessageTimerFired, InstanceID: id, ExecutionID: "x-" + id, TimerID: timerID}
}

// Record returns a record that no queue has delivered.
func Record(n int, body string) provider.Record {
	return provider.Record{
		ID: fmt.Sprint("m", n), ReceiptHandle: fmt.Sprint("lock", n), Body: body, Group: "g", Sequence: strconv.Itoa(n),
		ReceiveCount: 1,
	}
}

// Raised returns an external event.
func Raised(id string, data history.Payload) history.Event {
	return history.Event{Kind: history.ExternalEventRaised, Name: "n", EventID: id, Data: data}
}

// EventMessage returns the message of an event from the sender p.
func EventMessage(to, executionID string, eventID int64) *provider.InboxMessage {
	return &provider.InboxMessage{Message: provider.Message{
		V: provider.WireVersion, Kind: provider.MessageEventSent, InstanceID: to, Name: "n",
		EventID: provider.StartID(executionID, eventID),
		Parent:  &history.Parent{InstanceID: "p", ExecutionID: executionID, EventID: eventID},
	}}
}

// TimerDue returns a timer of the execution x.
func TimerDue(n int64, due time.Time) provider.Timer {
	return provider.Timer{
		V: provider.WireVersion, InstanceID: "a", ExecutionID: "x", Segment: 1, TimerID: n, FireAt: due,
	}
}
