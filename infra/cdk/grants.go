package cdk

import (
	"fmt"
	"slices"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/jsii-runtime-go"

	"github.com/perdure/perdure/infra/cdk/internal/policy"
)

// Most grants permit calls of the HTTP API, which validates its requests. Programs that use package client call
// DynamoDB and SQS directly and need a grant with the suffix Direct. A permission to write to the table, or to send to
// the inbox or the timers queue, is full control of every instance of the hub. Such a program can forge histories,
// outcomes and results. Use a direct grant only for programs that you trust with the whole hub. To isolate teams,
// deploy one hub per team.

// hubGrants has the grants of a hub as methods.
type hubGrants struct{ hub *TaskHub }

// GrantRead allows grantee to read instances, histories, jobs, queues and dead letters through the HTTP API. They have
// all inputs and results, which the API decodes if it has the codec of the hub.
func (g hubGrants) GrantRead(grantee awsiam.IGrantable) { g.grantCalls(grantee, "GrantRead") }

// GrantStart allows grantee to start orchestrations through the HTTP API, immediately or with a delay, and to read.
func (g hubGrants) GrantStart(grantee awsiam.IGrantable) {
	g.grantCalls(grantee, "GrantStart", "*/POST/v1/orchestrations/*")
}

// GrantPut allows grantee to put instances through the HTTP API, and to read. A put can start an instance, replace the
// instance with the same ID (which is terminated and deleted), raise an event or send an update.
func (g hubGrants) GrantPut(grantee awsiam.IGrantable) {
	g.grantCalls(grantee, "GrantPut", "*/PUT/v1/instances/*")
}

// GrantControl allows grantee to control instances through the HTTP API, and to read. It permits raising events,
// canceling an instance or an activity, pausing, resuming, terminating, restarting, notes, updates, queries and calls
// of entities. A call creates an entity that does not exist.
func (g hubGrants) GrantControl(grantee awsiam.IGrantable) {
	g.grantCalls(grantee, "GrantControl", "*/POST/v1/instances/*", "*/POST/v1/entities/*")
}

// GrantCancel is equivalent to GrantControl.
func (g hubGrants) GrantCancel(grantee awsiam.IGrantable) { g.GrantControl(grantee) }

// GrantComplete allows grantee to complete, fail and heartbeat activities through the HTTP API with their completion
// tokens (perdure.ErrPending). It does not permit reads.
func (g hubGrants) GrantComplete(grantee awsiam.IGrantable) {
	g.grantOnly(grantee, "GrantComplete", "*/POST/v1/activities/*")
}

// GrantPurge allows grantee to purge instances, and to start and cancel bulk jobs through the HTTP API, and to read.
// Bulk jobs can purge, cancel or terminate instances.
func (g hubGrants) GrantPurge(grantee awsiam.IGrantable) {
	g.grantCalls(grantee, "GrantPurge", "*/DELETE/v1/instances/*", "*/POST/v1/jobs", "*/POST/v1/jobs/*")
}

// GrantSchedule allows grantee to create, change, run, backfill, pause and delete schedules through the HTTP API, and
// to read.
func (g hubGrants) GrantSchedule(grantee awsiam.IGrantable) {
	g.grantCalls(grantee, "GrantSchedule", "*/PUT/v1/schedules/*", "*/DELETE/v1/schedules/*", "*/POST/v1/schedules/*")
}

// GrantRedrive allows grantee to redrive and drop dead letters through the HTTP API, and to read. It panics unless
// TaskHubProps.DeadLetters is set. A redrive retries messages that could not be processed.
func (g hubGrants) GrantRedrive(grantee awsiam.IGrantable) {
	if !g.hub.props.DeadLetters {
		panic(fmt.Errorf("task hub %s: GrantRedrive: the API has no access to dead letters: set DeadLetters",
			g.hub.props.HubName))
	}
	g.grantCalls(grantee, "GrantRedrive", "*/POST/v1/dead-letters/*")
}

// GrantPoll allows grantee to receive from and delete in a work queue, and to renew locks through the HTTP API. It is
// for polling workers in other languages. A polling worker in Go needs GrantPollDirect. GrantPoll panics if the hub
// does not have the queue.
func (g hubGrants) GrantPoll(grantee awsiam.IGrantable, queue string) {
	g.GrantRenew(grantee)
	work := g.workQueue(queue)
	g.grant(grantee, append(g.hub.keyPermissions(),
		policy.Allow(policy.ARNs(work.Queue, work.Exclusive), policy.Consume...)))
}

// GrantReadDirect allows grantee to read the configuration and the table of the hub, for Status, Wait, History and List
// of package client. The table has all inputs and results, and the key of work items.
func (g hubGrants) GrantReadDirect(grantee awsiam.IGrantable) {
	g.grant(grantee, g.readStatements())
}

