package perdureotel

import "go.opentelemetry.io/otel/attribute"

// The attributes of spans that are perdure's own.
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
	AttrTaskEnd      = attribute.Key("perdure.task.end")
	AttrTaskReason   = attribute.Key("perdure.task.reason")
	AttrTaskEndedIn  = attribute.Key("perdure.task.ended_in")
	AttrTasksOmitted = attribute.Key("perdure.turn.waits_omitted")
	AttrLink         = attribute.Key("perdure.link")
)

// Attribute is an attribute of spans, for documentation.
type Attribute struct {
	Key attribute.Key
	// On says which spans have it: turn, activity, wait, client call, link, or all that are started within one of the first two.
	On   string
	What string
}

// Attributes lists the attributes that spans have.
func Attributes() []Attribute {
	const turn, activity, wait, all = "turn", "activity", "wait", "turn, activity, client call"
	return []Attribute{
		{AttrInstance, "all", "the instance's id; of a client call that has one"},
		{AttrExecution, "all", "the execution's id; not of client calls"},
		{AttrActivity, "activity, and all within it", "the activity's id: that of the event that scheduled it"},
		{AttrName, "turn; client call Start", "the orchestration's name"},
		{AttrVersion, turn, "its version; not where this build cannot run it"},
		{AttrSequence, turn, "which turn of the execution, from 1"},
		{AttrReplayed, turn, "it was rebuilt from history in this invocation"},
		{AttrCommitted, turn, "it is history; false of a try that is repeated"},
		{AttrEvents, turn, "how many events it has added"},
		{AttrStatus, turn, "the instance's status after it"},
		{AttrActivityName, activity, "its name"},
		{AttrAttempt, activity, "which try of its retry policy, from 1"},
		{AttrDelivery, activity, "which delivery of the attempt's message, from 1"},
		{AttrEventName, "client call Raise", "the external event's name"},
		{AttrTask, wait, "the id of the event that began it"},
		{AttrTaskKind, wait, "`timer`, `external_event`, `sub_orchestration`, `sent_event` or `sent_update`"},
		{AttrTaskName, wait, "the name of the event, the orchestration or the update; of a timer that was given one"},
		{AttrTaskInstance, wait, "the other instance, where there is one"},
		{AttrTaskEnd, wait, "`completed`, `failed` or `cancelled`"},
		{AttrTaskReason, wait, "why it was cancelled"},
		{AttrTaskEndedIn, wait, "which turn took its end"},
		{AttrTasksOmitted, turn, "how many of the waits that have ended in it have no span, since there were more than 1,000"},
		{attrErrorType, "turn, activity, wait, client call", "the type of the failure or error, where there is one"},
		{attrMessagingSystem, all, "`aws_sqs`"},
		{attrMessagingOperation, all, "`process`, of a client call `send`"},
		{attrMessagingOperationName, all, "`turn`, `activity`, or the name of the call"},
		{attrMessagingDestination, activity, "the work queue's name"},
		{attrMessagingCount, turn, "how many messages it may take"},
		{attrInvocation, "turn, activity", "the request id of the Lambda invocation, where there is one"},
		{AttrLink, "link", "what the link leads to: `start`, `message`, `previous` (the turn before), `awaited` (a turn that scheduled what this one comes back to) or `ended` (a wait that has ended in this turn; of the first 32)"},
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

// messaging are the attributes of a span that is about messages of SQS.
func messaging(kind, name string) []attribute.KeyValue {
	return []attribute.KeyValue{attrMessagingSystem.String("aws_sqs"), attrMessagingOperation.String(kind), attrMessagingOperationName.String(name)}
}
