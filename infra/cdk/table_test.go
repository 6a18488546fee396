package cdk_test

import (
	"slices"
	"testing"
)

const tableType = "AWS::DynamoDB::Table"

func TestTable_isProtectedAndRetained(t *testing.T) {
	t.Parallel()
	table := parse(t).find(t, tableType, "TaskHub")
	for _, want := range []struct {
		path  []string
		value any
	}{
		{[]string{"BillingMode"}, "PAY_PER_REQUEST"},
		{[]string{"TimeToLiveSpecification", "AttributeName"}, "ttl"},
		{[]string{"TimeToLiveSpecification", "Enabled"}, true},
		{[]string{"PointInTimeRecoverySpecification", "PointInTimeRecoveryEnabled"}, true},
		{[]string{"DeletionProtectionEnabled"}, true},
	} {
		if got := table.get(want.path...); got != want.value {
			t.Errorf("%v is %v, want %v", want.path, got, want.value)
		}
	}
	if table.deletionPolicy != "Retain" {
		t.Errorf("the table's deletion policy is %q", table.deletionPolicy)
	}
}

func TestTable_hasExpectedIndexes(t *testing.T) {
	t.Parallel()
	table := parse(t).find(t, tableType, "TaskHub")
	want := map[string][]string{
		"":            {"pk", "sk"},
		"byCreation":  {"gs", "created"},
		"byAttention": {"attention", "updated"},
		"byDue":       {"due", "created"},
	}
	got := map[string][]string{"": keysOf(table.properties)}
	indexes, _ := table.get("GlobalSecondaryIndexes").([]any)
	for _, each := range indexes {
		index, _ := each.(map[string]any)
		name, _ := index["IndexName"].(string)
		got[name] = keysOf(index)
	}
	if len(got) != len(want) {
		t.Errorf("the indexes are %v", got)
	}
	defined := attributesOf(table)
	for name, keys := range want {
		if !slices.Equal(got[name], keys) {
			t.Errorf("the keys of index %q are %v, want %v", name, got[name], keys)
		}
		for _, key := range keys {
			if defined[key] != "S" {
				t.Errorf("key %s of index %q is defined as %q", key, name, defined[key])
			}
		}
	}
}

func keysOf(index map[string]any) []string {
	var keys []string
	schema, _ := index["KeySchema"].([]any)
	for _, each := range schema {
		element, _ := each.(map[string]any)
		name, _ := element["AttributeName"].(string)
		keys = append(keys, name)
	}
	return keys
}

func attributesOf(table resource) map[string]string {
	defined := map[string]string{}
	attributes, _ := table.get("AttributeDefinitions").([]any)
	for _, each := range attributes {
		attribute, _ := each.(map[string]any)
		name, _ := attribute["AttributeName"].(string)
		kind, _ := attribute["AttributeType"].(string)
		defined[name] = kind
	}
	return defined
}
