package cdk_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/jsii-runtime-go"

	"github.com/perdure/perdure/infra/cdk"
)

// A new account may have only 10 concurrent executions, which uncapped mappings use up.
func TestSynthesis_mappingsWithoutMaximumConcurrency_printWarning(t *testing.T) {
	t.Parallel()
	for want, props := range map[string]cdk.TaskHubProps{
		"concurrency: InboxConcurrency, TimersConcurrency, WorkConcurrency not set": {},
		"concurrency: InboxConcurrency not set": {
			TimersConcurrency: 2, WorkConcurrency: 4,
		},
		"concurrency: TimersConcurrency not set": {InboxConcurrency: 2, WorkConcurrency: 4},
		"concurrency: WorkConcurrency not set": {
			InboxConcurrency: 4, TimersConcurrency: 2, WorkQueues: []string{"a", "b"},
			WorkQueueProps: map[string]cdk.WorkQueueProps{"a": {Concurrency: 2}},
		},
		"": {InboxConcurrency: 4, TimersConcurrency: 2, WorkConcurrency: 4},
	} {
		got := warnings(t, props)
		if (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%+v: warned of %q, want %q", props, got, want)
		}
	}
}

// warnings returns the warnings of a synthesis about mappings.
func warnings(t *testing.T, props cdk.TaskHubProps) string {
	t.Helper()
	jsiiLock.Lock()
	defer jsiiLock.Unlock()
	dir := t.TempDir()
	app := awscdk.NewApp(&awscdk.AppProps{Outdir: jsii.String(dir)})
	props.HubName, props.FunctionsDir = "orders", placeholders
	cdk.NewTaskHub(awscdk.NewStack(app, jsii.String("Team"), nil), "TaskHub", props)
	app.Synth(nil)
	var found []string
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(raw)) {
			if strings.Contains(line, "@perdure/cdk:mappingWithoutMaximumConcurrency") {
				found = append(found, line)
			}
		}
	}
	return strings.Join(found, "")
}
