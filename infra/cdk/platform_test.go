package cdk_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscodedeploy"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsdynamodb"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsec2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsecr"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awskms"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awss3"
	"github.com/aws/jsii-runtime-go"

	"github.com/perdure/perdure/infra/cdk"
	refstack "github.com/perdure/perdure/infra/cdk/reference"
)

const (
	functionType = "AWS::Lambda::Function"
	roleType     = "AWS::IAM::Role"
	keyARN       = "arn:aws:kms:eu-west-1:123456789012:key/11111111-2222-3333-4444-555555555555"
	boundaryARN  = "arn:aws:iam::123456789012:policy/boundary"
)

// given creates a construct that the props refer to, in another stack than the hub.
func given[T any](use func(awscdk.Stack) T) T {
	jsiiLock.Lock()
	defer jsiiLock.Unlock()
	return use(awscdk.NewStack(awscdk.NewApp(nil), jsii.String("Given"), nil))
}

func TestWorkQueueProps_changeTheirQueueOnly(t *testing.T) {
	t.Parallel()
	code := given(func(stack awscdk.Stack) awslambda.Code {
		return awslambda.Code_FromBucketV2(awss3.Bucket_FromBucketName(stack, jsii.String("Builds"),
			jsii.String("builds")), jsii.String("payments.zip"), nil)
	})
	minutes := given(func(awscdk.Stack) awscdk.Duration { return awscdk.Duration_Minutes(jsii.Number(5)) })
	got := custom(t, cdk.TaskHubProps{
		HubName: "orders", FunctionsDir: placeholders, WorkQueues: []string{"default", "payments"}, WorkConcurrency: 7,
		OrchestratorProps: cdk.FunctionProps{MemorySize: 1024},
		WorkQueueProps: map[string]cdk.WorkQueueProps{"payments": {
			FunctionProps: cdk.FunctionProps{MemorySize: 2048, Code: &cdk.FunctionCode{Code: code, BuildID: "c0ffee"}},
			Timeout:       minutes, Concurrency: 3, BatchSize: 1, AgeAlarm: minutes,
		}},
	}, func(awscdk.Stack, *cdk.TaskHub) {})

	worker := got.find(t, functionType, "TaskHubWorkerpayments")
	if memory, timeout := got.number(t, worker, "MemorySize"),
		got.number(t, worker, "Timeout"); memory != 2048 || timeout != 300 {
		t.Errorf("the worker has %v MB and %v s", memory, timeout)
	}
	if worker.text("Code", "S3Key") != "payments.zip" ||
		worker.text("Environment", "Variables", "PERDURE_BUILD_ID") != "c0ffee" {
		t.Errorf("the code of the worker is %v of build %v", worker.get("Code"),
			worker.get("Environment", "Variables", "PERDURE_BUILD_ID"))
	}
	if n := got.number(t, got.find(t, queueType, "TaskHubWorkpayments"), "VisibilityTimeout"); n != 300 {
		t.Errorf("the visibility timeout of the queue is %v s", n)
	}
	mapping := got.find(t, mappingType, "TaskHubWorkMappingpayments")
	if n := mapping.get("ScalingConfig", "MaximumConcurrency"); n != 3.0 || mapping.get("BatchSize") != 1.0 {
		t.Errorf("the mapping has a concurrency of %v and batches of %v", n, mapping.get("BatchSize"))
	}
	for _, alarm := range got.ofType(alarmType) {
		if alarm.text("AlarmName") == "perdure-orders-WorkAge-payments" && alarm.get("Threshold") != 300.0 {
			t.Errorf("the alarm threshold is %v s", alarm.get("Threshold"))
		}
	}

	other := got.find(t, functionType, "TaskHubWorkerdefault")
	if memory, timeout := got.number(t, other, "MemorySize"),
		got.number(t, other, "Timeout"); memory != 256 || timeout != 900 {
		t.Errorf("the other queue's worker has %v MB and %v s", memory, timeout)
	}
	if n := got.find(t, mappingType, "TaskHubWorkMappingdefault").get("ScalingConfig", "MaximumConcurrency"); n != 7.0 {
		t.Errorf("the other queue's mapping has a concurrency of %v", n)
	}
	if n := got.number(t, got.find(t, functionType, "TaskHubOrchestrator"), "MemorySize"); n != 1024 {
		t.Errorf("the orchestrator has %v MB", n)
	}
}

