package cdk_test

import (
	"strings"
	"testing"
)

func TestTemplateParameters_haveDocumentedDefaults(t *testing.T) {
	t.Parallel()
	parsed := parse(t)
	for name, want := range map[string]any{
		"Hub": "default", "Architecture": "arm64", "Timers": "schedules", "ApiKind": "http-api",
		"InboxTimeout": 30.0, "InboxVisibility": 90.0, "WorkTimeout": 900.0, "WatchRate": "rate(2 minutes)",
		"LockTimeout": 30.0, "LockRenewalBuffer": 5.0, "CancelPollInterval": 0.25, "CancellationGracePeriod": 10.0,
		"TimerLongestDelay": 900.0, "ScheduleLead": 120.0, "MaxAttempts": 10.0,
	} {
		if got := parsed.Parameters[name].Default; got != want {
			t.Errorf("%s defaults to %v, want %v", name, got, want)
		}
	}
}

func TestHubConfigParameter_hasTheHubNameAndAllFields(t *testing.T) {
	t.Parallel()
	config := parse(t).find(t, "AWS::SSM::Parameter", "TaskHub")
	if name := strings.Join(plain(config.get("Name")), ""); name != "/perdure/Hub/config" {
		t.Errorf("the parameter is called %s", name)
	}
	value := strings.Join(plain(config.get("Value")), "")
	for _, field := range []string{
		"table", "inboxUrl", "workQueues", "timersUrl", "deadLetters", "timers", "scheduleGroup",
		"scheduleRoleArn", "timersArn", "timersDeadLettersArn", "apiUrl",
	} {
		if !strings.Contains(value, `"`+field+`":`) {
			t.Errorf("the parameter lacks %s: %s", field, value)
		}
	}
}

func TestTemplate_hasNoCustomResources(t *testing.T) {
	t.Parallel()
	for id, r := range parse(t).Resources {
		if strings.HasPrefix(r.Type, "Custom::") || r.Type == "AWS::CloudFormation::CustomResource" {
			t.Errorf("%s is a custom resource, %s", id, r.Type)
		}
	}
}

func TestRecursionAlarms_coverEveryFunction(t *testing.T) {
	t.Parallel()
	watched := map[string]bool{}
	parsed := parse(t)
	for _, alarm := range parsed.ofType("AWS::CloudWatch::Alarm") {
		if alarm.text("MetricName") != "RecursiveInvocationsDropped" {
			continue
		}
		dimensions, _ := alarm.get("Dimensions").([]any)
		for _, each := range dimensions {
			dimension, _ := each.(map[string]any)
			watched[refOf(dimension["Value"])] = true
		}
	}
	for _, function := range parsed.ofType("AWS::Lambda::Function") {
		if !watched[function.id] {
			t.Errorf("there is no alarm for dropped invocations of %s", function.id)
		}
	}
}
