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
	// On names the spans that have the attribute: turn, activity, wait, client call, link, or all that are started
	// within a turn or an activity.
	On   string
	What string
}

// Attributes returns the attributes of spans.
func Attributes() []Attribute {
	const turn, activity, wait, all = "turn", "activity", "wait", "turn, activity, client call"
	return []Attribute{
		{AttrInstance, "all", "the instance ID, if the client call has one"},
		{AttrExecution, "all", "the execution ID; not on client calls"},
		{AttrActivity, "activity, and all spans inside it", "the activity's ID: that of the event that scheduled it"},
		{AttrName, "turn; client call Start", "the orchestration's name"},
		{AttrVersion, turn, "the orchestration's version, unless this build cannot run it"},
		{AttrSequence, turn, "the number of the turn in its execution, from 1"},
		{AttrReplayed, turn, "whether the instance was replayed in this invocation"},
		{AttrCommitted, turn, "whether the turn was committed; false for a try that is repeated"},
		{AttrEvents, turn, "the number of events that the turn added"},
		{AttrStatus, turn, "the instance's status after the turn"},
		{AttrActivityName, activity, "the activity's name"},
		{AttrAttempt, activity, "the number of the attempt, from 1"},
		{AttrDelivery, activity, "the number of the delivery of the attempt's work item, from 1"},
		{AttrEventName, "client call Raise", "the external event's name"},
		{AttrTask, wait, "the ID of the event that started the wait"},
		{AttrTaskKind, wait, "`timer`, `external_event`, `sub_orchestration`, `sent_event` or `sent_update`"},
		{AttrTaskName, wait, "the name of the event, orchestration or update, or of a named timer"},
		{AttrTaskInstance, wait, "the other instance, if there is one"},
		{AttrTaskEnd, wait, "`completed`, `failed` or `cancelled`"},
		{AttrTaskReason, wait, "the cancel reason"},
		{AttrTaskEndedIn, wait, "the number of the turn that consumed the end"},
		{
			AttrTasksOmitted, turn,
			"the number of waits that ended in the turn and have no span, because there were more than 1,000",
		},
		{attrErrorType, "turn, activity, wait, client call", "the type of the failure or error, if there is one"},
		{attrMessagingSystem, all, "`aws_sqs`"},
		{attrMessagingOperation, all, "`process`, or `send` for a client call"},
		{attrMessagingOperationName, all, "`turn`, `activity`, or the name of the call"},
		{attrMessagingDestination, activity, "the work queue's name"},
		{attrMessagingCount, turn, "the number of messages that the turn may consume"},
		{attrInvocation, "turn, activity", "the request ID of the Lambda invocation, if there is one"},
		{
			AttrLink, "link",
			"the target of the link: `start`, `message`, `previous` (the previous turn), `awaited` (the turn " +
				"that scheduled a task whose result this turn consumes) or `ended` (a wait that ended in this turn, " +
				"for the first 32)",
		},
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