// GrantStartDirect allows grantee to start orchestrations with package client. client.IfExists(client.Replace) also
// needs GrantPurgeDirect. The permission to write to the table is full control of the hub.
func (g hubGrants) GrantStartDirect(grantee awsiam.IGrantable) {
	g.grant(grantee, append(g.readStatements(),
		policy.Allow(g.hub.tableARNs(), policy.WriteItems...),
		policy.Allow(policy.ARNs(g.hub.Inbox, g.hub.Timers), policy.Send)))
	g.grant(grantee, payloadPermissions(g.hub, policy.PutPayload, policy.DeletePayloads))
}

// GrantControlDirect allows grantee to send messages to instances with package client: Cancel, CancelActivity,
// Terminate, RaiseEvent and Update, but not Annotate. In the table, it permits only writes of the items that announce
// such a message. The permission to send to the inbox is full control of the hub, because IAM cannot distinguish
// messages.
func (g hubGrants) GrantControlDirect(grantee awsiam.IGrantable) {
	note := policy.Allow(g.hub.tableARNs(), "dynamodb:PutItem")
	note.AddCondition(jsii.String("ForAllValues:StringLike"),
		map[string]any{"dynamodb:LeadingKeys": jsii.Strings("n#*")})
	g.grant(grantee, append(g.readStatements(), policy.Allow(policy.ARNs(g.hub.Inbox), policy.Send), note))
	g.grant(grantee, payloadPermissions(g.hub, policy.PutPayload))
}

// GrantQueryDirect allows grantee to query instances with package client. The permission to invoke the orchestrator
// function is full control of the hub, because an invocation can contain any message. Queries through the HTTP API need
// GrantControl.
func (g hubGrants) GrantQueryDirect(grantee awsiam.IGrantable) {
	g.grant(grantee, append(g.readStatements(), permissions{g.hub}.queryPermission()))
}

// GrantPurgeDirect allows grantee to purge instances and to start bulk jobs with package client. It is full control of
// the hub.
func (g hubGrants) GrantPurgeDirect(grantee awsiam.IGrantable) {
	g.grant(grantee, append(g.readStatements(),
		policy.Allow(g.hub.tableARNs(), slices.Concat(policy.WriteItems, policy.DeleteItems)...),
		policy.Allow(policy.ARNs(g.hub.Inbox), policy.Send),
		policy.Allow([]string{g.hub.schedule.schedulesARN}, "scheduler:DeleteSchedule")))
	g.grant(grantee, payloadPermissions(g.hub, policy.DeletePayloads))
}

// GrantPollDirect allows grantee to run the activities of a work queue in a polling process, such as perdure worker. It
// is full control of the hub. It panics if the hub does not have the queue.
func (g hubGrants) GrantPollDirect(grantee awsiam.IGrantable, queue string) {
	g.grant(grantee, append(g.readStatements(), permissions{g.hub}.workerPermissions(g.workQueue(queue))...))
}

// GrantOperate allows grantee to operate the hub with the command perdure: dead-letters, pause, resume, reconcile,
// doctor, query, and the commands that read, start, control and purge instances. It is full control of the hub.
func (g hubGrants) GrantOperate(grantee awsiam.IGrantable) {
	queues := append(append(g.hub.workQueueARNs(), namedARNs(g.hub.deadLetters())...),
		policy.ARNs(g.hub.Inbox, g.hub.Timers)...)
	functions, roles := g.functions()
	change := policy.Allow([]string{"*"}, "lambda:UpdateEventSourceMapping")
	change.AddCondition(jsii.String("ArnLike"), map[string]any{"lambda:FunctionArn": jsii.Strings(functions...)})
	statements := append(g.readStatements(),
		policy.Allow(g.hub.tableARNs(), slices.Concat(policy.WriteItems, policy.DeleteItems, []string{
			"dynamodb:DescribeTable", "dynamodb:DescribeTimeToLive", "dynamodb:DescribeContinuousBackups",
		})...),
		policy.Allow(queues, slices.Concat(policy.Consume, []string{policy.Send, "sqs:PurgeQueue"})...),
		policy.Allow([]string{g.hub.schedule.schedulesARN, g.hub.schedule.groupARN}, "scheduler:DeleteSchedule",
			"scheduler:GetScheduleGroup"),
		// These actions do not support resources, or AWS chooses the names of their resources.
		policy.Allow([]string{"*"}, "lambda:ListEventSourceMappings", "lambda:GetEventSourceMapping",
			"lambda:GetAccountSettings", "scheduler:ListSchedules", "events:ListRuleNamesByTarget"),
		change,
		policy.Allow(functions, "lambda:GetFunctionConfiguration", "lambda:GetFunctionConcurrency",
			"lambda:GetFunctionRecursionConfig"),
		policy.Allow([]string{*g.hub.watch.RuleArn()},
			"events:DescribeRule", "events:EnableRule", "events:DisableRule"))
	statements = append(statements, permissions{g.hub}.queryPermission())
	statements = append(statements, payloadPermissions(g.hub, policy.PutPayload, policy.DeletePayloads)...)
	if g.hub.Payloads != nil {
		statements = append(statements,
			policy.Allow([]string{*g.hub.Payloads.BucketArn()}, "s3:GetLifecycleConfiguration"))
	}
	if len(roles) > 0 {
		statements = append(statements, policy.Allow(roles, "iam:SimulatePrincipalPolicy"))
	}
	g.grant(grantee, statements)
}

