package cdk_test

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// template has the parts of a CloudFormation template that the tests need.
type template struct {
	Parameters map[string]struct {
		Default any `json:"Default"`
	} `json:"Parameters"`
	Resources map[string]struct {
		Type           string         `json:"Type"`
		Condition      string         `json:"Condition"`
		DeletionPolicy string         `json:"DeletionPolicy"`
		Properties     map[string]any `json:"Properties"`
		UpdatePolicy   map[string]any `json:"UpdatePolicy"`
		DependsOn      any            `json:"DependsOn"`
	} `json:"Resources"`
}

// resource is one resource of a template.
type resource struct {
	id, kind, condition, deletionPolicy string
	properties                          map[string]any
}

func parse(t *testing.T) template {
	t.Helper()
	var parsed template
	if err := json.Unmarshal(reference, &parsed); err != nil {
		t.Fatalf("parse the template: %v", err)
	}
	return parsed
}

// ofType lists the resources of a type, sorted by their logical ids.
func (t template) ofType(kind string) []resource {
	var all []resource
	for id, r := range t.Resources {
		if r.Type == kind {
			all = append(all, resource{id, r.Type, r.Condition, r.DeletionPolicy, r.Properties})
		}
	}
	slices.SortFunc(all, func(a, b resource) int { return strings.Compare(a.id, b.id) })
	return all
}

// find returns the only resource of a type whose logical ID has the prefix.
func (t template) find(tb testing.TB, kind, prefix string) resource {
	tb.Helper()
	for _, r := range t.ofType(kind) {
		if strings.HasPrefix(r.id, prefix) {
			return r
		}
	}
	tb.Fatalf("the template has no %s %s…", kind, prefix)
	return resource{}
}

// number returns the number of a property, or the default of the parameter to which the property refers.
func (t template) number(tb testing.TB, r resource, name string) float64 {
	tb.Helper()
	value := r.properties[name]
	if ref := refOf(value); ref != "" {
		value = t.Parameters[ref].Default
	}
	if text, ok := value.(string); ok { // CloudFormation converts it
		if n, err := strconv.ParseFloat(text, 64); err == nil {
			return n
		}
	}
	n, ok := value.(float64)
	if !ok {
		tb.Fatalf("%s: %s is %v, not a number", r.id, name, value)
	}
	return n
}

// get returns the value at a path of properties, or nil if the path does not exist.
func (r resource) get(path ...string) any {
	var value any = r.properties
	for _, name := range path {
		object, ok := value.(map[string]any)
		if !ok {
			return nil
		}
		value = object[name]
	}
	return value
}

// text returns the string at a path, or an empty string.
func (r resource) text(path ...string) string {
	s, _ := r.get(path...).(string)
	return s
}

// refOf returns the logical ID in a Ref or Fn::GetAtt.
func refOf(value any) string {
	object, ok := value.(map[string]any)
	if !ok {
		return ""
	}
	if ref, ok := object["Ref"].(string); ok {
		return ref
	}
	if list, ok := object["Fn::GetAtt"].([]any); ok && len(list) > 0 {
		id, _ := list[0].(string)
		return id
	}
	return ""
}
