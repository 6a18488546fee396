package cdk_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslogs"
	"github.com/aws/jsii-runtime-go"

	"github.com/perdure/perdure/infra/cdk"
)

// custom returns the template of a team's own stack with a hub.
func custom(t *testing.T, props cdk.TaskHubProps, use func(awscdk.Stack, *cdk.TaskHub)) template {
	t.Helper()
	jsiiLock.Lock()
	defer jsiiLock.Unlock()
	dir := t.TempDir()
	app := awscdk.NewApp(&awscdk.AppProps{Outdir: jsii.String(dir)})
	stack := awscdk.NewStack(app, jsii.String("Team"), nil)
	use(stack, cdk.NewTaskHub(stack, "TaskHub", props))
	app.Synth(nil)
	raw, err := os.ReadFile(filepath.Join(dir, "Team.template.json"))
	if err != nil {
		t.Fatalf("read the template: %v", err)
	}
	var parsed template
	if err := json.Unmarshal(raw, &parsed); err != nil {
		t.Fatalf("parse the template: %v", err)
	}
	return parsed
}

// days creates a duration. It holds jsiiLock because the constructor calls jsii.
func days(n float64) awscdk.Duration {
	jsiiLock.Lock()
	defer jsiiLock.Unlock()
	return awscdk.Duration_Days(jsii.Number(n))
}

func TestTaskHubProps_setInTheTeamsStack_changeTheTemplate(t *testing.T) {
	t.Parallel()
	got := custom(t, cdk.TaskHubProps{
		HubName: "orders", FunctionsDir: placeholders, WorkQueues: []string{"default", "payments"},
		InboxConcurrency: 50, WorkConcurrency: 7, APIConcurrency: 20, MaxCrashes: jsii.Number(5), OmitErrorTexts: true,
		Retention:                 days(30),
		WithoutDeletionProtection: true, WithoutAlarms: true, WithoutDashboard: true,
		LogRetention: awslogs.RetentionDays_ONE_WEEK,
	}, func(awscdk.Stack, *cdk.TaskHub) {})

	table := got.find(t, "AWS::DynamoDB::Table", "TaskHub")
	if table.get("DeletionProtectionEnabled") != false || table.deletionPolicy != "Delete" {
		t.Errorf("the table is protected: %v, policy %s", table.get("DeletionProtectionEnabled"), table.deletionPolicy)
	}
	payments := got.find(t, "AWS::Lambda::Function", "TaskHubWorkerpayments")
	if name := payments.text("FunctionName"); name != "perdure-orders-worker-payments" {
		t.Errorf("the payments worker is called %s", name)
	}
	if queue := payments.text("Environment", "Variables", "PERDURE_QUEUE"); queue != "payments" {
		t.Errorf("the payments worker serves %q", queue)
	}
	if n := payments.text("Environment", "Variables", "PERDURE_MAX_ATTEMPTS"); n != "5" {
		t.Errorf("the payments worker has MaxCrashes %q", n)
	}
	if b := payments.text("Environment", "Variables", "PERDURE_LOG_ERROR_TEXTS"); b != "false" {
		t.Errorf("the payments worker has the setting for error texts %q", b)
	}
	orchestrator := got.find(t, "AWS::Lambda::Function", "TaskHubOrchestrator")
	if d := orchestrator.text("Environment", "Variables", "PERDURE_RETENTION"); d != "2592000s" {
		t.Errorf("the orchestrator has the retention %q", d)
	}
	api := got.find(t, "AWS::Lambda::Function", "TaskHubApi")
	if n := got.number(t, api, "ReservedConcurrentExecutions"); n != 20 {
		t.Errorf("the api function's concurrency is %v", n)
	}
	inbox := got.find(t, "AWS::Lambda::EventSourceMapping", "TaskHubInboxMapping")
	if n := inbox.get("ScalingConfig", "MaximumConcurrency"); n != 50.0 {
		t.Errorf("the inbox mapping's concurrency is %v", n)
	}
	for _, kind := range []string{"AWS::CloudWatch::Alarm", "AWS::CloudWatch::Dashboard"} {
		if n := len(got.ofType(kind)); n != 0 {
			t.Errorf("%d of %s, want none", n, kind)
		}
	}
	for _, logs := range got.ofType("AWS::Logs::LogGroup") {
		if n := got.number(t, logs, "RetentionInDays"); n != 7 {
			t.Errorf("%s keeps logs for %v days", logs.id, n)
		}
	}
}

