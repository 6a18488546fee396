package cdk_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"

	"github.com/perdure/perdure/infra/cdk"
)

func TestSchedulesProp_isPassedToRenewer(t *testing.T) {
	t.Parallel()
	got := custom(t, cdk.TaskHubProps{
		HubName: "orders", FunctionsDir: placeholders,
		Schedules: []cdk.Schedule{
			{ID: "nightly", Orchestration: "report", Expression: "0 2 * * *"},
			{
				ID: "poll", Orchestration: "poll", Expression: "rate(5 minutes)", Input: json.RawMessage(`7`),
				Overlap: "cancel",
			},
		},
	}, func(awscdk.Stack, *cdk.TaskHub) {})
	variables, _ := got.find(t, "AWS::Lambda::Function", "TaskHubRenewer").get("Environment",
		"Variables").(map[string]any)
	want := `[{"id":"nightly","orchestration":"report","when":"0 2 * * *"},{"id":"poll","orchestration":"poll","input":7,"when":"rate(5 minutes)","overlap":"cancel"}]`
	if variables["PERDURE_SCHEDULES"] != want {
		t.Errorf("got %v", variables["PERDURE_SCHEDULES"])
	}
}

func TestNewTaskHub_invalidSchedules_panics(t *testing.T) {
	t.Parallel()
	jsiiLock.Lock()
	defer jsiiLock.Unlock()
	for name, schedules := range map[string][]cdk.Schedule{
		"without a time": {
			{ID: "a", Orchestration: "report", Expression: "@daily"}, {ID: "nightly", Orchestration: "report"},
		},
		"twice": {
			{ID: "a", Orchestration: "report", Expression: "@daily"},
			{ID: "a", Orchestration: "report", Expression: "@daily"},
		},
		"invalid input": {{ID: "a", Orchestration: "report", Expression: "@daily", Input: json.RawMessage("{")}},
		"inputs over the limit": {
			{
				ID: "a", Orchestration: "report", Expression: "@daily",
				Input: json.RawMessage(`"` + strings.Repeat("x", 2000) + `"`),
			},
		},
	} {
		if !refused(cdk.TaskHubProps{HubName: "orders", FunctionsDir: placeholders, Schedules: schedules}) {
			t.Errorf("%s: NewTaskHub accepted it", name)
		}
	}
}
