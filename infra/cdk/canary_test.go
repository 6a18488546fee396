package cdk_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscodedeploy"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awss3"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssns"
	"github.com/aws/jsii-runtime-go"

	"github.com/perdure/perdure/infra/cdk"
)

const (
	aliasType   = "AWS::Lambda::Alias"
	versionType = "AWS::Lambda::Version"
	groupType   = "AWS::CodeDeploy::DeploymentGroup"
)

var (
	canaryLock   sync.Mutex
	canariesMade = map[string]template{}
)

// With a canary, queries invoke the alias, like the event source mappings. No role may invoke the function itself.
func TestCanary_queries_invokeAliasOnly(t *testing.T) {
	t.Parallel()
	got := withCanary(t, "c0ffee")
	variables, _ := got.find(t, "AWS::Lambda::Function", "TaskHubApi").get("Environment", "Variables").(map[string]any)
	if where, _ := json.Marshal(variables["PERDURE_ORCHESTRATOR"]); !strings.Contains(string(where), ":live") {
		t.Errorf("the API queries %s", where)
	}
	found := 0
	for _, s := range statementsOf(got.find(t, "AWS::IAM::Role", "TaskHubApiRole")) {
		if slices.Contains(s.actions, "lambda:InvokeFunction") {
			if found++; len(s.resources) != 1 || !strings.Contains(s.resources[0], ":live") {
				t.Errorf("the API may invoke %s", s.resources)
			}
		}
	}
	if found != 1 {
		t.Errorf("%d statements let the API invoke a function", found)
	}
}

// withCanary returns the template of a build. It synthesizes each build once, because tests only read the template.
func withCanary(t *testing.T, build string) template {
	t.Helper()
	canaryLock.Lock()
	defer canaryLock.Unlock()
	if _, made := canariesMade[build]; !made {
		canariesMade[build] = makeCanary(t, build, "")
	}
	return canariesMade[build]
}

// makeCanary synthesizes a hub with a canary of a build. An alarm of the team also rolls the canary back.
func makeCanary(t *testing.T, build, logLevel string) template {
	t.Helper()
	topic := given(func(stack awscdk.Stack) awssns.ITopic {
		return awssns.Topic_FromTopicArn(stack, jsii.String("Pager"),
			jsii.String("arn:aws:sns:eu-west-1:123456789012:pager"))
	})
	boundary := given(func(stack awscdk.Stack) awsiam.IManagedPolicy {
		return awsiam.ManagedPolicy_FromManagedPolicyArn(stack, jsii.String("Boundary"), jsii.String(boundaryARN))
	})
	canary := given(func(stack awscdk.Stack) *cdk.Canary {
		return &cdk.Canary{
			DeploymentConfig: awscodedeploy.LambdaDeploymentConfig_LINEAR_10PERCENT_EVERY_1MINUTE(),
			Alarms: []awscloudwatch.IAlarm{
				awscloudwatch.Alarm_FromAlarmArn(stack, jsii.String("Orders"),
					jsii.String("arn:aws:cloudwatch:eu-west-1:123456789012:alarm:orders-lost")),
			},
		}
	})
	code := given(func(stack awscdk.Stack) *cdk.FunctionCode {
		bucket := awss3.Bucket_FromBucketName(stack, jsii.String("Builds"), jsii.String("builds"))
		return &cdk.FunctionCode{
			Code: awslambda.Code_FromBucketV2(bucket, jsii.String(build+".zip"), nil), BuildID: build,
		}
	})
	return custom(t, cdk.TaskHubProps{
		HubName: "orders", FunctionsDir: placeholders, WorkQueues: []string{"default", "payments"}, Canary: canary,
		AlarmTopic: topic, LogLevel: logLevel,
		OrchestratorProps: cdk.FunctionProps{Code: code},
		PlatformProps:     cdk.PlatformProps{PermissionsBoundary: boundary},
	}, func(awscdk.Stack, *cdk.TaskHub) {})
}

func TestCanary_notConfigured_createsNoAliases(t *testing.T) {
	t.Parallel()
	parsed := parse(t)
	for _, kind := range []string{aliasType, versionType, groupType} {
		if n := len(parsed.ofType(kind)); n > 0 {
			t.Errorf("%d of %s", n, kind)
		}
	}
}