func TestFunctionCode_containerImage_isUsedByFunctions(t *testing.T) {
	t.Parallel()
	code := given(func(stack awscdk.Stack) *cdk.FunctionCode {
		repository := awsecr.Repository_FromRepositoryName(stack, jsii.String("Images"), jsii.String("images"))
		return &cdk.FunctionCode{
			Code: awslambda.Code_FromEcrImage(repository,
				&awslambda.EcrImageCodeProps{TagOrDigest: jsii.String("v7")}),
			Image: true, BuildID: "v7",
		}
	})
	own := cdk.FunctionProps{Code: code}
	got := custom(t, cdk.TaskHubProps{
		HubName: "orders", OrchestratorProps: own, RenewerProps: own, APIProps: own,
		WorkQueueProps: map[string]cdk.WorkQueueProps{"default": {FunctionProps: own}},
		WorkQueues:     []string{"default"},
	}, func(awscdk.Stack, *cdk.TaskHub) {})
	for _, function := range got.ofType(functionType) {
		image := strings.Join(plain(function.get("Code", "ImageUri")), "")
		if function.text("PackageType") != "Image" || !strings.Contains(image, "images:v7") ||
			function.get("Handler") != nil || function.get("Runtime") != nil {
			t.Errorf("%s: %s %s, handler %v of %v", function.id, function.text("PackageType"), image,
				function.get("Handler"), function.get("Runtime"))
		}
	}
}

func TestVpcProp_connectsFunctionsToTheVPC(t *testing.T) {
	t.Parallel()
	vpc := given(func(stack awscdk.Stack) awsec2.IVpc {
		return awsec2.Vpc_FromVpcAttributes(stack, jsii.String("Vpc"), &awsec2.VpcAttributes{
			VpcId: jsii.String("vpc-0123456789abcdef0"), AvailabilityZones: jsii.Strings("eu-west-1a"),
			PrivateSubnetIds: jsii.Strings("subnet-0123456789abcdef0"),
		})
	})
	group := given(func(stack awscdk.Stack) awsec2.ISecurityGroup {
		return awsec2.SecurityGroup_FromSecurityGroupId(stack, jsii.String("Group"),
			jsii.String("sg-0123456789abcdef0"), nil)
	})
	got := custom(t, cdk.TaskHubProps{
		HubName: "orders", FunctionsDir: placeholders, PlatformProps: cdk.PlatformProps{
			Vpc: vpc, SecurityGroups: []awsec2.ISecurityGroup{group},
		},
	}, func(awscdk.Stack, *cdk.TaskHub) {})
	for _, function := range got.ofType(functionType) {
		subnets, groups := plain(function.get("VpcConfig", "SubnetIds")),
			plain(function.get("VpcConfig", "SecurityGroupIds"))
		if !slices.Equal(subnets, []string{"subnet-0123456789abcdef0"}) ||
			!slices.Equal(groups, []string{"sg-0123456789abcdef0"}) {
			t.Errorf("%s is in %v, %v", function.id, subnets, groups)
		}
		role := got.find(t, roleType, refOf(function.get("Role")))
		if actions := actionsOf(statementsOf(role)); !actions["ec2:CreateNetworkInterface"] ||
			!actions["ec2:DeleteNetworkInterface"] {
			t.Errorf("%s may not create a network interface", role.id)
		}
	}
}

