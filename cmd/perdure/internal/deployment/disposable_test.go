package deployment

import (
	"encoding/json"
	"strings"
	"testing"
)

// Nothing in the template keeps a resource or a copy of its data after the deletion of the stack.
func TestDisposable_template_deletesEverything(t *testing.T) {
	t.Parallel()
	parsed, err := Disposable(map[string]any{"Extra": map[string]any{"Type": "AWS::SQS::Queue"}})
	if err != nil {
		t.Fatal(err)
	}
	var body struct {
		Resources map[string]struct {
			DeletionPolicy      string         `json:"DeletionPolicy"`
			UpdateReplacePolicy string         `json:"UpdateReplacePolicy"`
			Properties          map[string]any `json:"Properties"`
		} `json:"Resources"`
	}
	if err := json.Unmarshal(parsed.Body, &body); err != nil {
		t.Fatal(err)
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
