package deployment

import (
	"encoding/json"
	"fmt"
	"maps"

	"github.com/perdure/perdure/infra/template"
)

// Additions are additions to a template. The keys are logical IDs.
type Additions struct{ Resources, Conditions, Outputs map[string]any }

// Disposable returns the template of the tool for a stack that is deleted with all its data. It has no dashboard, which
// AWS bills by the month. It contains the additions.
func Disposable(more *Additions) (*Template, error) {
	var parsed map[string]any
	if err := json.Unmarshal(template.JSON, &parsed); err != nil {
		return nil, fmt.Errorf("template is not JSON: %w", err)
	}
	all, _ := parsed["Resources"].(map[string]any)
	for id, r := range all {
		resource, _ := r.(map[string]any)
		properties, _ := resource["Properties"].(map[string]any)
		switch resource["Type"] {
		case "AWS::CloudWatch::Dashboard":
			delete(all, id)
		case "AWS::DynamoDB::Table": // a table with recovery leaves a backup behind
			delete(properties, "DeletionProtectionEnabled")
			delete(properties, "PointInTimeRecoverySpecification")
		}
		for _, policy := range []string{"DeletionPolicy", "UpdateReplacePolicy"} {
			if resource[policy] != nil {
				resource[policy] = "Delete"
			}
		}
	}
	maps.Copy(all, more.Resources)
	for section, added := range map[string]map[string]any{"Conditions": more.Conditions, "Outputs": more.Outputs} {
		own, _ := parsed[section].(map[string]any)
		maps.Copy(own, added)
	}
	raw, err := json.Marshal(parsed)
	if err != nil {
		return nil, fmt.Errorf("template: %w", err)
	}
	return ParseTemplate(raw)
}

// ResourceTypes returns the number of resources of each type.
func (t *Template) ResourceTypes() map[string]int {
	var parsed struct {
		Resources map[string]struct {
			Type string `json:"Type"`
		} `json:"Resources"`
	}
	_ = json.Unmarshal(t.Body, &parsed) // ParseTemplate has parsed it
	counts := map[string]int{}
	for _, r := range parsed.Resources {
		counts[r.Type]++
	}
	return counts
}