// functions returns the ARNs of the functions that process queues, of their aliases and versions, and of their roles.
func (g hubGrants) functions() (functions, roles []string) {
	all := []awslambda.IFunction{g.hub.Orchestrator, g.hub.Renewer}
	for _, work := range g.hub.WorkQueues {
		all = append(all, work.Worker)
	}
	for _, f := range all {
		functions = append(functions, *f.FunctionArn(), *f.FunctionArn()+":*")
		if role := f.Role(); role != nil {
			roles = append(roles, *role.RoleArn())
		}
	}
	return functions, roles
}

// grantCalls allows grantee to read and to make calls of the HTTP API.
func (g hubGrants) grantCalls(grantee awsiam.IGrantable, name string, calls ...string) {
	g.grantOnly(grantee, name, append([]string{"*/GET/v1/*"}, calls...)...)
}

// grantOnly allows grantee to make calls of the HTTP API. It does not permit reads.
func (g hubGrants) grantOnly(grantee awsiam.IGrantable, name string, calls ...string) {
	if g.hub.props.APIKind == APIKindFunctionURL || !g.hub.props.HTTPAPI.byIAM() {
		panic(fmt.Errorf("task hub %s: %s: requires an HTTP API with IAM authorization: use GrantAPI, or a grant of "+
			"direct access such as GrantReadDirect", g.hub.props.HubName, name))
	}
	var resources []string
	for _, call := range calls {
		resources = append(resources, g.hub.api.callARN(call))
	}
	g.grant(grantee, []awsiam.PolicyStatement{policy.Allow(resources, "execute-api:Invoke")})
}

func (g hubGrants) workQueue(name string) WorkQueue {
	for _, work := range g.hub.WorkQueues {
		if work.Name == name {
			return work
		}
	}
	panic(fmt.Errorf("task hub %s: unknown work queue %q", g.hub.props.HubName, name))
}

// GrantAPI allows grantee to make all calls of the HTTP API, also through the StreamURL, and to open the web UI if
// TaskHubProps.UI is set. The grantee signs requests for the service execute-api, or lambda for a function URL.
func (g hubGrants) GrantAPI(grantee awsiam.IGrantable) {
	calls := []string{g.hub.api.invokeARN}
	if g.hub.props.UI {
		calls = append(calls, g.hub.api.callARN("*/GET/ui"))
	}
	g.grant(grantee, invocations(g.hub.props.APIKind, calls...))
	if g.hub.props.StreamURL && g.hub.props.APIKind != APIKindFunctionURL {
		g.grant(grantee, policy.InvokeURL(*g.hub.API.FunctionArn()))
	}
}

// GrantRenew allows grantee to renew the locks of work items through the HTTP API. It is for polling workers in other
// languages, which also need permissions to receive from and delete in their queue (GrantPoll has both). With a
// function URL, GrantRenew is equivalent to GrantAPI, because IAM cannot distinguish its calls.
//
// GrantRenew does not permit a direct invocation of the renewer. A program that can invoke the renewer directly
// (Renewer.GrantInvoke) can send it timer messages.
func (g hubGrants) GrantRenew(grantee awsiam.IGrantable) {
	g.grant(grantee, invocations(g.hub.props.APIKind, g.hub.api.renewARN))
}

// invocations returns the statements that permit calls of an API of a kind.
func invocations(kind string, calls ...string) (statements []awsiam.PolicyStatement) {
	if kind != APIKindFunctionURL {
		statements = append(statements, policy.Allow(calls, "execute-api:Invoke"))
	}
	if kind != APIKindHTTP {
		statements = append(statements, policy.InvokeURL(calls...)...)
	}
	return statements
}

func (g hubGrants) grant(grantee awsiam.IGrantable, statements []awsiam.PolicyStatement) {
	for _, statement := range statements {
		grantee.GrantPrincipal().AddToPrincipalPolicy(statement)
	}
}

func (g hubGrants) readStatements() []awsiam.PolicyStatement {
	parameter := *g.hub.stack.FormatArn(&awscdk.ArnComponents{
		Service:      jsii.String("ssm"),
		Resource:     jsii.String("parameter"),
		ResourceName: jsii.String(g.hub.ConfigParameter[1:]),
	})
	return append([]awsiam.PolicyStatement{
		policy.Allow([]string{parameter}, "ssm:GetParameter"),
		policy.Allow(g.hub.tableARNs(indexByCreation, indexByAttention), policy.ReadItems...),
	}, append(g.hub.keyPermissions(), payloadPermissions(g.hub, policy.GetPayload)...)...)
}