// The queues are mapped to the aliases of the functions that run the code of the team.
func TestCanary_shiftsOrchestratorAndWorkersOnly(t *testing.T) {
	t.Parallel()
	got := withCanary(t, "c0ffee")
	for mapping, function := range map[string]string{
		"TaskHubInboxMapping": "TaskHubOrchestrator", "TaskHubWorkMappingdefault": "TaskHubWorkerdefault",
		"TaskHubWorkMappingpayments": "TaskHubWorkerpayments",
	} {
		name := strings.Join(leaves(got.find(t, mappingType, mapping).get("FunctionName")), " ")
		i := slices.IndexFunc(got.ofType(aliasType), func(r resource) bool { return strings.Contains(name, r.id) })
		if i < 0 || !strings.HasSuffix(name, ":live") {
			t.Fatalf("%s targets %s, which is not an alias", mapping, name)
		}
		alias := got.ofType(aliasType)[i]
		if !strings.HasPrefix(refOf(alias.get("FunctionName")), function) {
			t.Errorf("%s targets an alias of %v", mapping, alias.get("FunctionName"))
		}
		version := got.find(t, versionType, refOf(alias.get("FunctionVersion")))
		if version.deletionPolicy != "RetainExceptOnCreate" { // kept after its deployment has succeeded
			t.Errorf("%s: an old version is deleted (%s) while its last activities run", function,
				version.deletionPolicy)
		}

		update, _ := got.Resources[alias.id].UpdatePolicy["CodeDeployLambdaAliasUpdate"].(map[string]any)
		group := got.find(t, groupType, refOf(update["DeploymentGroupName"]))
		if shift := strings.Join(plain(group.get("DeploymentConfigName")),
			""); shift != "CodeDeployDefault.LambdaLinear10PercentEvery1Minute" {
			t.Errorf("%s is shifted by %s", function, shift)
		}
		if events := plain(group.get("AutoRollbackConfiguration", "Events")); !slices.Contains(events,
			"DEPLOYMENT_STOP_ON_ALARM") || !slices.Contains(events, "DEPLOYMENT_FAILURE") {
			t.Errorf("%s is rolled back on %v", function, events)
		}
		if after := plain(got.Resources[alias.id].DependsOn); !slices.ContainsFunc(after, func(id string) bool {
			return id == group.id
		}) {
			t.Errorf("%s may be shifted before its deployment group has the new alarms: it waits for %v", function,
				after)
		}
	}
	if timers := got.find(t, mappingType, "TaskHubTimersMapping"); !strings.HasPrefix(refOf(timers.get("FunctionName")),
		"TaskHubRenewer") {
		t.Errorf("the mapping of the timers targets %v", timers.get("FunctionName"))
	}
}

// New workers must be deployed before the orchestrators that call their activities.
func TestCanary_shiftsWorkersBeforeOrchestrator(t *testing.T) {
	t.Parallel()
	got := withCanary(t, "c0ffee")
	after := plain(got.Resources[got.find(t, aliasType, "TaskHubOrchestrator").id].DependsOn)
	for _, worker := range []string{"TaskHubWorkerdefaultAlias", "TaskHubWorkerpaymentsAlias"} {
		if !slices.ContainsFunc(after, func(id string) bool { return strings.HasPrefix(id, worker) }) {
			t.Errorf("the orchestrator does not wait for %s: it waits for %v", worker, after)
		}
	}
}

// A build is rolled back by errors of its own version, and by instances that it blocks first.
func TestCanary_newVersionHasFaults_isRolledBack(t *testing.T) {
	t.Parallel()
	got := withCanary(t, "c0ffee")
	byName := map[string]resource{}
	for _, alarm := range got.ofType(alarmType) {
		byName[alarm.id] = alarm
	}
	watched := func(function string) (alarms []resource, others []string) {
		group := got.find(t, groupType, "TaskHub"+function)
		list, _ := group.get("AlarmConfiguration", "Alarms").([]any)
		for _, each := range list {
			name, _ := each.(map[string]any)
			if alarm, own := byName[refOf(name["Name"])]; own {
				alarms = append(alarms, alarm)
			} else {
				others = append(others, strings.Join(plain(name["Name"]), ""))
			}
		}
		return alarms, others
	}
	for _, function := range []string{"Orchestrator", "Workerdefault", "Workerpayments"} {
		alarms, others := watched(function)
		if !slices.Equal(others, []string{"orders-lost"}) {
			t.Errorf("%s: the alarms of the team are %v", function, others)
		}
		metrics := map[string]resource{}
		for _, alarm := range alarms {
			metrics[alarm.text("MetricName")] = alarm
			if alarm.get("Period") != 60.0 || alarm.get("Threshold") != 1.0 ||
				alarm.text("TreatMissingData") != "notBreaching" || alarm.get("AlarmActions") == nil {
				t.Errorf("%s is %v", alarm.id, alarm.properties)
			}
		}
		dimensions := dimensionsOf(metrics["Errors"])
		if version := got.find(t, versionType,
			dimensions["ExecutedVersion"]); !strings.HasPrefix(refOf(version.get("FunctionName")),
			"TaskHub"+function) ||
			!strings.HasSuffix(dimensions["Resource"], ":live") ||
			dimensions["FunctionName"]+":live" != dimensions["Resource"] {
			t.Errorf("%s: errors of %v", function, dimensions)
		}
		blocked, has := metrics["newlyBlocked"]
		if has != (function == "Orchestrator") || has && dimensionsOf(blocked)["build"] != "c0ffee" {
			t.Errorf("%s: blocked instances of %v", function, dimensionsOf(blocked))
		}
	}

	for id, want := range map[string]struct{ pattern, build string }{
		"TaskHubNewlyBlocked": {"{ $.newlyBlocked IS TRUE }", "$.buildId"}, "TaskHubBlockedOnNewer": {
			"{ $.blockedOnNewer IS TRUE }", "$.newerBuild",
		},
	} {
		filter := got.find(t, "AWS::Logs::MetricFilter", id)
		how, _ := filter.get("MetricTransformations").([]any)
		made, _ := how[0].(map[string]any)
		dimensions, _ := made["Dimensions"].([]any)
		by, _ := dimensions[0].(map[string]any)
		if filter.text("FilterPattern") != want.pattern || made["MetricName"] != "newlyBlocked" ||
			made["MetricNamespace"] != "perdure/orders" || by["Key"] != "build" || by["Value"] != want.build {
			t.Errorf("the metric is %v of %s", made, filter.text("FilterPattern"))
		}
	}
}

