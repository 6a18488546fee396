package cdk_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscodedeploy"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsdynamodb"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsec2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsecr"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awskms"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslogs"
	"github.com/aws/aws-cdk-go/awscdk/v2/awss3"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssns"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"github.com/perdure/perdure/infra/cdk"
)

// everyPropFile is a template that `make lint-template` checks in addition to the template of the reference stack.
const everyPropFile = "testdata/every-prop.golden.json"

// everyProp returns the props of three hubs that together set every field. One hub is not enough because some fields
// exclude each other.
func everyProp(stack awscdk.Stack) []cdk.TaskHubProps {
	id := jsii.String
	minutes := func(n float64) awscdk.Duration { return awscdk.Duration_Minutes(jsii.Number(n)) }
	seconds := func(n float64) awscdk.Duration { return awscdk.Duration_Seconds(jsii.Number(n)) }
	vpc := awsec2.Vpc_FromVpcAttributes(stack, id("Vpc"), &awsec2.VpcAttributes{
		VpcId: id("vpc-0123456789abcdef0"), AvailabilityZones: jsii.Strings("eu-west-1a", "eu-west-1b"),
		PrivateSubnetIds: jsii.Strings("subnet-0123456789abcdef0", "subnet-0123456789abcdef1"),
	})
	boundary := awsiam.ManagedPolicy_FromManagedPolicyArn(stack, id("Boundary"), id(boundaryARN))
	zip := &cdk.FunctionCode{
		Code: awslambda.Code_FromBucketV2(awss3.Bucket_FromBucketName(stack, id("Builds"), id("builds")),
			id("orders.zip"), nil),
		BuildID: "c0ffee",
	}
	image := cdk.FunctionProps{Code: &cdk.FunctionCode{
		Code: awslambda.Code_FromEcrImage(awsecr.Repository_FromRepositoryName(stack, id("Images"), id("images")),
			&awslambda.EcrImageCodeProps{TagOrDigest: id("v7")}),
		Image: true, BuildID: "v7",
	}}
	pager := awssns.Topic_FromTopicArn(stack, id("Pager"), id("arn:aws:sns:eu-west-1:123456789012:pager"))
	gate := awslambda.Function_FromFunctionArn(stack, id("Gate"),
		id("arn:aws:lambda:eu-west-1:123456789012:function:gate"))
	lost := awscloudwatch.Alarm_FromAlarmArn(stack, id("Lost"),
		id("arn:aws:cloudwatch:eu-west-1:123456789012:alarm:orders-lost"))

	return []cdk.TaskHubProps{
		{
			HubName: "orders", FunctionsDir: placeholders, LargePayloads: true,
			Architecture: awslambda.Architecture_X86_64(), WorkQueues: []string{"default", "payments"},
			WorkQueueProps: map[string]cdk.WorkQueueProps{"payments": {
				FunctionProps: cdk.FunctionProps{MemorySize: 2048, Code: zip}, Timeout: minutes(5), Concurrency: 3,
				BatchSize: 1, AgeAlarm: minutes(5), Exclusive: true, Client: true,
			}},
			OrchestratorProps: cdk.FunctionProps{MemorySize: 1024}, RenewerProps: cdk.FunctionProps{MemorySize: 512},
			APIProps:     cdk.FunctionProps{MemorySize: 512},
			InboxTimeout: seconds(60), InboxVisibility: seconds(180), InlineTimeout: seconds(5),
			WorkTimeout: minutes(10), LockTimeout: seconds(20), LockRenewalBuffer: seconds(4),
			CancelPollInterval:      seconds(2),
			CancellationGracePeriod: seconds(5), MaxCrashes: jsii.Number(5), OmitErrorTexts: true,
			Retention: awscdk.Duration_Days(jsii.Number(90)), SweepRate: "rate(1 minute)",
			InboxConcurrency: 50, TimersConcurrency: 5, WorkConcurrency: 20, APIConcurrency: 10, UI: true,
			DeadLetters: true, LogRetention: awslogs.RetentionDays_ONE_YEAR, LogLevel: "debug",
			Metrics: cdk.MetricsByHub, AlarmTopic: pager,
			Schedules: []cdk.Schedule{{
				ID: "nightly", Orchestration: "report", Version: "2", Input: json.RawMessage(`{"of":"sales"}`),
				Expression: "cron(0 2 * * ? *)", TimeZone: "Europe/Berlin", Overlap: "queue", CatchUp: "all",
			}},
			Canary: &cdk.Canary{
				DeploymentConfig: awscodedeploy.LambdaDeploymentConfig_LINEAR_10PERCENT_EVERY_1MINUTE(),
				Alarms:           []awscloudwatch.IAlarm{lost},
			},
			HTTPAPI: cdk.HTTPAPIProps{
				RateLimit: 100, BurstLimit: 200, AccessLogs: true, JWT: &cdk.JWTAuthorizer{
					Issuer: "https://id.example.com", Audience: []string{"orders"},
				},
				Domain: &cdk.APIDomain{
					Name:           "orders.example.com",
					CertificateARN: "arn:aws:acm:eu-west-1:123456789012:certificate/11111111-2222-3333-4444-555555555555",
				},
				CORS: &cdk.CORS{
					AllowOrigins: []string{"https://app.example.com"}, AllowHeaders: []string{"x-team"},
					MaxAge: minutes(10),
				},
			},
			PlatformProps: cdk.PlatformProps{
				NamePrefix: "acme-prod-orders", Vpc: vpc, SecurityGroups: []awsec2.ISecurityGroup{
					awsec2.SecurityGroup_FromSecurityGroupId(stack, id("Group"), id("sg-0123456789abcdef0"), nil),
				},
				EncryptionKey: awskms.NewKey(stack, id("Key"),
					&awskms.KeyProps{EnableKeyRotation: jsii.Bool(true)}),
				MaxReadRequestUnits: 4000, MaxWriteRequestUnits: 2000, PermissionsBoundary: boundary,
				TableRemovalPolicy: awscdk.RemovalPolicy_RETAIN_ON_UPDATE_OR_DELETE,
				QueueRemovalPolicy: awscdk.RemovalPolicy_RETAIN, LogRemovalPolicy: awscdk.RemovalPolicy_RETAIN,
			},
		},
		{
			HubName: "audit", WorkQueues: []string{"default"}, OrchestratorProps: image, RenewerProps: image,
			APIProps:       image,
			WorkQueueProps: map[string]cdk.WorkQueueProps{"default": {FunctionProps: image}},
			HTTPAPI:        cdk.HTTPAPIProps{Authorizer: gate},
			PlatformProps: cdk.PlatformProps{
				Vpc: vpc, VpcSubnets: &awsec2.SubnetSelection{SubnetType: awsec2.SubnetType_PRIVATE_WITH_EGRESS},
				Table:         awsdynamodb.Table_FromTableName(stack, id("Table"), id("restored")),
				PayloadBucket: awss3.Bucket_FromBucketName(stack, id("Payloads"), id("payloads")),
			},
		},
		{
			HubName: "trial", FunctionsDir: placeholders, DeadLetters: true, APIKind: cdk.APIKindHTTP, StreamURL: true,
			Timers: cdk.TimersRequeue, MaxTimerDelay: seconds(60), ScheduleLead: seconds(5),
			WithoutDeletionProtection: true,
		},
	}
}

