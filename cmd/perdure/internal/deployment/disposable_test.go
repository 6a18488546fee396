package deployment

import (
	"encoding/json"
	"strings"
	"testing"
)

// Nothing in the template keeps a resource or a copy of its data after the deletion of the stack.
func TestDisposable_template_deletesEverything(t *testing.T) {
	t.Parallel()
	parsed, err := Disposable(&Additions{
		Resources:  map[string]any{"Extra": map[string]any{"Type": "AWS::SQS::Queue"}},
		Conditions: map[string]any{"ExtraCondition": map[string]any{"Fn::Not": []any{true}}},
		Outputs:    map[string]any{"ExtraOutput": map[string]any{"Value": "extra"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	var body struct {
		Conditions map[string]any `json:"Conditions"`
		Outputs    map[string]any `json:"Outputs"`
		Resources  map[string]struct {
			DeletionPolicy      string         `json:"DeletionPolicy"`
			UpdateReplacePolicy string         `json:"UpdateReplacePolicy"`
			Properties          map[string]any `json:"Properties"`
		} `json:"Resources"`
	}
	if err := json.Unmarshal(parsed.Body, &body); err != nil {
		t.Fatal(err)
	}
	if body.Conditions["ExtraCondition"] == nil || body.Outputs["ExtraOutput"] == nil || len(body.Outputs) == 1 {
		t.Errorf("got conditions %v and outputs %v", body.Conditions, body.Outputs)
	}
	kept := map[string]bool{"": true, "Delete": true}
	for id, r := range body.Resources {
		if !kept[r.DeletionPolicy] || !kept[r.UpdateReplacePolicy] {
			t.Errorf("%s: %s, %s", id, r.DeletionPolicy, r.UpdateReplacePolicy)
		}
		if r.Properties["DeletionProtectionEnabled"] != nil || r.Properties["PointInTimeRecoverySpecification"] != nil ||
			r.Properties["VersioningConfiguration"] != nil {
			t.Errorf("%s: %v", id, r.Properties)
		}
	}
	if strings.Contains(string(parsed.Body), "logs:CreateLogGroup") {
		t.Error("a function that still runs can create its log group again after its deletion")
	}
	counts := parsed.ResourceTypes()
	all := embedded(t).ResourceTypes()
	if counts["AWS::SQS::Queue"] != all["AWS::SQS::Queue"]+1 || counts["AWS::CloudWatch::Dashboard"] != 0 ||
		counts["AWS::Lambda::Function"] != len(functionNames) {
		t.Errorf("got %v, the template has %v", counts, all)
	}
}
