package reference

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awss3"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssns"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"github.com/perdure/perdure/infra/cdk"
)

// Limits of the memory of a function in MB.
const leastMemory, mostMemory = 128, 10_240

// NewStandaloneStack adds a stack with one hub to scope. Its template refers to the code of the functions with
// parameters instead of CDK assets, so it can be deployed by perdure deploy, Terraform or the AWS CLI. Parameters are
// named like the fields of cdk.TaskHubProps. Their names are a stable interface: stacks keep the values.
func NewStandaloneStack(scope constructs.Construct, id string, props StackProps) *cdk.TaskHub {
	stack := emptyStack(scope, id)
	p := parameters{stack}
	code := codeParameters{
		parameters: p,
		bucket:     p.required("CodeBucket", "^[a-z0-9][a-z0-9.-]{2,62}$", "Bucket with the code of the functions"),
		prefix:     p.text("CodePrefix", "functions/", "^[A-Za-z0-9/._-]{0,200}$", "Prefix of the keys of the code"),
	}
	worker := code.of("Worker")
	own := map[string]cdk.WorkQueueProps{}
	for _, queue := range props.WorkQueues {
		own[queue] = cdk.WorkQueueProps{
			FunctionProps: worker, Exclusive: props.Exclusive, Client: props.Client,
		}
	}
	hubProps := cdk.TaskHubProps{
		HubName: p.text("HubName", "default", "^[a-z][a-z0-9-]{0,19}$",
			"Name of the hub. Do not change it: the new functions would not find the old instances"),
		WorkQueues:        props.WorkQueues,
		WorkQueueProps:    own,
		OrchestratorProps: code.of("Orchestrator"),
		RenewerProps:      code.of("Renewer"),
		APIProps:          code.of("API"),
		LargePayloads:     props.LargePayloads,
		Architecture: awslambda.Architecture_Custom(
			jsii.String(p.choice("Architecture", "arm64", "x86_64")), nil),
		APIKind: p.choice("APIKind", cdk.APIKindHTTP, cdk.APIKindFunctionURL),
		AlarmTopic: awssns.Topic_FromTopicArn(stack, jsii.String("GivenTopic"),
			p.optional("AlarmTopicARN", "^(arn:.+)?$", "SNS topic that the alarms notify")),
		PlatformProps: cdk.PlatformProps{
			PermissionsBoundary: awsiam.ManagedPolicy_FromManagedPolicyArn(stack, jsii.String("GivenBoundary"),
				p.optional("PermissionsBoundaryARN", "^(arn:.+)?$", "Permissions boundary of all roles")),
		},
	}
	p.addProcessing(&hubProps)
	hub := cdk.NewTaskHub(stack, "TaskHub", hubProps)
	adjustable{hub, p}.add(props.WorkQueues, props.Exclusive)
	addOutputs(stack, hub)
	return hub
}

// addProcessing adds the parameters for the processing of messages, timers and cancellations.
func (p parameters) addProcessing(props *cdk.TaskHubProps) {
	props.InboxTimeout = p.seconds("InboxTimeout", 30, 1, 900)
	props.InboxVisibility = p.seconds("InboxVisibility", 90, 1, 43200)
	props.InlineTimeout = p.seconds("InlineTimeout", 2, 0, 300)
	props.WorkTimeout = p.seconds("WorkTimeout", 900, 1, 900)
	props.LockTimeout = p.seconds("LockTimeout", 30, 1, 43200)
	props.LockRenewalBuffer = p.seconds("LockRenewalBuffer", 5, 0.1, 3600)
	props.CancelPollInterval = p.seconds("CancelPollInterval", 0.25, 0.1, 3600)
	props.CancellationGracePeriod = p.seconds("CancellationGracePeriod", 10, 0.1, 900)
	props.MaxCrashes = p.number("MaxCrashes", 10, 1, maxCrashes, nil)
	props.SweepRate = p.text("SweepRate", "rate(2 minutes)", `^(rate|cron)\(.+\)$`, "Schedule of the sweeper")
	props.Timers = p.choice("Timers", cdk.TimersSchedules, cdk.TimersRequeue)
	props.MaxTimerDelay = p.seconds("MaxTimerDelay", 900, 1, 900)
	props.ScheduleLead = p.seconds("ScheduleLead", 120, 0, 899)
}

// codeParameters adds the parameters of the functions' code.
type codeParameters struct {
	parameters

	bucket, prefix string
}

// of returns the code of a function. The build ID determines the key, so that a change of the code always changes the
// build ID.
func (c codeParameters) of(function string) cdk.FunctionProps {
	build := c.required(function+"Build", "^[A-Za-z0-9._-]{1,64}$",
		"Build ID of the function, such as the hash of its code. The key of the code is <CodePrefix><build ID>.zip")
	bucket := awss3.Bucket_FromBucketName(c.stack, jsii.String(function+"Bucket"), jsii.String(c.bucket))
	key := awscdk.Fn_Join(jsii.String(""), jsii.Strings(c.prefix, build, ".zip"))
	return cdk.FunctionProps{
		Code: &cdk.FunctionCode{Code: awslambda.Code_FromBucketV2(bucket, key, nil), BuildID: build},
	}
}