// TestEncryption_… checks what the key encrypts.
func TestEncryptionKeyProp_isUsableByAllRoles(t *testing.T) {
	t.Parallel()
	key := given(func(stack awscdk.Stack) awskms.IKey {
		return awskms.Key_FromKeyArn(stack, jsii.String("Key"), jsii.String(keyARN))
	})
	got := custom(t, cdk.TaskHubProps{
		HubName: "orders", FunctionsDir: placeholders, PlatformProps: cdk.PlatformProps{EncryptionKey: key},
	},
		func(awscdk.Stack, *cdk.TaskHub) {})
	for _, role := range roles(t, got) {
		if actions := actionsOf(statementsOf(role)); !actions["kms:Decrypt"] || !actions["kms:GenerateDataKey"] {
			t.Errorf("%s may not use the key", role.id)
		}
	}
}

func TestTableProp_existingTable_isUsed(t *testing.T) {
	t.Parallel()
	got := custom(t, cdk.TaskHubProps{
		HubName: "orders", FunctionsDir: placeholders, PlatformProps: cdk.PlatformProps{Table: restoredTable()},
	},
		func(awscdk.Stack, *cdk.TaskHub) {})
	if n := len(got.ofType(tableType)); n > 0 {
		t.Errorf("%d tables are made", n)
	}
	for _, function := range got.ofType(functionType) {
		if name := function.text("Environment", "Variables", "PERDURE_TABLE"); name != "restored" {
			t.Errorf("%s uses table %s", function.id, name)
		}
	}
	orchestrator := statementsOf(got.find(t, roleType, "TaskHubOrchestratorRole"))
	if arn := orchestrator[0].resources[0]; !strings.HasSuffix(arn, ":table/restored") {
		t.Errorf("the orchestrator may use %s", arn)
	}
}

// A hub is paused while it is deployed on a restored table. CloudFormation does not update resources that are unchanged
// in the template, so triggers stay disabled and queues keep their names.
func TestTable_restored_changesNoTriggersAndQueues(t *testing.T) {
	t.Parallel()
	canary := given(func(awscdk.Stack) *cdk.Canary {
		return &cdk.Canary{DeploymentConfig: awscodedeploy.LambdaDeploymentConfig_ALL_AT_ONCE()}
	})
	for name, props := range map[string]cdk.TaskHubProps{
		"default": {HubName: "orders", FunctionsDir: placeholders},
		"canary":  {HubName: "orders", FunctionsDir: placeholders, Canary: canary},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := custom(t, props, func(awscdk.Stack, *cdk.TaskHub) {})
			props.Table = restoredTable()
			after := custom(t, props, func(awscdk.Stack, *cdk.TaskHub) {})

			if policy := before.find(t, tableType, "TaskHub").deletionPolicy; policy != "Retain" {
				t.Errorf("the deletion policy of the replaced table is %s, want Retain", policy)
			}
			for _, kind := range []string{
				mappingType, "AWS::Events::Rule", queueType, "AWS::Scheduler::ScheduleGroup",
			} {
				was, is := before.ofType(kind), after.ofType(kind)
				if len(was) == 0 || !reflect.DeepEqual(was, is) {
					t.Errorf("%s: the template has %+v, want %+v", kind, is, was)
				}
			}
		})
	}
}

func TestReferenceStack_existingTable_usesIt(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	jsiiLock.Lock()
	refstack.NewApp(dir, refstack.StackProps{
		FunctionsDir: placeholders, WorkQueues: []string{"default"}, Table: "restored",
	}).Synth(nil)
	jsiiLock.Unlock()
	raw, err := os.ReadFile(filepath.Join(dir, "Perdure.template.json"))
	if err != nil {
		t.Fatal(err)
	}
	var got template
	if err := json.Unmarshal(raw, &got); err != nil {
		t.Fatal(err)
	}

	if n := len(got.ofType(tableType)); n > 0 {
		t.Errorf("the stack creates %d tables, want none", n)
	}
	config := got.find(t, "AWS::SSM::Parameter", "TaskHub")
	if value := strings.Join(plain(config.get("Value")), ""); !strings.Contains(value, `"table":"restored"`) {
		t.Errorf("the configuration of the hub is %s, want the table restored", value)
	}
}

// restoredTable returns an existing table with the name restored.
func restoredTable() awsdynamodb.ITable {
	return given(func(stack awscdk.Stack) awsdynamodb.ITable {
		return awsdynamodb.Table_FromTableName(stack, jsii.String("Table"), jsii.String("restored"))
	})
}

