package cdk

import (
	"fmt"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/jsii-runtime-go"
)

// The grants of a hub are of calls of its HTTP API, by what they mean; the API checks what it is given.
// Programs that use package client call DynamoDB and SQS themselves: they need a grant that ends
// with Direct. Whoever may write to the table, or send to the inbox or the timers queue, can do
// anything to every instance of the hub, whatever the grant is called: forge its history, the
// outcomes of its activities, and its end. So a direct grant is for programs that are trusted with
// the whole hub, and a hub for each team keeps teams apart.

// hubGrants are the grants of a hub, which has them as methods.
type hubGrants struct{ hub *TaskHub }

// GrantRead lets grantee read instances, histories, jobs and dead letters over the API.
func (g hubGrants) GrantRead(grantee awsiam.IGrantable) { g.grantCalls(grantee, "GrantRead") }

// GrantStart lets grantee start orchestrations over the API, at once or with a delay, and read.
func (g hubGrants) GrantStart(grantee awsiam.IGrantable) {
	g.grantCalls(grantee, "GrantStart", "*/POST/v1/orchestrations/*")
}

// GrantPut lets grantee put instances over the API: start, as GrantStart does, replace what has the id, which is
// terminated and deleted, and raise events in it, or update it; and read.
func (g hubGrants) GrantPut(grantee awsiam.IGrantable) {
	g.grantCalls(grantee, "GrantPut", "*/PUT/v1/instances/*")
}

// GrantTell lets grantee tell instances something over the API: raise events, cancel an instance or
// one activity, terminate, update; call entities, which makes those that are not there; restart what is over, with the input it had; ask with queries, which change nothing but have no path that IAM could
// tell apart from the others; and read.
func (g hubGrants) GrantTell(grantee awsiam.IGrantable) {
	g.grantCalls(grantee, "GrantTell", "*/POST/v1/instances/*", "*/POST/v1/entities/*")
}

// GrantCancel is GrantTell.
func (g hubGrants) GrantCancel(grantee awsiam.IGrantable) { g.GrantTell(grantee) }

// GrantComplete lets grantee complete, fail and keep alive activities over the API whose tokens it was
// given (perdure.ErrPending), and nothing else, not even read.
func (g hubGrants) GrantComplete(grantee awsiam.IGrantable) {
	g.grantOnly(grantee, "GrantComplete", "*/POST/v1/activities/*")
}

// GrantPurge lets grantee delete instances over the API (R17), begin and cancel jobs, which purge,
// cancel or terminate many, and read.
func (g hubGrants) GrantPurge(grantee awsiam.IGrantable) {
	g.grantCalls(grantee, "GrantPurge", "*/DELETE/v1/instances/*", "*/POST/v1/jobs", "*/POST/v1/jobs/*")
}

// GrantSchedule lets grantee make, change, run, backfill, pause and delete schedules over the API, and read.
func (g hubGrants) GrantSchedule(grantee awsiam.IGrantable) {
	g.grantCalls(grantee, "GrantSchedule", "*/PUT/v1/schedules/*", "*/DELETE/v1/schedules/*", "*/POST/v1/schedules/*")
}

// GrantRedrive lets grantee redrive and drop dead letters over the API, and read. It panics where the
// API has none (TaskHubProps.DeadLetters). A redrive runs again what somebody has found wanting.
func (g hubGrants) GrantRedrive(grantee awsiam.IGrantable) {
	if !g.hub.props.DeadLetters {
		panic(fmt.Errorf("task hub %s: GrantRedrive: the API has no dead letters without DeadLetters", g.hub.props.HubName))
	}
	g.grantCalls(grantee, "GrantRedrive", "*/POST/v1/dead-letters/*")
}

// GrantPoll lets grantee receive from one work queue and delete there, and renew its locks over the
// API: for workers that are neither functions of the hub nor Go. It panics for a queue that the hub
// does not have. A Go program that polls needs GrantPollDirect.
func (g hubGrants) GrantPoll(grantee awsiam.IGrantable, queue string) {
	g.GrantRenew(grantee)
	g.grant(grantee, append(g.hub.keyPermissions(), allow(g.workQueue(queue).arns(), consume...)))
}

// GrantReadDirect lets grantee find the hub and read its table: Status, Wait, History and List
// of package client. The table holds every input and result, and the key of work items.
func (g hubGrants) GrantReadDirect(grantee awsiam.IGrantable) {
	g.grant(grantee, g.readStatements())
}