// An alarm of the previous version must not roll back the version that fixes the fault, even if both have the same
// build and differ only in their environment.
func TestCanaryAlarms_newVersion_haveNewNames(t *testing.T) {
	t.Parallel()
	before := namesOfCanaryAlarms(withCanary(t, "c0ffee"), "Orchestrator")
	for what, got := range map[string]template{
		"another build": withCanary(t, "decade"), "another log level": makeCanary(t, "c0ffee", "debug"),
	} {
		after := namesOfCanaryAlarms(got, "Orchestrator")
		if len(before) != 2 || len(after) != 2 {
			t.Fatalf("%v, %v", before, after)
		}
		for _, name := range after {
			if slices.Contains(before, name) {
				t.Errorf("%s: both versions have %s", what, name)
			}
			if len(name) > 255 {
				t.Errorf("the name %s is too long", name)
			}
		}
	}
}

// A version that is not replaced keeps its alarms, because their state still applies.
func TestCanaryAlarms_unchangedVersion_keepTheirNames(t *testing.T) {
	t.Parallel()
	before, after := namesOfCanaryAlarms(withCanary(t, "c0ffee"), "Worker"),
		namesOfCanaryAlarms(withCanary(t, "decade"), "Worker")
	if len(before) != 2 || !slices.Equal(before, after) {
		t.Errorf("%v, then %v", before, after)
	}
}

// namesOfCanaryAlarms returns the sorted names of the canary alarms of a kind of function.
func namesOfCanaryAlarms(got template, function string) (all []string) {
	for _, alarm := range got.ofType(alarmType) {
		if name := alarm.text("AlarmName"); strings.Contains(name, "-Canary") &&
			strings.Contains(name, "-"+function+"-") {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return all
}

func TestCanary_permissionsBoundary_appliesToDeploymentRole(t *testing.T) {
	t.Parallel()
	if role := withCanary(t, "c0ffee").find(t, roleType,
		"TaskHubDeploymentsRole"); role.text("PermissionsBoundary") != boundaryARN {
		t.Errorf("the permissions boundary is %v", role.get("PermissionsBoundary"))
	}
}

func TestCanaryAlarms_areInTheRunbook(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("../../docs/operate/alarms.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"CanaryErrors", "CanaryBlocked"} {
		if !strings.Contains(string(b), "| "+kind) {
			t.Errorf("the runbook has no line about %s", kind)
		}
	}
}

// leaves returns all strings within a value, at any depth.
func leaves(value any) (all []string) {
	switch v := value.(type) {
	case string:
		return []string{v}
	case []any:
		for _, each := range v {
			all = append(all, leaves(each)...)
		}
	case map[string]any:
		for _, each := range v {
			all = append(all, leaves(each)...)
		}
	}
	return all
}

func dimensionsOf(alarm resource) map[string]string {
	all := map[string]string{}
	list, _ := alarm.get("Dimensions").([]any)
	for _, each := range list {
		d, _ := each.(map[string]any)
		name, _ := d["Name"].(string)
		all[name] = strings.Join(plain(d["Value"]), "")
	}
	return all
}
