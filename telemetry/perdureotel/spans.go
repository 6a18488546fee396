package perdureotel

import "go.opentelemetry.io/otel/attribute"

// Span attributes of perdure. Attributes describes them.
const (
	AttrInstance     = attribute.Key("perdure.instance.id")
	AttrExecution    = attribute.Key("perdure.execution.id")
	AttrName         = attribute.Key("perdure.orchestration.name")
	AttrVersion      = attribute.Key("perdure.orchestration.version")
	AttrSequence     = attribute.Key("perdure.turn.sequence")
	AttrReplayed     = attribute.Key("perdure.turn.replayed")
	AttrCommitted    = attribute.Key("perdure.turn.committed")
	AttrEvents       = attribute.Key("perdure.turn.events")
	AttrStatus       = attribute.Key("perdure.instance.status")
	AttrActivity     = attribute.Key("perdure.activity.id")
	AttrActivityName = attribute.Key("perdure.activity.name")
	AttrAttempt      = attribute.Key("perdure.activity.attempt")
	AttrDelivery     = attribute.Key("perdure.activity.delivery")
	AttrEventName    = attribute.Key("perdure.event.name")
	AttrTask         = attribute.Key("perdure.task.id")
	AttrTaskKind     = attribute.Key("perdure.task.kind")
	AttrTaskName     = attribute.Key("perdure.task.name")
	AttrTaskInstance = attribute.Key("perdure.task.instance.id")
	AttrTaskOutcome  = attribute.Key("perdure.task.end")
	AttrTaskReason   = attribute.Key("perdure.task.reason")
	AttrTaskEndedIn  = attribute.Key("perdure.task.ended_in")
	AttrTasksOmitted = attribute.Key("perdure.turn.waits_omitted")
	AttrLink         = attribute.Key("perdure.link")
)

// Attribute describes a span attribute, for documentation.
type Attribute struct {
	Key attribute.Key
	// Spans is the kind of span that has the attribute: turn, activity, wait, client call, link, or all spans that are
	// started in a turn or an activity.
	Spans string
	// Description describes the attribute.
	Description string
}

// Attributes lists all attributes of spans.
func Attributes() []Attribute {
	const turn, activity, wait, all = "turn", "activity", "wait", "turn, activity, client call"
	return []Attribute{
		{AttrInstance, "all", "instance ID, if the call has one"},
		{AttrExecution, "all", "execution ID; not on client calls"},
		{AttrActivity, "activity and all spans in it", "ID of the event that scheduled it"},
		{AttrName, "turn; client call Start", "orchestration name"},
		{AttrVersion, turn, "version; missing if this build cannot run it"},
		{AttrSequence, turn, "number in the execution, from 1"},
		{AttrReplayed, turn, "whether the invocation replayed the instance"},
		{AttrCommitted, turn, "whether the turn was committed; false if it is repeated"},
		{AttrEvents, turn, "number of added events"},
		{AttrStatus, turn, "status after the turn"},
		{AttrActivityName, activity, "activity name"},
		{AttrAttempt, activity, "attempt, from 1"},
		{AttrDelivery, activity, "delivery of the attempt, from 1"},
		{AttrEventName, "client call Raise", "event name"},
		{AttrTask, wait, "ID of the event that started the wait"},
		{AttrTaskKind, wait, "`timer`, `external_event`, `sub_orchestration`, `sent_event` or `sent_update`"},
		{AttrTaskName, wait, "name, if there is one"},
		{AttrTaskInstance, wait, "ID of the other instance, if there is one"},
		{AttrTaskOutcome, wait, "`completed`, `failed` or `cancelled`"},
		{AttrTaskReason, wait, "cancel reason"},
		{AttrTaskEndedIn, wait, "number of the turn that processed the end"},
		{AttrTasksOmitted, turn, "number of ended waits beyond 1,000, which have no span"},
		{attrErrorType, "turn, activity, wait, client call", "type of the failure or error"},
		{attrMessagingSystem, all, "`aws_sqs`"},
		{attrMessagingOperation, all, "`process`, or `send` for a client call"},
		{attrMessagingOperationName, all, "`turn`, `activity` or the client call"},
		{attrMessagingDestination, activity, "work queue"},
		{attrMessagingCount, turn, "number of available messages"},
		{attrInvocation, "turn, activity", "request ID of the Lambda invocation"},
		{AttrLink, "link", "target of the link: `start`, `message`, `previous` (turn), `awaited` (the turn that " +
			"scheduled a task that has ended) or `ended` (a wait that ended in this turn, at most 32)"},
	}
}

// The attributes of OpenTelemetry's semantic conventions 1.44.
const (
	attrErrorType              = attribute.Key("error.type")
	attrMessagingSystem        = attribute.Key("messaging.system")
	attrMessagingOperation     = attribute.Key("messaging.operation.type")
	attrMessagingOperationName = attribute.Key("messaging.operation.name")
	attrMessagingDestination   = attribute.Key("messaging.destination.name")
	attrMessagingCount         = attribute.Key("messaging.batch.message_count")
	attrInvocation             = attribute.Key("faas.invocation_id")
)

// messaging returns the attributes of a span that sends or processes SQS messages.
func messaging(kind, name string) []attribute.KeyValue {
	return []attribute.KeyValue{
		attrMessagingSystem.String("aws_sqs"), attrMessagingOperation.String(kind),
		attrMessagingOperationName.String(name),
	}
}