func TestPlatformProps_setLimitsNamesPoliciesLevelsAndBoundaries(t *testing.T) {
	t.Parallel()
	boundary := given(func(stack awscdk.Stack) awsiam.IManagedPolicy {
		return awsiam.ManagedPolicy_FromManagedPolicyArn(stack, jsii.String("Boundary"), jsii.String(boundaryARN))
	})
	got := custom(t, cdk.TaskHubProps{
		HubName: "orders", FunctionsDir: placeholders, LogLevel: "debug", Metrics: cdk.MetricsByName,
		PlatformProps: cdk.PlatformProps{
			NamePrefix: "acme-prod-orders", MaxReadRequestUnits: 4000, MaxWriteRequestUnits: 2000,
			PermissionsBoundary: boundary,
			TableRemovalPolicy:  awscdk.RemovalPolicy_RETAIN_ON_UPDATE_OR_DELETE,
			QueueRemovalPolicy:  awscdk.RemovalPolicy_RETAIN, LogRemovalPolicy: awscdk.RemovalPolicy_RETAIN,
		},
	}, func(awscdk.Stack, *cdk.TaskHub) {})

	table := got.find(t, tableType, "TaskHub")
	indexes, _ := table.get("GlobalSecondaryIndexes").([]any)
	caps := []any{table.get("OnDemandThroughput")}
	for _, each := range indexes {
		index, _ := each.(map[string]any)
		caps = append(caps, index["OnDemandThroughput"])
	}
	for _, c := range caps {
		if m, _ := c.(map[string]any); m["MaxReadRequestUnits"] != 4000.0 || m["MaxWriteRequestUnits"] != 2000.0 {
			t.Errorf("a cap is %v", c)
		}
	}
	if table.text("TableName") != "acme-prod-orders-table" || table.deletionPolicy != "RetainExceptOnCreate" {
		t.Errorf("the table is called %q, its deletion policy is %s", table.text("TableName"), table.deletionPolicy)
	}
	names := map[string]bool{}
	for _, queue := range got.ofType(queueType) {
		names[queue.text("QueueName")] = true
		if queue.deletionPolicy != "Retain" {
			t.Errorf("%s: deletion policy %s", queue.id, queue.deletionPolicy)
		}
	}
	want := []string{}
	for _, name := range []string{
		"inbox.fifo", "inbox-dead-letters.fifo", "timers", "timers-dead-letters", "work-default",
		"work-default-dead-letters",
	} {
		want = append(want, "acme-prod-orders-"+name)
	}
	if slices.Sort(want); !slices.Equal(slices.Sorted(maps.Keys(names)), want) {
		t.Errorf("the queues are called %v", names)
	}
	for _, logs := range got.ofType("AWS::Logs::LogGroup") {
		if logs.deletionPolicy != "Retain" {
			t.Errorf("%s: deletion policy %s", logs.id, logs.deletionPolicy)
		}
	}
	for _, function := range got.ofType(functionType) {
		if !strings.HasPrefix(function.text("FunctionName"), "acme-prod-orders-") {
			t.Errorf("a function is called %s", function.text("FunctionName"))
		}
		if function.text("Environment", "Variables", "PERDURE_LOG_LEVEL") != "debug" ||
			function.text("LoggingConfig", "ApplicationLogLevel") != "DEBUG" {
			t.Errorf("%s has the log level %s, and Lambda has the log level %s", function.id,
				function.text("Environment", "Variables", "PERDURE_LOG_LEVEL"),
				function.text("LoggingConfig", "ApplicationLogLevel"))
		}
		if got := function.text("Environment", "Variables", "PERDURE_METRICS"); got != "name" {
			t.Errorf("%s has metrics %q", function.id, got)
		}
	}
	for _, role := range roles(t, got) {
		if role.text("PermissionsBoundary") != boundaryARN {
			t.Errorf("%s has the boundary %v", role.id, role.get("PermissionsBoundary"))
		}
	}
}

