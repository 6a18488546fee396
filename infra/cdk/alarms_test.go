package cdk_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssns"
	"github.com/aws/jsii-runtime-go"

	"github.com/perdure/perdure/infra/cdk"
)

const alarmType = "AWS::CloudWatch::Alarm"

// alarmName returns the name of an alarm without the prefix perdure-<hub>-.
func alarmName(alarm resource) string {
	_, name, _ := strings.Cut(strings.Join(plain(alarm.get("AlarmName")), ""), "Hub-")
	return name
}

// Each alarm has a threshold, a number of periods that must breach it, and a treatment of missing data.
func TestAlarms_haveExpectedThresholdsAndPeriods(t *testing.T) {
	t.Parallel()
	type rule struct {
		threshold, of, periods float64
		missing                string
	}
	const quiet, silent = "notBreaching", "breaching"
	want := map[string]rule{
		"InboxAge":              {300, 1, 1, quiet},
		"TimersAge":             {1200, 1, 1, quiet},
		"TimersWaiting":         {1, 1, 1, quiet},
		"WorkAge-default":       {1800, 1, 1, quiet},
		"WorkerMissing-default": {1, 1, 1, quiet},
		"Unregistered-default":  {1, 1, 1, quiet},
		"DeadLetters-inbox":     {1, 1, 1, quiet},
		"DeadLetters-timers":    {1, 1, 1, quiet},
		"DeadLetters-default":   {1, 1, 1, quiet},
		"InstancesBlocked":      {1, 1, 1, quiet},
		"InstancesDeleting":     {1, 3, 3, quiet},
		"OldestPending":         {600, 1, 1, quiet},
		"WatchSilent":           {1, 3, 3, silent},
		"TableThrottles":        {1, 2, 3, quiet},
		"ApiErrors":             {1, 2, 3, quiet},
		"ApiUrlErrors":          {1, 2, 3, quiet},
	}
	for _, perQueue := range []string{"WorkAge-", "WorkerMissing-", "Unregistered-", "DeadLetters-"} {
		want[perQueue+"default.fifo"] = want[perQueue+"default"]
	}
	for _, function := range []string{"Orchestrator", "Worker-default", "Renewer", "Api"} {
		want["Errors-"+function] = rule{1, 1, 1, quiet}
		want["Throttles-"+function] = rule{1, 3, 3, quiet}
		want["Recursion-"+function] = rule{1, 1, 1, quiet}
	}
	parsed := parse(t)
	for _, alarm := range parsed.ofType(alarmType) {
		name := alarmName(alarm)
		rules, known := want[name]
		if !known {
			t.Errorf("alarm %q is not expected", name)
		}
		delete(want, name)
		got := rule{
			parsed.number(t, alarm, "Threshold"), parsed.number(t, alarm, "DatapointsToAlarm"),
			parsed.number(t, alarm, "EvaluationPeriods"), alarm.text("TreatMissingData"),
		}
		if got != rules {
			t.Errorf("%s: %+v, want %+v", name, got, rules)
		}
		below := alarm.text("ComparisonOperator") == "LessThanThreshold"
		if below != (rules.missing == silent) {
			t.Errorf("%s compares by %s", name, alarm.text("ComparisonOperator"))
		}
	}
	for name := range want {
		t.Errorf("there is no alarm %s", name)
	}
}