func TestDirectGrants_allowOnlyTheirActions(t *testing.T) {
	t.Parallel()
	grants := []struct {
		name    string
		grant   func(*cdk.TaskHub, awsiam.IGrantable)
		has     []string
		hasNone []string
	}{
		{
			"ReadDirect", (*cdk.TaskHub).GrantReadDirect,
			[]string{"ssm:GetParameter", "dynamodb:GetItem", "dynamodb:Query"},
			[]string{"dynamodb:PutItem", "sqs:SendMessage"},
		},
		{
			"StartDirect", (*cdk.TaskHub).GrantStartDirect,
			[]string{"ssm:GetParameter", "dynamodb:GetItem", "dynamodb:PutItem", "sqs:SendMessage"},
			[]string{"dynamodb:DeleteItem"},
		},
		{
			"TellDirect", (*cdk.TaskHub).GrantControlDirect,
			[]string{"ssm:GetParameter", "dynamodb:GetItem", "sqs:SendMessage", "dynamodb:PutItem"},
			[]string{"dynamodb:UpdateItem", "dynamodb:DeleteItem"},
		},
		{
			"QueryDirect", (*cdk.TaskHub).GrantQueryDirect,
			[]string{"ssm:GetParameter", "lambda:InvokeFunction"},
			[]string{"sqs:SendMessage", "dynamodb:PutItem"},
		},
		{
			"PurgeDirect", (*cdk.TaskHub).GrantPurgeDirect,
			[]string{
				"ssm:GetParameter", "dynamodb:PutItem", "dynamodb:UpdateItem", "dynamodb:DeleteItem", "sqs:SendMessage",
				"scheduler:DeleteSchedule",
			},
			[]string{"sqs:ReceiveMessage", "scheduler:CreateSchedule"},
		},
		{
			"PollDirect", func(h *cdk.TaskHub, g awsiam.IGrantable) { h.GrantPollDirect(g, "default") },
			[]string{"ssm:GetParameter", "sqs:ReceiveMessage", "sqs:SendMessage", "dynamodb:PutItem"},
			[]string{"dynamodb:DeleteItem"},
		},
		{
			"Operate", (*cdk.TaskHub).GrantOperate,
			[]string{
				"ssm:GetParameter", "dynamodb:Query", "dynamodb:UpdateItem", "dynamodb:DeleteItem",
				"dynamodb:DescribeContinuousBackups", "sqs:ReceiveMessage", "sqs:SendMessage", "sqs:PurgeQueue",
				"scheduler:ListSchedules", "scheduler:DeleteSchedule", "scheduler:GetScheduleGroup",
				"lambda:UpdateEventSourceMapping", "lambda:GetFunctionRecursionConfig", "lambda:GetAccountSettings",
				"events:ListRuleNamesByTarget",
				"events:EnableRule", "events:DisableRule", "iam:SimulatePrincipalPolicy", "lambda:InvokeFunction",
			},
			[]string{"scheduler:CreateSchedule", "lambda:UpdateFunctionConfiguration", "iam:PassRole"},
		},
		{
			"API", (*cdk.TaskHub).GrantAPI,
			[]string{"execute-api:Invoke"},
			[]string{"dynamodb:GetItem", "ssm:GetParameter", "lambda:InvokeFunctionUrl", "lambda:InvokeFunction"},
		},
		{
			"Renew", (*cdk.TaskHub).GrantRenew,
			[]string{"execute-api:Invoke"},
			[]string{
				"dynamodb:GetItem", "sqs:ChangeMessageVisibility", "lambda:InvokeFunctionUrl", "lambda:InvokeFunction",
			},
		},
	}
	got := custom(t, cdk.TaskHubProps{HubName: "orders", FunctionsDir: placeholders},
		func(stack awscdk.Stack, hub *cdk.TaskHub) {
			for _, g := range grants {
				g.grant(hub, awsiam.NewRole(stack, jsii.String(g.name), &awsiam.RoleProps{
					AssumedBy: awsiam.NewServicePrincipal(jsii.String("lambda.amazonaws.com"), nil),
				}))
			}
		})
	for _, g := range grants {
		t.Run(g.name, func(t *testing.T) {
			t.Parallel()
			policy := got.find(t, "AWS::IAM::Policy", g.name)
			actions := actionsOf(statementsIn(policy.get("PolicyDocument")))
			for _, action := range g.has {
				if !actions[action] {
					t.Errorf("Grant%s does not allow %s", g.name, action)
				}
			}
			for _, action := range g.hasNone {
				if actions[action] {
					t.Errorf("Grant%s allows %s", g.name, action)
				}
			}
		})
	}
}