// NewTaskHub rejects work queues whose URLs exceed the limit of 4 KB for environment variables. Otherwise the
// deployment would fail late. A shorter name prefix allows more queues.
func TestNewTaskHub_workQueuesExceedEnvironmentLimit_panics(t *testing.T) {
	t.Parallel()
	jsiiLock.Lock()
	defer jsiiLock.Unlock()
	made := func(queues int, prefix string) bool {
		props := cdk.TaskHubProps{
			HubName: "orders", FunctionsDir: placeholders, PlatformProps: cdk.PlatformProps{NamePrefix: prefix},
		}
		for n := range queues {
			props.WorkQueues = append(props.WorkQueues, fmt.Sprintf("queue-%02d", n))
		}
		stack := awscdk.NewStack(awscdk.NewApp(nil), jsii.String("Many"), nil)
		return !panics(func() { cdk.NewTaskHub(stack, "TaskHub", props) })
	}
	for _, c := range []struct {
		queues int
		prefix string
		fits   bool
	}{{8, "", true}, {9, "", false}, {12, "p", true}, {40, "p", false}} {
		if made(c.queues, c.prefix) != c.fits {
			t.Errorf("%d queues with the prefix %q: accepted %v", c.queues, c.prefix, !c.fits)
		}
	}
}

// The configuration of a hub fits into a standard parameter of Systems Manager (4 KB), with the maximum number of work
// queues that NewTaskHub accepts and the longest names that CloudFormation generates.
func TestHubConfigParameter_mostWorkQueues_fits(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		most  int
		queue string
		props cdk.TaskHubProps
	}{
		"long names": {
			most: 8, queue: "a-queue-of-20-char", props: cdk.TaskHubProps{Canary: &cdk.Canary{}},
		},
		"payload store": {most: 8, queue: "q", props: cdk.TaskHubProps{LargePayloads: true}},
		"short prefix": {
			most: 14, queue: "queue-", props: cdk.TaskHubProps{PlatformProps: cdk.PlatformProps{NamePrefix: "p"}},
		},
		"long domain": {most: 7, queue: "a-queue-of-20-char", props: cdk.TaskHubProps{HTTPAPI: longDomain()}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			props := c.props
			props.HubName, props.FunctionsDir = "a-hub-of-twenty-char", placeholders
			for n := range c.most + 1 {
				props.WorkQueues = append(props.WorkQueues, fmt.Sprintf("%s%02d", c.queue, n))
			}
			if accepted(props) {
				t.Errorf("%d work queues are accepted, want at most %d", c.most+1, c.most)
			}
			props.WorkQueues = props.WorkQueues[:c.most]
			got := custom(t, props, func(awscdk.Stack, *cdk.TaskHub) {})
			value := deployed(t, got, got.find(t, "AWS::SSM::Parameter", "TaskHub").get("Value"))
			if len(value) > 4096 {
				t.Errorf("with %d work queues, the configuration has %d bytes, want at most 4096: %s",
					c.most, len(value), value)
			}
			t.Logf("%d work queues: %d bytes", c.most, len(value))
		})
	}
}

func longDomain() cdk.HTTPAPIProps {
	return cdk.HTTPAPIProps{Domain: &cdk.APIDomain{
		Name:           strings.Repeat("orders.", 27) + "example.com",
		CertificateARN: "arn:aws:acm:us-east-1:123456789012:certificate/c",
	}}
}

// accepted reports whether NewTaskHub accepts props.
func accepted(props cdk.TaskHubProps) bool {
	jsiiLock.Lock()
	defer jsiiLock.Unlock()
	stack := awscdk.NewStack(awscdk.NewApp(nil), jsii.String("Most"), nil)
	return !panics(func() { cdk.NewTaskHub(stack, "TaskHub", props) })
}

// Values of maximum length in an ARN or URL.
const (
	longRegion  = "ap-southeast-1"
	longAccount = "123456789012"
)