// An operator finds each alarm in the runbook under its name.
func TestAlarms_areInTheRunbook(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("../../docs/operate/alarms.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(b), "\n## Queues\n")
	section, _, _ = strings.Cut(section, "\n## Metrics")
	for _, alarm := range parse(t).ofType(alarmType) {
		kind, _, _ := strings.Cut(alarmName(alarm), "-")
		if !regexp.MustCompile(`(?m)^\|[^|]*\b` + kind + `\b[^|]*\|`).MatchString(section) {
			t.Errorf("the runbook has no line about %s", kind)
		}
		if text := alarm.text("AlarmDescription"); !strings.Contains(text, "docs/operate/alarms.md, "+kind) {
			t.Errorf("%s: the description does not name its runbook: %s", kind, text)
		}
	}
}

func TestAlarmTopic_receivesAlarmsAndRecoveries(t *testing.T) {
	t.Parallel()
	jsiiLock.Lock()
	app := awscdk.NewApp(nil)
	stack := awscdk.NewStack(app, jsii.String("Topics"), nil)
	topic := awssns.Topic_FromTopicArn(stack, jsii.String("Pager"),
		jsii.String("arn:aws:sns:eu-west-1:123456789012:pager"))
	jsiiLock.Unlock()
	got := custom(t, cdk.TaskHubProps{HubName: "orders", FunctionsDir: placeholders, AlarmTopic: topic},
		func(awscdk.Stack, *cdk.TaskHub) {})
	alarms := got.ofType(alarmType)
	if len(alarms) == 0 {
		t.Fatal("no alarms")
	}
	for _, alarm := range alarms {
		begins, ends := plain(alarm.get("AlarmActions")), plain(alarm.get("OKActions"))
		if len(begins) != 1 || !slices.Equal(begins, ends) {
			t.Errorf("%s notifies %v, and its end notifies %v", alarm.id, begins, ends)
		}
	}
}

// The alarm of each API kind depends on the condition that creates this API kind.
func TestAPIAlarms_dependOnTheAPIKind(t *testing.T) {
	t.Parallel()
	for _, alarm := range parse(t).ofType(alarmType) {
		want := map[string]string{"ApiErrors": "IsHttpApi", "ApiUrlErrors": "IsFunctionUrl"}[alarmName(alarm)]
		if !strings.Contains(alarm.condition, want) || want == "" && alarm.condition != "" {
			t.Errorf("%s has the condition %q, want %q", alarm.id, alarm.condition, want)
		}
	}
}

// The dashboard shows the state of the alarms, and the metric of each alarm.
func TestDashboard_showsMetricsOfAlarms(t *testing.T) {
	t.Parallel()
	parsed := parse(t)
	body := strings.Join(plain(parsed.find(t, "AWS::CloudWatch::Dashboard", "TaskHub").get("DashboardBody")), "")
	if !strings.Contains(body, `"type":"alarm"`) {
		t.Error("the dashboard does not show the alarms")
	}
	for _, alarm := range parsed.ofType(alarmType) {
		metric := alarm.text("MetricName")
		if metric == "" || metric == "RecursiveInvocationsDropped" ||
			strings.HasPrefix(alarmName(alarm), "WatchSilent") {
			continue
		}
		if !strings.Contains(body, `"`+metric+`"`) {
			t.Errorf("the dashboard does not show %s of %s", metric, alarm.id)
		}
	}
}

// The dashboard shows each metric in docs/reference/metrics.md if the functions emit metrics, and otherwise only the
// metrics that are always emitted.
func TestDashboard_showsOnlyEmittedMetrics(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "reference", "metrics.md"))
	if err != nil {
		t.Fatal(err)
	}
	drawn := func(metrics string) string {
		got := custom(t, cdk.TaskHubProps{HubName: "orders", FunctionsDir: placeholders, Metrics: metrics},
			func(awscdk.Stack, *cdk.TaskHub) {})
		return strings.Join(plain(got.find(t, "AWS::CloudWatch::Dashboard", "TaskHub").get("DashboardBody")), "")
	}
	with, without := drawn(cdk.MetricsByHub), drawn("")
	listed := regexp.MustCompile("(?m)^\\| `([A-Z][A-Za-z0-9]+)` \\| [A-Z].* \\| (.*) \\|$").
		FindAllStringSubmatch(string(page), -1)
	for _, metric := range listed {
		name, always := metric[1], strings.HasPrefix(metric[2], "always")
		if !strings.Contains(with, `"`+name+`"`) {
			t.Errorf("the dashboard does not show %s", name)
		}
		if strings.Contains(without, `"`+name+`"`) != always {
			t.Errorf("the dashboard shows %s without data, or does not show a metric with data", name)
		}
	}
	if len(listed) < 20 {
		t.Errorf("docs/reference/metrics.md lists %d metrics", len(listed))
	}
}