// GrantStartDirect lets grantee start orchestrations with package client; client.IfExists(client.Replace) takes
// GrantPurgeDirect, too. It is full control of the hub, as every right to write to the table is.
func (g hubGrants) GrantStartDirect(grantee awsiam.IGrantable) {
	g.grant(grantee, append(g.readStatements(),
		allow(g.hub.tableARNs(), writeItems...),
		allow(arns(g.hub.Inbox, g.hub.Timers), send)))
	g.grant(grantee, payloadPermissions(g.hub, putPayload, deletePayloads))
}

// GrantTellDirect lets grantee send to instances with package client: Cancel, CancelActivity,
// Terminate, Raise and Update. It is full control of the hub, as every right to send to the inbox is: IAM
// cannot tell messages apart. Of the table it may write the notes alone that such a message is on its way (R20).
func (g hubGrants) GrantTellDirect(grantee awsiam.IGrantable) {
	note := allow(g.hub.tableARNs(), "dynamodb:PutItem")
	note.AddCondition(jsii.String("ForAllValues:StringLike"), map[string]any{"dynamodb:LeadingKeys": jsii.Strings("n#*")})
	g.grant(grantee, append(g.readStatements(), allow(arns(g.hub.Inbox), send), note))
	g.grant(grantee, payloadPermissions(g.hub, putPayload))
}

// GrantQueryDirect lets grantee ask instances with package client: Query. It invokes the orchestrator function, and is full control of the
// hub: who may invoke that may hand it any message. Over the API a query takes GrantTell.
func (g hubGrants) GrantQueryDirect(grantee awsiam.IGrantable) {
	g.grant(grantee, append(g.readStatements(), permissions{g.hub}.askPermission()))
}

// GrantPurgeDirect lets grantee delete instances with package client (R17), and begin jobs. It is full
// control of the hub.
func (g hubGrants) GrantPurgeDirect(grantee awsiam.IGrantable) {
	g.grant(grantee, append(g.readStatements(),
		allow(g.hub.tableARNs(), concat(writeItems, deleteItems)...),
		allow(arns(g.hub.Inbox), send),
		allow([]string{g.hub.schedule.schedulesARN}, "scheduler:DeleteSchedule")))
	g.grant(grantee, payloadPermissions(g.hub, deletePayloads))
}

// GrantPollDirect lets grantee run the activities of one work queue in a process of its own, as
// `perdure worker` and the mains do outside of Lambda. It is full control of the hub. It panics for a
// queue that the hub does not have.
func (g hubGrants) GrantPollDirect(grantee awsiam.IGrantable, queue string) {
	g.grant(grantee, append(g.readStatements(), permissions{g.hub}.workerPermissions(g.workQueue(queue))...))
}

// GrantOperate lets grantee operate the hub with the command perdure: dead, pause, resume, reconcile and doctor, and query, beside the verbs that read and
// those that start, tell and purge. It is full control of the hub.
func (g hubGrants) GrantOperate(grantee awsiam.IGrantable) {
	queues := append(append(g.hub.workQueueARNs(), namedARNs(g.hub.deadLetters())...), arns(g.hub.Inbox, g.hub.Timers)...)
	functions, roles := g.functions()
	change := allow([]string{"*"}, "lambda:UpdateEventSourceMapping")
	change.AddCondition(jsii.String("ArnLike"), map[string]any{"lambda:FunctionArn": jsii.Strings(functions...)})
	statements := append(g.readStatements(),
		allow(g.hub.tableARNs(), concat(writeItems, deleteItems, []string{"dynamodb:DescribeTable", "dynamodb:DescribeTimeToLive", "dynamodb:DescribeContinuousBackups"})...),
		allow(queues, concat(consume, []string{send, "sqs:PurgeQueue"})...),
		allow([]string{g.hub.schedule.schedulesARN, g.hub.schedule.groupARN}, "scheduler:DeleteSchedule", "scheduler:GetScheduleGroup"),
		// These have no resources, or those of AWS's own naming.
		allow([]string{"*"}, "lambda:ListEventSourceMappings", "lambda:GetEventSourceMapping", "lambda:GetAccountSettings", "scheduler:ListSchedules", "events:ListRuleNamesByTarget"),
		change,
		allow(functions, "lambda:GetFunctionConfiguration", "lambda:GetFunctionConcurrency", "lambda:GetFunctionRecursionConfig"),
		allow([]string{*g.hub.watch.RuleArn()}, "events:DescribeRule", "events:EnableRule", "events:DisableRule"))
	statements = append(statements, permissions{g.hub}.askPermission())
	statements = append(statements, payloadPermissions(g.hub, putPayload, deletePayloads)...)
	if g.hub.Payloads != nil {
		statements = append(statements, allow([]string{*g.hub.Payloads.BucketArn()}, "s3:GetLifecycleConfiguration"))
	}
	if len(roles) > 0 {
		statements = append(statements, allow(roles, "iam:SimulatePrincipalPolicy"))
	}
	g.grant(grantee, statements)
}