// adjustable adds parameters for props that cannot be tokens, by overriding properties of resources.
type adjustable struct {
	hub *cdk.TaskHub
	parameters
}

func (a adjustable) add(queues []string, exclusive bool) {
	a.override(a.hub.Orchestrator, "Environment.Variables.PERDURE_RETENTION",
		a.text("Retention", "0", "^(0|[1-9][0-9]{0,4}[dh])$",
			"Time that ended instances are kept, such as 30d or 12h; 0 = forever"))
	a.memory("OrchestratorMemory", 512, a.hub.Orchestrator)
	workers := make([]awslambda.Function, len(a.hub.WorkQueues))
	for i, queue := range a.hub.WorkQueues {
		workers[i] = queue.Worker
	}
	a.memory("WorkerMemory", 256, workers...)
	a.memory("RenewerMemory", 256, a.hub.Renewer)
	a.memory("APIMemory", 256, a.hub.API)

	logs := []string{"OrchestratorLogs", "RenewerLogs", "ApiLogs"}
	mappings := []string{}
	for _, queue := range queues {
		logs = append(logs, "Worker-"+queue+"Logs")
		mappings = append(mappings, "WorkMapping-"+queue)
		if exclusive {
			mappings = append(mappings, "WorkMapping-"+queue+".fifo")
		}
	}
	a.logRetention(logs)
	a.concurrency("InboxConcurrency", "InboxMapping")
	a.concurrency("TimersConcurrency", "TimersMapping")
	a.concurrency("WorkConcurrency", mappings...)
}

func (a adjustable) override(construct constructs.IConstruct, property string, value any) {
	resource, _ := construct.Node().DefaultChild().(awscdk.CfnResource)
	resource.AddPropertyOverride(jsii.String(property), value)
}

// child returns a construct of the hub.
func (a adjustable) child(id string) constructs.IConstruct {
	return a.hub.Node().FindChild(jsii.String(id))
}

func (a adjustable) memory(id string, megabytes float64, functions ...awslambda.Function) {
	value := a.number(id, megabytes, leastMemory, mostMemory, jsii.String("MB"))
	for _, function := range functions {
		a.override(function, "MemorySize", value)
	}
}

func (a adjustable) logRetention(groups []string) {
	parameter := awscdk.NewCfnParameter(a.stack, jsii.String("LogRetention"), &awscdk.CfnParameterProps{
		Type: jsii.String("Number"), Default: jsii.String("30"),
		Description: jsii.String("Retention of the logs in days"),
		// the values that CloudWatch Logs supports
		AllowedValues: jsii.Strings("1", "3", "5", "7", "14", "30", "60", "90", "120", "150", "180", "365", "400",
			"545", "731", "1096", "1827", "2192", "2557", "2922", "3288", "3653"),
	})
	for _, group := range groups {
		a.override(a.child(group), "RetentionInDays", parameter.ValueAsNumber())
	}
}

// concurrency adds a parameter that limits mappings. 0 omits the limit. Lambda rejects the limit 1.
func (a adjustable) concurrency(id string, mappings ...string) {
	most := a.text(id, "0", "^(0|[2-9]|[1-9][0-9]{1,2}|1000)$",
		"Maximum concurrent invocations, from 2 to 1000; 0 = no limit")
	limited := awscdk.NewCfnCondition(a.stack, jsii.String("Has"+id), &awscdk.CfnConditionProps{
		Expression: awscdk.Fn_ConditionNot(awscdk.Fn_ConditionEquals(most, "0")),
	})
	for _, mapping := range mappings {
		a.override(a.child(mapping), "ScalingConfig", awscdk.Fn_ConditionIf(limited.LogicalId(),
			map[string]any{"MaximumConcurrency": most}, awscdk.Aws_NO_VALUE()))
	}
}

// required adds a parameter without a default value.
func (p parameters) required(id, pattern, description string) string {
	parameter := awscdk.NewCfnParameter(p.stack, jsii.String(id), &awscdk.CfnParameterProps{
		AllowedPattern: jsii.String(pattern), Description: jsii.String(description),
	})
	return *parameter.ValueAsString()
}

// optional adds a parameter that is empty by default. Its token removes the property if the parameter is empty.
func (p parameters) optional(id, pattern, description string) *string {
	value := p.text(id, "", pattern, description)
	given := awscdk.NewCfnCondition(p.stack, jsii.String("Has"+id), &awscdk.CfnConditionProps{
		Expression: awscdk.Fn_ConditionNot(awscdk.Fn_ConditionEquals(value, "")),
	})
	return awscdk.Token_AsString(awscdk.Fn_ConditionIf(given.LogicalId(), value, awscdk.Aws_NO_VALUE()), nil)
}
