package cdk_test

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	refstack "github.com/perdure/perdure/infra/cdk/reference"
)

// standaloneFile is the template that perdure deploy contains.
const standaloneFile = "../template/template.json"

// twoQueuesFile is the same template with a second work queue, for the tests of stack updates in tests/e2e.
const twoQueuesFile = "testdata/two-queues.standalone.json"

// synthesiseStandalone returns a template with the settings of the one that perdure deploy contains.
func synthesiseStandalone(t *testing.T, queues ...string) []byte {
	t.Helper()
	jsiiLock.Lock()
	defer jsiiLock.Unlock()
	raw, err := synthesiseStack(refstack.StackProps{
		Standalone: true, WorkQueues: queues, Exclusive: true, Client: true, LargePayloads: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	return append(raw, '\n')
}

// standalone returns the template that perdure deploy contains. The file equals the synthesized template.
func standalone(t *testing.T) template {
	t.Helper()
	raw, err := os.ReadFile(standaloneFile)
	if err != nil {
		t.Fatalf("read the template: %v", err)
	}
	var parsed template
	if err := json.Unmarshal(raw, &parsed); err != nil {
		t.Fatalf("parse the template: %v", err)
	}
	return parsed
}

func TestStandaloneTemplate_matchesEmbeddedFile(t *testing.T) {
	t.Parallel()
	compareGolden(t, standaloneFile, synthesiseStandalone(t, "default"))
	compareGolden(t, twoQueuesFile, synthesiseStandalone(t, "default", "second"))
}

// A stack that was deployed with the CDK's reference stack has the same resources, with the same logical IDs.
func TestStandaloneTemplate_hasTheResourcesOfTheReferenceStack(t *testing.T) {
	t.Parallel()
	got, want := standalone(t), parse(t)
	ids := func(of template) []string { return slices.Sorted(maps.Keys(of.Resources)) }
	if !slices.Equal(ids(got), ids(want)) {
		t.Errorf("resources %v, want %v", ids(got), ids(want))
	}
	for id, r := range got.Resources {
		if o := want.Resources[id]; r.Type != o.Type || r.Condition != o.Condition ||
			r.DeletionPolicy != o.DeletionPolicy {
			t.Errorf("%s: %s %s %s, want %s %s %s", id, r.Type, r.Condition, r.DeletionPolicy, o.Type, o.Condition,
				o.DeletionPolicy)
		}
	}
}

// The build ID determines the key of the code, so that new code always has a new build ID.
func TestStandaloneTemplate_codeKey_containsBuildID(t *testing.T) {
	t.Parallel()
	for _, function := range standalone(t).ofType(functionType) {
		build := refOf(function.get("Environment", "Variables", "PERDURE_BUILD_ID"))
		key := strings.Join(plain(function.get("Code", "S3Key")), "")
		if !strings.HasSuffix(build, "Build") || key != "CodePrefix"+build+".zip" ||
			refOf(function.get("Code", "S3Bucket")) != "CodeBucket" {
			t.Errorf("%s: build %s has key %s", function.id, build, key)
		}
	}
}

func TestStandaloneTemplate_settings_areParameters(t *testing.T) {
	t.Parallel()
	parsed := standalone(t)
	memory := map[string]float64{}
	for _, function := range parsed.ofType(functionType) {
		memory[refOf(function.get("MemorySize"))] = parsed.number(t, function, "MemorySize")
	}
	if want := map[string]float64{
		"OrchestratorMemory": 512, "WorkerMemory": 256, "RenewerMemory": 256, "APIMemory": 256,
	}; !maps.Equal(memory, want) {
		t.Errorf("memory %v, want %v", memory, want)
	}
	for _, group := range parsed.ofType("AWS::Logs::LogGroup") {
		if days := parsed.number(t, group, "RetentionInDays"); days != 30 {
			t.Errorf("%s is kept for %v days", group.id, days)
		}
	}
	for id, setting := range map[string]string{
		"TaskHubInboxMapping": "InboxConcurrency", "TaskHubTimersMapping": "TimersConcurrency",
		"TaskHubWorkMappingdefaultD": "WorkConcurrency", "TaskHubWorkMappingdefaultfifo": "WorkConcurrency",
	} {
		limit, _ := parsed.find(t, mappingType, id).get("ScalingConfig").(map[string]any)
		branches, _ := limit["Fn::If"].([]any)
		if len(branches) != 3 || branches[0] != "Has"+setting || refOf(branches[2]) != "AWS::NoValue" {
			t.Errorf("%s has the limit %v", id, limit)
		}
	}
	orchestrator := parsed.find(t, functionType, "TaskHubOrchestrator")
	if got := refOf(orchestrator.get("Environment", "Variables", "PERDURE_RETENTION")); got != "Retention" {
		t.Errorf("the retention is %s", got)
	}
}

// Optional ARNs remove the property if they are empty.
func TestStandaloneTemplate_optionalARNs_areConditional(t *testing.T) {
	t.Parallel()
	parsed := standalone(t)
	conditional := func(value any, condition string) bool {
		choice, _ := value.(map[string]any)
		branches, _ := choice["Fn::If"].([]any)
		return len(branches) == 3 && branches[0] == condition && refOf(branches[2]) == "AWS::NoValue"
	}
	for _, alarm := range parsed.ofType("AWS::CloudWatch::Alarm") {
		for _, name := range []string{"AlarmActions", "OKActions"} {
			actions, _ := alarm.get(name).([]any)
			if len(actions) != 1 || !conditional(actions[0], "HasAlarmTopicARN") {
				t.Errorf("%s of %s: %v", name, alarm.id, actions)
			}
		}
	}
	for _, role := range parsed.ofType("AWS::IAM::Role") {
		if boundary := role.get("PermissionsBoundary"); !conditional(boundary, "HasPermissionsBoundaryARN") {
			t.Errorf("%s has the boundary %v", role.id, boundary)
		}
	}
}
