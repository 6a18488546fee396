package cdk_test

import (
	"strings"
	"testing"
)

// The README of this package gives the reason for each of these defaults.
func TestDefaults_matchReadme(t *testing.T) {
	t.Parallel()
	parsed := parse(t)
	for _, queue := range parsed.ofType(queueType) {
		if queue.deletionPolicy != "Delete" {
			t.Errorf("%s: deletion policy %q: a retained queue has no consumer", queue.id, queue.deletionPolicy)
		}
	}
	for _, mapping := range parsed.ofType(mappingType) {
		if scaling := mapping.get("ScalingConfig"); scaling != nil {
			t.Errorf("%s is capped: %v", mapping.id, scaling)
		}
	}
	for _, function := range parsed.ofType("AWS::Lambda::Function") {
		if tracing := function.get("TracingConfig"); tracing != nil {
			t.Errorf("%s has X-Ray: %v", function.id, tracing)
		}
	}
	for queue, want := range map[string]struct {
		function string
		times    float64
	}{
		"TaskHubInbox": {"TaskHubOrchestrator", 3}, "TaskHubWorkdefault": {"TaskHubWorkerdefault", 1},
	} {
		timeout := parsed.number(t, parsed.find(t, "AWS::Lambda::Function", want.function), "Timeout")
		for _, r := range parsed.ofType(queueType) {
			if !strings.HasPrefix(r.id, queue) || strings.Contains(r.id, deadLetterTag) {
				continue
			}
			if visibility := parsed.number(t, r, "VisibilityTimeout"); visibility != want.times*timeout {
				t.Errorf("%s: visibility %v s, want %v times the timeout of %v s", r.id, visibility, want.times,
					timeout)
			}
		}
	}
}