// withoutResources lists props that remove resources.
var withoutResources = []string{"TaskHubProps.WithoutAlarms", "TaskHubProps.WithoutDashboard"}

func TestEveryProp_templateMatchesGoldenFile(t *testing.T) {
	t.Parallel()
	jsiiLock.Lock()
	defer jsiiLock.Unlock()
	dir := t.TempDir()
	app := awscdk.NewApp(&awscdk.AppProps{Outdir: jsii.String(dir), AnalyticsReporting: jsii.Bool(false)})
	stack := awscdk.NewStack(app, jsii.String("EveryProp"), &awscdk.StackProps{
		Synthesizer: awscdk.NewDefaultStackSynthesizer(
			&awscdk.DefaultStackSynthesizerProps{GenerateBootstrapVersionRule: jsii.Bool(false)},
		),
	})
	set := map[string]bool{}
	for _, props := range everyProp(stack) {
		note(set, reflect.ValueOf(props))
		hub := cdk.NewTaskHub(stack, props.HubName, props)
		grantAll(stack, hub, props)
	}
	for name, is := range set {
		if !is && !slices.Contains(withoutResources, name) {
			t.Errorf("no hub sets %s, so the checks omit its resources", name)
		}
	}

	app.Synth(nil)
	got, err := os.ReadFile(filepath.Join(dir, "EveryProp.template.json"))
	if err != nil {
		t.Fatal(err)
	}
	got = append(bytes.TrimSpace(got), '\n')
	if *update {
		if err := os.WriteFile(everyPropFile, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	golden, err := os.ReadFile(everyPropFile)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(golden, got) {
		t.Errorf("the template differs from the golden file; if intended, run go test . -update\n%s",
			firstDifference(string(golden), string(got)))
	}
}

// note records for each field of a struct of the package, and of nested structs, whether the field is set.
func note(set map[string]bool, v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			note(set, v.Elem())
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			note(set, v.MapIndex(key))
		}
	case reflect.Struct:
		if v.Type().PkgPath() != "github.com/perdure/perdure/infra/cdk" {
			return
		}
		for i := range v.NumField() {
			name := v.Type().Name() + "." + v.Type().Field(i).Name
			set[name] = set[name] || !v.Field(i).IsZero()
			note(set, v.Field(i))
		}
	}
}

// grantAll gives a role each grant of the hub.
func grantAll(stack awscdk.Stack, hub *cdk.TaskHub, props cdk.TaskHubProps) {
	role := func(name string) awsiam.IGrantable {
		return awsiam.NewRole(constructs.Construct(stack), jsii.String(props.HubName+name), &awsiam.RoleProps{
			AssumedBy: awsiam.NewServicePrincipal(jsii.String("lambda.amazonaws.com"), nil),
		})
	}
	v := reflect.ValueOf(hub)
	for i := range v.NumMethod() {
		name := v.Type().Method(i).Name
		if !strings.HasPrefix(name, "Grant") || panics(func() { callGrant(v.Method(i), role(name)) }) {
			continue // this kind of API does not support the grant
		}
	}
}

func callGrant(grant reflect.Value, to awsiam.IGrantable) {
	args := []reflect.Value{reflect.ValueOf(to)}
	if grant.Type().NumIn() == 2 {
		args = append(args, reflect.ValueOf("default"))
	}
	grant.Call(args)
}
