package cdk

import (
	"slices"

	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/jsii-runtime-go"

	"github.com/perdure/perdure/infra/cdk/internal/policy"
)

// permissions creates the permissions of a hub's functions.
type permissions struct{ *TaskHub }

// orchestratorPermissions permits committing turns and sending their messages, work items and timers.
func (h permissions) orchestratorPermissions() []awsiam.PolicyStatement {
	return append([]awsiam.PolicyStatement{
		policy.Allow(h.tableARNs(), slices.Concat(policy.ReadItems, policy.WriteItems, policy.CheckItems)...),
		policy.Allow(policy.ARNs(h.Inbox), slices.Concat(policy.Consume, []string{policy.Send})...),
		policy.Allow(append(h.workQueueARNs(), policy.ARNs(h.Timers, h.InboxDeadLetters)...), policy.Send),
		policy.Allow([]string{h.schedule.schedulesARN}, "scheduler:DeleteSchedule"), // for cancelled timers
	}, payloadPermissions(h.TaskHub, policy.GetPayload, policy.PutPayload)...)
}

// workerPermissions permits running the activities of a queue, resending work items and moving poison messages to the
// dead-letter queue.
func (h permissions) workerPermissions(work WorkQueue) []awsiam.PolicyStatement {
	all := []awsiam.PolicyStatement{
		policy.Allow(h.tableARNs(), slices.Concat(policy.ReadItems, policy.WriteItems)...),
		policy.Allow(policy.ARNs(work.Queue, work.Exclusive), slices.Concat(policy.Consume, []string{policy.Send})...),
		policy.Allow(policy.ARNs(h.Inbox, work.DeadLetters, work.ExclusiveDeadLetters), policy.Send),
	}
	if h.queueProps(work.Name).Client {
		all = append(all, policy.Allow(h.tableARNs(indexByCreation, indexByAttention), policy.ReadItems...),
			policy.Allow(policy.ARNs(h.Timers), policy.Send), h.queryPermission())
	}
	return append(all, payloadPermissions(h.TaskHub, policy.GetPayload, policy.PutPayload)...)
}

// renewerPermissions permits handling timers, recovering dead letters, continuing deletions, applying retention, waking
// stuck instances, counting work items without a worker, and extending the locks of external workers.
func (h permissions) renewerPermissions() []awsiam.PolicyStatement {
	passRole := policy.Allow([]string{*h.schedule.role.RoleArn()}, "iam:PassRole")
	passRole.AddCondition(jsii.String("StringEquals"),
		map[string]string{"iam:PassedToService": "scheduler.amazonaws.com"})
	return append([]awsiam.PolicyStatement{
		policy.Allow(h.tableARNs(indexByCreation, indexByAttention, indexByDue),
			slices.Concat(policy.ReadItems, policy.WriteItems, policy.DeleteItems)...),
		policy.Allow(append(namedARNs(h.deadLetters()), policy.ARNs(h.Timers)...),
			slices.Concat(policy.Consume, []string{policy.Send})...),
		policy.Allow(policy.ARNs(h.Inbox), policy.Send),
		policy.Allow(h.workQueueARNs(), "sqs:GetQueueAttributes", policy.Lock, policy.Send),
		policy.Allow([]string{h.schedule.schedulesARN}, "scheduler:CreateSchedule", "scheduler:UpdateSchedule",
			"scheduler:DeleteSchedule"),
		passRole,
	}, payloadPermissions(h.TaskHub, policy.DeletePayloads)...)
}

// apiPermissions permits the operations of a client, and access to dead letters if DeadLetters is set. A redrive also
// sends to the inbox and the timers queue, which the API can do in any case.
func (h permissions) apiPermissions() []awsiam.PolicyStatement {
	var more []awsiam.PolicyStatement
	if h.props.DeadLetters {
		more = []awsiam.PolicyStatement{
			policy.Allow(namedARNs(h.deadLetters()), policy.Consume...), policy.Allow(h.workQueueARNs(), policy.Send),
		}
	}
	more = append(more, payloadPermissions(h.TaskHub, policy.GetPayload, policy.PutPayload, policy.DeletePayloads)...)
	return append([]awsiam.PolicyStatement{
		policy.Allow(h.tableARNs(indexByCreation, indexByAttention),
			slices.Concat(policy.ReadItems, policy.WriteItems, policy.DeleteItems)...),
		policy.Allow(policy.ARNs(h.Inbox, h.Timers), policy.Send),
		policy.Allow(h.workQueueARNs(), "sqs:GetQueueAttributes"),                   // for the depth of queues
		policy.Allow([]string{h.schedule.schedulesARN}, "scheduler:DeleteSchedule"), // for timers of purged instances
		h.queryPermission(),
	}, more...)
}

// queryPermission permits queries. It is full control of the hub, because an invocation of the orchestrator can contain
// any message.
func (h permissions) queryPermission() awsiam.PolicyStatement {
	return policy.Allow([]string{h.queryTarget()}, "lambda:InvokeFunction")
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
