package cdk

import (
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
	"github.com/aws/jsii-runtime-go"
)

// Roles have no wildcard actions. TransactWriteItems needs the actions of its parts.
var (
	readItems   = []string{"dynamodb:GetItem", "dynamodb:Query"}
	writeItems  = []string{"dynamodb:PutItem", "dynamodb:UpdateItem"}
	checkItems  = []string{"dynamodb:ConditionCheckItem"} // for retries
	deleteItems = []string{"dynamodb:DeleteItem"}         // for purges
	consume     = []string{
		"sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility", "sqs:GetQueueAttributes",
	}
)

const (
	send = "sqs:SendMessage"
	lock = "sqs:ChangeMessageVisibility"
)

// permissions creates the permissions of a hub's functions.
type permissions struct{ *TaskHub }

// orchestratorPermissions permits committing turns and sending their messages, work items and timers.
func (h permissions) orchestratorPermissions() []awsiam.PolicyStatement {
	return append([]awsiam.PolicyStatement{
		allow(h.tableARNs(), concat(readItems, writeItems, checkItems)...),
		allow(arns(h.Inbox), concat(consume, []string{send})...),
		allow(append(h.workQueueARNs(), arns(h.Timers, h.InboxDeadLetters)...), send),
		allow([]string{h.schedule.schedulesARN}, "scheduler:DeleteSchedule"), // for cancelled timers
	}, payloadPermissions(h.TaskHub, getPayload, putPayload)...)
}

// workerPermissions permits running the activities of a queue, resending work items and moving poison messages to the
// dead-letter queue.
func (h permissions) workerPermissions(work WorkQueue) []awsiam.PolicyStatement {
	all := []awsiam.PolicyStatement{
		allow(h.tableARNs(), concat(readItems, writeItems)...),
		allow(work.arns(), concat(consume, []string{send})...),
		allow(append(arns(h.Inbox, work.DeadLetters), work.exclusiveDeadLetterARNs()...), send),
	}
	if h.queueProps(work.Name).Client {
		all = append(all, allow(h.tableARNs(indexByCreation, indexByAttention), readItems...),
			allow(arns(h.Timers), send), h.askPermission())
	}
	return append(all, payloadPermissions(h.TaskHub, getPayload, putPayload)...)
}

// renewerPermissions permits handling timers, recovering dead letters, continuing deletions, applying retention, waking
// stuck instances, counting work items without a worker, and extending the locks of external workers.
func (h permissions) renewerPermissions() []awsiam.PolicyStatement {
	passRole := allow([]string{*h.schedule.role.RoleArn()}, "iam:PassRole")
	passRole.AddCondition(jsii.String("StringEquals"),
		map[string]string{"iam:PassedToService": "scheduler.amazonaws.com"})
	return append([]awsiam.PolicyStatement{
		allow(h.tableARNs(indexByCreation, indexByAttention, indexByDue),
			concat(readItems, writeItems, deleteItems)...),
		allow(append(namedARNs(h.deadLetters()), arns(h.Timers)...), concat(consume, []string{send})...),
		allow(arns(h.Inbox), send),
		allow(h.workQueueARNs(), "sqs:GetQueueAttributes", lock, send),
		allow([]string{h.schedule.schedulesARN}, "scheduler:CreateSchedule", "scheduler:UpdateSchedule",
			"scheduler:DeleteSchedule"),
		passRole,
	}, payloadPermissions(h.TaskHub, deletePayloads)...)
}

// apiPermissions permits the operations of a client, and access to dead letters if DeadLetters is set. A redrive also
// sends to the inbox and the timers queue, which the API can do in any case.
func (h permissions) apiPermissions() []awsiam.PolicyStatement {
	var more []awsiam.PolicyStatement
	if h.props.DeadLetters {
		more = []awsiam.PolicyStatement{allow(namedARNs(h.deadLetters()), consume...), allow(h.workQueueARNs(), send)}
	}
	more = append(more, payloadPermissions(h.TaskHub, getPayload, putPayload, deletePayloads)...)
	return append([]awsiam.PolicyStatement{
		allow(h.tableARNs(indexByCreation, indexByAttention), concat(readItems, writeItems, deleteItems)...),
		allow(arns(h.Inbox, h.Timers), send),
		allow([]string{h.schedule.schedulesARN}, "scheduler:DeleteSchedule"), // for timers of purged instances
		h.askPermission(),
	}, more...)
}

// askPermission permits queries. It is full control of the hub, because an invocation of the orchestrator can contain
// any message.
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

// arns returns the ARNs of a work queue and its queue for exclusive keys.
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
