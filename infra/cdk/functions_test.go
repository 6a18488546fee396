package cdk_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"

	"github.com/perdure/perdure/infra/cdk"
)

func TestFunctions_allowRecursiveLoops(t *testing.T) {
	t.Parallel()
	functions := parse(t).ofType("AWS::Lambda::Function")
	if len(functions) != 4 {
		t.Fatalf("%d functions, want 4", len(functions))
	}
	for _, function := range functions {
		if loop := function.text("RecursiveLoop"); loop != "Allow" {
			t.Errorf("%s: RecursiveLoop is %q", function.id, loop)
		}
	}
}

func TestFunctions_useProvidedRuntimeAndJSONLogs(t *testing.T) {
	t.Parallel()
	for _, function := range parse(t).ofType("AWS::Lambda::Function") {
		for _, want := range []struct {
			path  []string
			value string
		}{
			{[]string{"Runtime"}, "provided.al2023"},
			{[]string{"Handler"}, "bootstrap"},
			{[]string{"LoggingConfig", "LogFormat"}, "JSON"},
			{[]string{"LoggingConfig", "SystemLogLevel"}, "WARN"},
		} {
			if got := function.text(want.path...); got != want.value {
				t.Errorf("%s: %v is %q, want %q", function.id, want.path, got, want.value)
			}
		}
		if refOf(function.get("LoggingConfig", "LogGroup")) == "" {
			t.Errorf("%s has no log group with a retention of its own", function.id)
		}
	}
}

// A function fails to start if a required variable of its environment is missing.
func TestFunctions_haveExpectedEnvironmentVariables(t *testing.T) {
	t.Parallel()
	all := []string{
		"PERDURE_BUILD_ID", "PERDURE_HUB", "PERDURE_INBOX_URL", "PERDURE_PAYLOAD_BUCKET", "PERDURE_TABLE",
	}
	queues := []string{"PERDURE_DEAD_LETTERS", "PERDURE_WORK_QUEUES"}
	timers := []string{
		"PERDURE_SCHEDULE_GROUP", "PERDURE_SCHEDULE_LEAD", "PERDURE_SCHEDULE_ROLE_ARN", "PERDURE_TIMERS",
		"PERDURE_TIMERS_ARN", "PERDURE_TIMERS_DEAD_LETTERS_ARN", "PERDURE_TIMERS_URL", "PERDURE_TIMER_LONGEST_DELAY",
	}
	locks := []string{
		"PERDURE_CANCELLATION_GRACE_PERIOD", "PERDURE_CANCEL_POLL_INTERVAL", "PERDURE_LOCK_RENEWAL_BUFFER",
		"PERDURE_LOCK_TIMEOUT", "PERDURE_QUEUE",
	}
	poison, client := []string{"PERDURE_MAX_ATTEMPTS"}, []string{"PERDURE_ORCHESTRATOR", "PERDURE_TIMERS_URL"}
	parsed := parse(t)
	for prefix, want := range map[string][]string{
		"TaskHubOrchestrator": slices.Concat(all, queues, timers, poison),
		"TaskHubWorker":       slices.Concat(all, queues, locks, poison, client),
		"TaskHubRenewer":      slices.Concat(all, queues, timers),
		"TaskHubApi": slices.Concat(all, timers, []string{
			"PERDURE_API_AUTHORIZATION", "PERDURE_ORCHESTRATOR", "PERDURE_WORK_QUEUES",
		}),
	} {
		function := parsed.find(t, "AWS::Lambda::Function", prefix)
		variables, _ := function.get("Environment", "Variables").(map[string]any)
		got := slices.Sorted(maps.Keys(variables))
		if slices.Sort(want); !slices.Equal(got, want) {
			t.Errorf("%s\n got %v\nwant %v", prefix, got, want)
		}
	}
}

func TestFunctions_haveSeparateRoles(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, function := range parse(t).ofType("AWS::Lambda::Function") {
		role := refOf(function.get("Role"))
		if other, taken := seen[role]; taken || role == "" {
			t.Errorf("%s has role %q, which is also that of %q", function.id, role, other)
		}
		seen[role] = function.id
	}
}

// Lambda assigns INFO to stack traces and to other lines without a level, and drops them at a level above INFO.
func TestFunctions_logLevel_lambdaKeepsLinesWithoutLevel(t *testing.T) {
	t.Parallel()
	for level, want := range map[string]string{"": "", "debug": "DEBUG", "info": "INFO", "warn": "INFO"} {
		got := custom(t, cdk.TaskHubProps{HubName: "orders", FunctionsDir: placeholders, LogLevel: level},
			func(awscdk.Stack, *cdk.TaskHub) {})
		functions := got.ofType(functionType)
		if len(functions) == 0 {
			t.Fatalf("level %q: the template has no functions", level)
		}
		for _, function := range functions {
			own := function.text("Environment", "Variables", "PERDURE_LOG_LEVEL")
			if is := function.text("LoggingConfig", "ApplicationLogLevel"); is != want || own != level {
				t.Errorf("level %q: %s drops lines below %q, and Lambda below %q, want %q", level, function.id, own, is,
					want)
			}
		}
	}
}
