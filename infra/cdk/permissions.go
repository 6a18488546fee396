package cdk

import (
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
	"github.com/aws/jsii-runtime-go"
)

// Each list names single actions: no role of a hub holds a wildcard action.
// TransactWriteItems needs no action of its own but those of its parts.
var (
	readItems   = []string{"dynamodb:GetItem", "dynamodb:Query"}
	writeItems  = []string{"dynamodb:PutItem", "dynamodb:UpdateItem"}
	checkItems  = []string{"dynamodb:ConditionCheckItem"} // the fence of retries, R14
	deleteItems = []string{"dynamodb:DeleteItem"}         // deletion, R17
	consume     = []string{
		"sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility", "sqs:GetQueueAttributes",
	}
)

const (
	send = "sqs:SendMessage"
	lock = "sqs:ChangeMessageVisibility"
)

// permissions are those of a hub's functions.
type permissions struct{ *TaskHub }

// orchestratorPermissions: it commits turns and sends whatever they say.
func (h permissions) orchestratorPermissions() []awsiam.PolicyStatement {
	return append([]awsiam.PolicyStatement{
		allow(h.tableARNs(), concat(readItems, writeItems, checkItems)...),
		allow(arns(h.Inbox), concat(consume, []string{send})...),
		allow(append(h.workQueueARNs(), arns(h.Timers, h.InboxDeadLetters)...), send),
		allow([]string{h.schedule.schedulesARN}, "scheduler:DeleteSchedule"), // a cancelled timer, R15
	}, payloadPermissions(h.TaskHub, getPayload, putPayload)...)
}

// workerPermissions: it runs the activities of one queue, sends some anew there and
// copies poison messages to that queue's dead letters (R13).
func (h permissions) workerPermissions(work WorkQueue) []awsiam.PolicyStatement {
	all := []awsiam.PolicyStatement{
		allow(h.tableARNs(), concat(readItems, writeItems)...),
		allow(work.arns(), concat(consume, []string{send})...),
		allow(append(arns(h.Inbox, work.DeadLetters), work.exclusiveDeadLetterARNs()...), send),
	}
	if h.queueProps(work.Name).Client {
		all = append(all, allow(h.tableARNs(indexByCreation, indexByAttention), readItems...), allow(arns(h.Timers), send), h.askPermission())
	}
	return append(all, payloadPermissions(h.TaskHub, getPayload, putPayload)...)
}

// renewerPermissions: it keeps the timers, picks up what queues have moved to their
// dead letters (R13) and sends it on, finishes deletions (R17), deletes what need not
// be kept any longer (R21), revives what is stuck, counts what no worker takes, and
// extends the locks of work items for workers that are not functions of the hub.
func (h permissions) renewerPermissions() []awsiam.PolicyStatement {
	passRole := allow([]string{*h.schedule.role.RoleArn()}, "iam:PassRole")
	passRole.AddCondition(jsii.String("StringEquals"),
		map[string]string{"iam:PassedToService": "scheduler.amazonaws.com"})
	return append([]awsiam.PolicyStatement{
		allow(h.tableARNs(indexByCreation, indexByAttention, indexByDue), concat(readItems, writeItems, deleteItems)...),
		allow(append(namedARNs(h.deadLetters()), arns(h.Timers)...), concat(consume, []string{send})...),
		allow(arns(h.Inbox), send),
		allow(h.workQueueARNs(), "sqs:GetQueueAttributes", lock, send),
		allow([]string{h.schedule.schedulesARN}, "scheduler:CreateSchedule", "scheduler:UpdateSchedule", "scheduler:DeleteSchedule"),
		passRole,
	}, payloadPermissions(h.TaskHub, deletePayloads)...)
}

// apiPermissions: what a client may do, and no more; where it was asked for, also what who deals
// with dead letters needs. A redrive sends to the inbox and the timers queue too, which the API may anyway.
func (h permissions) apiPermissions() []awsiam.PolicyStatement {
	var more []awsiam.PolicyStatement
	if h.props.DeadLetters {
		more = []awsiam.PolicyStatement{allow(namedARNs(h.deadLetters()), consume...), allow(h.workQueueARNs(), send)}
	}
	more = append(more, payloadPermissions(h.TaskHub, getPayload, putPayload, deletePayloads)...)
	return append([]awsiam.PolicyStatement{
		allow(h.tableARNs(indexByCreation, indexByAttention), concat(readItems, writeItems, deleteItems)...),
		allow(arns(h.Inbox, h.Timers), send),
		allow([]string{h.schedule.schedulesARN}, "scheduler:DeleteSchedule"), // of the timers of a deleted instance, R17
		h.askPermission(),
	}, more...)
}

// askPermission: a query invokes the orchestrator function, which can be handed forged messages as well. So it is full control of the hub.
func (h permissions) askPermission() awsiam.PolicyStatement {
	return allow([]string{h.asked()}, "lambda:InvokeFunction")
}

func (h *TaskHub) tableARNs(indexes ...string) []string {
	all := []string{*h.Table.TableArn()}
	for _, index := range indexes {
		all = append(all, *h.Table.TableArn()+"/index/"+index)
	}
	return all
}

func (h *TaskHub) workQueueARNs() []string { return namedARNs(h.workQueues()) }

func namedARNs(queues []namedQueue) []string {
	all := make([]string, 0, len(queues))
	for _, q := range queues {
		all = append(all, *q.queue.QueueArn())
	}
	return all
}

// arns are those of a work queue, and of the one for exclusive keys beside it.
func (w WorkQueue) arns() []string {
	if w.Exclusive == nil {
		return arns(w.Queue)
	}
	return arns(w.Queue, w.Exclusive)
}

func (w WorkQueue) exclusiveDeadLetterARNs() []string {
	if w.Exclusive == nil {
		return nil
	}
	return arns(w.ExclusiveDeadLetters)
}

func arns(queues ...awssqs.Queue) []string {
	all := make([]string, 0, len(queues))
	for _, q := range queues {
		all = append(all, *q.QueueArn())
	}
	return all
}

func concat(lists ...[]string) []string {
	var all []string
	for _, list := range lists {
		all = append(all, list...)
	}
	return all
}

func allow(resources []string, actions ...string) awsiam.PolicyStatement {
	return awsiam.NewPolicyStatement(&awsiam.PolicyStatementProps{
		Actions:   jsii.Strings(actions...),
		Resources: jsii.Strings(resources...),
	})
}

func policyDocument(statements ...awsiam.PolicyStatement) awsiam.PolicyDocument {
	return awsiam.NewPolicyDocument(&awsiam.PolicyDocumentProps{Statements: &statements})
}
