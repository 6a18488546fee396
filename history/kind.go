package history

// Kind is the kind of an event. Histories store these strings, so they never change.
type Kind string

// The kinds of events.
const (
	// Starts of executions and turns.
	OrchestrationStarted Kind = "OrchestrationStarted"
	TurnStarted          Kind = "TurnStarted"

	// Activities.
	ActivityScheduled       Kind = "ActivityScheduled"
	ActivityRetryScheduled  Kind = "ActivityRetryScheduled"
	ActivityCompleted       Kind = "ActivityCompleted"
	ActivityFailed          Kind = "ActivityFailed"
	ActivityCancelRequested Kind = "ActivityCancelRequested"

	// Timers.
	TimerCreated   Kind = "TimerCreated"
	TimerFired     Kind = "TimerFired"
	TimerCancelled Kind = "TimerCancelled"

	// Sub-orchestrations.
	SubOrchestrationScheduled       Kind = "SubOrchestrationScheduled"
	SubOrchestrationCompleted       Kind = "SubOrchestrationCompleted"
	SubOrchestrationFailed          Kind = "SubOrchestrationFailed"
	SubOrchestrationCancelRequested Kind = "SubOrchestrationCancelRequested"
	SubOrchestrationCancelFailed    Kind = "SubOrchestrationCancelFailed"
	DetachedOrchestrationScheduled  Kind = "DetachedOrchestrationScheduled"

	// Outputs that could not be sent.
	OutputFailed Kind = "OutputFailed"

	// External events.
	ExternalEventSubscribed Kind = "ExternalEventSubscribed"
	ExternalEventRaised     Kind = "ExternalEventRaised"

	// External events that the orchestration sends to another instance.
	ExternalEventSent        Kind = "ExternalEventSent"
	ExternalEventDelivered   Kind = "ExternalEventDelivered"
	ExternalEventUndelivered Kind = "ExternalEventUndelivered"

	// Updates. An update that arrives before the code has started is received, and accepted or rejected later.
	UpdateReceived  Kind = "UpdateReceived"
	UpdateAccepted  Kind = "UpdateAccepted"
	UpdateRejected  Kind = "UpdateRejected"
	UpdateCompleted Kind = "UpdateCompleted"
	// UpdateAwaited means that an orchestration waits for the result of an update. It occurs before the update or while
	// the update runs.
	UpdateAwaited Kind = "UpdateAwaited"

	// Updates that the orchestration sends to another instance.
	UpdateSent     Kind = "UpdateSent"
	UpdateAnswered Kind = "UpdateAnswered"

	// Other decisions of the code.
	SideEffectRecorded Kind = "SideEffectRecorded"
	CustomStatusSet    Kind = "CustomStatusSet"
	VersionMarked      Kind = "VersionMarked"

	// Requests to the instance, and parked inputs. ExecutionSuspended records a pause and ExecutionResumed its end.
	// InputsParked stores the inputs of a paused instance, or of one whose code cannot process them.
	CancelRequested    Kind = "CancelRequested"
	InputsParked       Kind = "InputsParked"
	ExecutionSuspended Kind = "ExecutionSuspended"
	ExecutionResumed   Kind = "ExecutionResumed"
	// ExecutionRestarted means that the events before it were copied from another instance, and that the execution
	// continues from them.
	ExecutionRestarted Kind = "ExecutionRestarted"

	// Ends of executions.
	OrchestrationCompleted      Kind = "OrchestrationCompleted"
	OrchestrationFailed         Kind = "OrchestrationFailed"
	OrchestrationCancelled      Kind = "OrchestrationCancelled"
	OrchestrationTerminated     Kind = "OrchestrationTerminated"
	OrchestrationContinuedAsNew Kind = "OrchestrationContinuedAsNew"
)

// traits are the properties of a kind. Every kind of this release has a row.
type traits struct {
	input    bool // input event; other events are decisions that a replay compares, or marks of turns
	sourced  bool // has SourceEventID or SourceEventIDs
	terminal bool // last event of its execution
}

func (k Kind) traits() (traits, bool) {
	switch k {
	case OrchestrationStarted, TurnStarted, InputsParked:
		return traits{}, true
	case ActivityRetryScheduled, ActivityCompleted, ActivityFailed, TimerFired, OutputFailed,
		SubOrchestrationCompleted, SubOrchestrationFailed, SubOrchestrationCancelFailed, ExternalEventDelivered,
		ExternalEventUndelivered, UpdateAnswered:
		return traits{input: true, sourced: true}, true
	case ExternalEventRaised, UpdateReceived, UpdateAccepted, UpdateRejected, UpdateAwaited, CancelRequested,
		ExecutionSuspended, ExecutionResumed, ExecutionRestarted:
		return traits{input: true}, true
	case ActivityCancelRequested, TimerCancelled, SubOrchestrationCancelRequested, UpdateCompleted:
		return traits{sourced: true}, true
	case ActivityScheduled, TimerCreated, SubOrchestrationScheduled, DetachedOrchestrationScheduled,
		ExternalEventSubscribed, ExternalEventSent, UpdateSent, SideEffectRecorded, CustomStatusSet, VersionMarked:
		return traits{}, true
	case OrchestrationCompleted, OrchestrationFailed, OrchestrationCancelled, OrchestrationContinuedAsNew:
		return traits{terminal: true}, true
	case OrchestrationTerminated:
		return traits{input: true, terminal: true}, true
	default:
		return traits{}, false
	}
}

// Known reports whether this release supports the kind.
func (k Kind) Known() bool {
	_, ok := k.traits()
	return ok
}

// Terminal reports whether an event of this kind is the last event of its execution.
func (k Kind) Terminal() bool {
	t, _ := k.traits()
	return t.terminal
}

// HasSource reports whether an event of this kind has SourceEventID or SourceEventIDs.
func (k Kind) HasSource() bool {
	t, _ := k.traits()
	return t.sourced
}

// Kinds returns all kinds that this release supports.
func Kinds() []Kind {
	return []Kind{
		OrchestrationStarted, TurnStarted,
		ActivityScheduled, ActivityRetryScheduled, ActivityCompleted, ActivityFailed, ActivityCancelRequested,
		TimerCreated, TimerFired, TimerCancelled,
		SubOrchestrationScheduled, SubOrchestrationCompleted, SubOrchestrationFailed, SubOrchestrationCancelRequested,
		SubOrchestrationCancelFailed, DetachedOrchestrationScheduled,
		OutputFailed,
		ExternalEventSubscribed, ExternalEventRaised,
		ExternalEventSent, ExternalEventDelivered, ExternalEventUndelivered,
		UpdateReceived, UpdateAccepted, UpdateRejected, UpdateCompleted, UpdateAwaited,
		UpdateSent, UpdateAnswered,
		SideEffectRecorded, CustomStatusSet, VersionMarked,
		CancelRequested, InputsParked, ExecutionSuspended, ExecutionResumed, ExecutionRestarted,
		OrchestrationCompleted, OrchestrationFailed, OrchestrationCancelled, OrchestrationTerminated,
		OrchestrationContinuedAsNew,
	}
}