func TestNewTaskHub_undeployableProps_panics(t *testing.T) {
	t.Parallel()
	seconds := func(n float64) awscdk.Duration { return awscdk.Duration_Seconds(jsii.Number(n)) }
	jsiiLock.Lock()
	defer jsiiLock.Unlock()
	for name, props := range map[string]cdk.TaskHubProps{
		"no functions":      {HubName: "orders"},
		"no hub name":       {FunctionsDir: placeholders},
		"upper case":        {HubName: "Orders", FunctionsDir: placeholders},
		"queue named twice": {HubName: "orders", FunctionsDir: placeholders, WorkQueues: []string{"a", "a"}},
		"snapshot of the table": {
			HubName: "orders", FunctionsDir: placeholders,
			PlatformProps: cdk.PlatformProps{TableRemovalPolicy: awscdk.RemovalPolicy_SNAPSHOT},
		},
		"snapshot of the queues": {
			HubName: "orders", FunctionsDir: placeholders,
			PlatformProps: cdk.PlatformProps{QueueRemovalPolicy: awscdk.RemovalPolicy_SNAPSHOT},
		},
		"error level":     {HubName: "orders", FunctionsDir: placeholders, LogLevel: "error"},
		"unknown metrics": {HubName: "orders", FunctionsDir: placeholders, Metrics: "all"},
		"props of an unknown queue": {
			HubName: "orders", FunctionsDir: placeholders,
			WorkQueueProps: map[string]cdk.WorkQueueProps{"paiments": {}},
		},
		"large batch": {
			HubName: "orders", FunctionsDir: placeholders, WorkQueues: []string{"a"},
			WorkQueueProps: map[string]cdk.WorkQueueProps{"a": {BatchSize: 11}},
		},
		"little memory": {
			HubName: "orders", FunctionsDir: placeholders, APIProps: cdk.FunctionProps{MemorySize: 64},
		},
		"code without a build": {
			HubName: "orders", FunctionsDir: placeholders, APIProps: cdk.FunctionProps{Code: &cdk.FunctionCode{}},
		},
		"queue named inbox": {HubName: "orders", FunctionsDir: placeholders, WorkQueues: []string{"inbox"}},
		"short visibility": {
			HubName: "orders", FunctionsDir: placeholders, InboxTimeout: seconds(30), InboxVisibility: seconds(29),
		},
		"long inline activities": {HubName: "orders", FunctionsDir: placeholders, InlineTimeout: seconds(301)},
	} {
		if !refused(props) {
			t.Errorf("%s: NewTaskHub accepted it", name)
		}
	}
}

// refused reports whether NewTaskHub panics with its own error about the props. The scope is nil, so valid props cause
// another panic.
func refused(props cdk.TaskHubProps) (is bool) {
	defer func() {
		err, _ := recover().(error)
		is = err != nil && strings.HasPrefix(err.Error(), "task hub")
	}()
	cdk.NewTaskHub(nil, "TaskHub", props)
	return false
}

func panics(f func()) (panicked bool) {
	defer func() { panicked = recover() != nil }()
	f()
	return false
}

// panicOf returns the text of the panic of a function, or an empty text.
func panicOf(f func()) (text string) {
	defer func() {
		if v := recover(); v != nil {
			text = fmt.Sprint(v)
		}
	}()
	f()
	return ""
}

// A caller with GrantControlDirect may write notes of its requests, and no other items.
func TestGrantControlDirect_mayWriteNotesOnly(t *testing.T) {
	t.Parallel()
	got := custom(t, cdk.TaskHubProps{HubName: "orders", FunctionsDir: placeholders},
		func(stack awscdk.Stack, hub *cdk.TaskHub) {
			hub.GrantControlDirect(awsiam.NewRole(stack, jsii.String("TellDirect"), &awsiam.RoleProps{
				AssumedBy: awsiam.NewServicePrincipal(jsii.String("lambda.amazonaws.com"), nil),
			}))
		})
	policy, err := json.Marshal(got.find(t, "AWS::IAM::Policy", "TellDirect").get("PolicyDocument"))
	if want := `"Action":"dynamodb:PutItem","Condition":{"ForAllValues:StringLike":{"dynamodb:LeadingKeys":["n#*"]}}`; err != nil || !strings.Contains(string(policy), want) {
		t.Errorf("%s, %v: want %s", policy, err, want)
	}
}