// functions returns the ARNs of the functions that queues are mapped to, with their aliases and versions, and of their roles.
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

// grantCalls lets grantee read over the API, and make these calls.
func (g hubGrants) grantCalls(grantee awsiam.IGrantable, name string, calls ...string) {
	g.grantOnly(grantee, name, append([]string{"*/GET/v1/*"}, calls...)...)
}

// grantOnly grants calls, and no read.
func (g hubGrants) grantOnly(grantee awsiam.IGrantable, name string, calls ...string) {
	if g.hub.props.APIKind == APIKindFunctionURL || !g.hub.props.HTTPAPI.byIAM() {
		panic(fmt.Errorf("task hub %s: %s: IAM tells the calls of an HTTP API apart that it authorises, and no others: GrantAPI, or %sDirect", g.hub.props.HubName, name, name))
	}
	var resources []string
	for _, call := range calls {
		resources = append(resources, g.hub.api.callARN(call))
	}
	g.grant(grantee, []awsiam.PolicyStatement{allow(resources, "execute-api:Invoke")})
}

func (g hubGrants) workQueue(name string) WorkQueue {
	for _, work := range g.hub.WorkQueues {
		if work.Name == name {
			return work
		}
	}
	panic(fmt.Errorf("task hub %s: there is no work queue %q", g.hub.props.HubName, name))
}

// GrantAPI lets grantee make every call of the HTTP API, signed for execute-api,
// or for lambda where the API is a function URL, and see its page where the hub has it.
func (g hubGrants) GrantAPI(grantee awsiam.IGrantable) {
	calls := []string{g.hub.api.invokeARN}
	if g.hub.props.UI {
		calls = append(calls, g.hub.api.callARN("*/GET/ui"))
	}
	g.grant(grantee, invocations(g.hub.props.APIKind, calls...))
}

// GrantRenew lets grantee renew locks of work items over HTTP, and nothing else: that is
// for workers that are neither functions of the hub nor Go, which need no other right
// but to receive from their queue and to delete there. With a function URL, of which
// IAM cannot tell the calls apart, it is GrantAPI.
//
// It does not let grantee invoke the renewer directly: who may (Renewer.GrantInvoke) may
// also hand it messages of timers.
func (g hubGrants) GrantRenew(grantee awsiam.IGrantable) {
	g.grant(grantee, invocations(g.hub.props.APIKind, g.hub.api.renewARN))
}

// invocations returns the statements that permit calls of an API of a kind. A function URL requires both actions of Lambda
// (https://docs.aws.amazon.com/lambda/latest/dg/urls-auth.html). Without their conditions the grantee could invoke the
// function directly, with an event that names any caller.
func invocations(kind string, calls ...string) (statements []awsiam.PolicyStatement) {
	if kind != APIKindFunctionURL {
		statements = append(statements, allow(calls, "execute-api:Invoke"))
	}
	if kind != APIKindHTTP {
		url := allow(calls, "lambda:InvokeFunctionUrl")
		url.AddCondition(jsii.String("StringEquals"), map[string]any{"lambda:FunctionUrlAuthType": authIAM})
		function := allow(calls, "lambda:InvokeFunction")
		function.AddCondition(jsii.String("Bool"), map[string]any{"lambda:InvokedViaFunctionUrl": "true"})
		statements = append(statements, url, function)
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
		allow([]string{parameter}, "ssm:GetParameter"),
		allow(g.hub.tableARNs(indexByCreation, indexByAttention), readItems...),
	}, append(g.hub.keyPermissions(), payloadPermissions(g.hub, getPayload)...)...)
}