// deployed returns a value of a template as CloudFormation may replace it, with names of maximum length.
func deployed(t *testing.T, got template, value any) string {
	t.Helper()
	if text, ok := value.(string); ok {
		return text
	}
	v, _ := value.(map[string]any)
	if join, ok := v["Fn::Join"].([]any); ok {
		var all strings.Builder
		for _, part := range join[1].([]any) {
			all.WriteString(deployed(t, got, part))
		}
		return all.String()
	}
	if condition, ok := v["Fn::If"].([]any); ok { // the longer URL of the API
		a, b := deployed(t, got, condition[1]), deployed(t, got, condition[2])
		if len(a) > len(b) {
			return a
		}
		return b
	}
	if _, ok := v["Fn::Select"]; ok { // the host of a function URL
		return strings.Repeat("u", 32) + ".lambda-url." + longRegion + ".on.aws"
	}

	r := got.Resources[refOf(v)]
	kind, ok := longestNames[r.Type]
	if !ok {
		t.Fatalf("unknown value %v", value)
	}
	name, ok := r.Properties[kind.property].(string)
	if !ok {
		name = strings.Repeat("n", kind.longest)
	}
	if _, isAttribute := v["Fn::GetAtt"]; isAttribute {
		return kind.attribute + name
	}
	return kind.ref + name
}

// longestNames contains, by resource type, the property with the name, its maximum length, and the text before the name
// in the reference and in the ARN.
var longestNames = map[string]struct {
	property       string
	longest        int
	ref, attribute string
}{
	queueType: {
		"QueueName", 80, "https://sqs." + longRegion + ".amazonaws.com/" + longAccount + "/",
		"arn:aws:sqs:" + longRegion + ":" + longAccount + ":",
	},
	tableType:                       {property: "TableName", longest: 163},
	"AWS::Scheduler::ScheduleGroup": {property: "Name", longest: 64},
	"AWS::S3::Bucket":               {property: "BucketName", longest: 63},
	"AWS::IAM::Role": {
		property: "RoleName", longest: 64, attribute: "arn:aws:iam::" + longAccount + ":role/",
	},
	"AWS::Lambda::Function": {
		property: "FunctionName", longest: 64,
		attribute: "arn:aws:lambda:" + longRegion + ":" + longAccount + ":function:",
	},
	"AWS::ApiGatewayV2::Api": {
		property: "ApiId", longest: 10, attribute: "https://.execute-api." + longRegion + ".amazonaws.com",
	},
}

func TestQueues_requireTLS(t *testing.T) {
	t.Parallel()
	parsed := parse(t)
	safe := map[string]bool{}
	for _, policy := range parsed.ofType("AWS::SQS::QueuePolicy") {
		document, _ := policy.get("PolicyDocument").(map[string]any)
		list, _ := document["Statement"].([]any)
		for _, each := range list {
			s, _ := each.(map[string]any)
			if s["Effect"] == "Deny" && strings.Contains(fmt.Sprint(s["Condition"]), "aws:SecureTransport:false") {
				for _, queue := range plain(policy.get("Queues")) {
					safe[queue] = true
				}
			}
		}
	}
	for _, queue := range parsed.ofType(queueType) {
		if !safe[queue.id] {
			t.Errorf("%s accepts messages without TLS", queue.id)
		}
	}
}

// Lambda does not retry a sweep that failed or was throttled, because the next sweep follows soon.
func TestSweeper_failedInvocation_isNotRetriedByLambda(t *testing.T) {
	t.Parallel()
	retries := parse(t).ofType("AWS::Lambda::EventInvokeConfig")
	if len(retries) != 1 {
		t.Fatalf("%d settings of asynchronous invocations, want the renewer's", len(retries))
	}
	r := retries[0]
	if !strings.HasPrefix(refOf(r.get("FunctionName")), "TaskHubRenewer") || r.get("MaximumRetryAttempts") != 0.0 ||
		r.get("MaximumEventAgeInSeconds") != 120.0 {
		t.Errorf("%s: %v retries with a maximum age of %v s", refOf(r.get("FunctionName")),
			r.get("MaximumRetryAttempts"), r.get("MaximumEventAgeInSeconds"))
	}
}
