package cdk_test

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// deployedTemplate is the template of a deployed stack, from commit 2555cb9. The current template must update such a
// stack in place. Later releases add files of this kind and keep the old ones.
const deployedTemplate = "testdata/upgrade/template.2555cb9.json"

// replacing lists, for each type of resource, the properties whose change makes CloudFormation replace the resource
// ("Update requires: Replacement" in the CloudFormation template reference).
var replacing = map[string][]string{
	"AWS::ApiGatewayV2::Api":         {"ProtocolType"},
	"AWS::ApiGatewayV2::Integration": {"ApiId"},
	"AWS::ApiGatewayV2::Route":       {"ApiId"},
	"AWS::ApiGatewayV2::Stage":       {"ApiId", "StageName"},
	"AWS::CloudWatch::Alarm":         {"AlarmName"},
	"AWS::CloudWatch::Dashboard":     {"DashboardName"},
	"AWS::DynamoDB::Table":           {"TableName", "KeySchema", "LocalSecondaryIndexes", "ImportSourceSpecification"},
	"AWS::Events::Rule":              {"Name", "EventBusName"},
	"AWS::IAM::Policy":               nil,
	"AWS::IAM::Role":                 {"RoleName", "Path"},
	"AWS::Lambda::EventInvokeConfig": {"FunctionName", "Qualifier"},
	"AWS::Lambda::EventSourceMapping": {
		"EventSourceArn", "StartingPosition", "StartingPositionTimestamp", "SelfManagedEventSource",
	},
	"AWS::Lambda::Function": {"FunctionName", "PackageType"},
	"AWS::Lambda::Permission": {
		"Action", "EventSourceToken", "FunctionName", "FunctionUrlAuthType", "Principal", "SourceAccount", "SourceArn",
	},
	"AWS::Lambda::Url":              {"TargetFunctionArn", "Qualifier"},
	"AWS::Logs::LogGroup":           {"LogGroupName"},
	"AWS::Logs::MetricFilter":       {"FilterName", "LogGroupName"},
	"AWS::S3::Bucket":               {"BucketName"},
	"AWS::S3::BucketPolicy":         {"Bucket"},
	"AWS::SQS::Queue":               {"QueueName", "FifoQueue"},
	"AWS::SQS::QueuePolicy":         nil,
	"AWS::SSM::Parameter":           {"Name", "DataType"},
	"AWS::Scheduler::ScheduleGroup": {"Name"},
}

// disposable lists resource types without data, which CloudFormation may replace under another name.
var disposable = []string{"AWS::IAM::Policy", "AWS::Lambda::Permission"}

// upgradeFaults returns the faults of an update from one template to another: resources that lose their data or name,
// and changes that CloudFormation rejects.
func upgradeFaults(from, to template) (faults []string) {
	for id, old := range from.Resources {
		renewed, kept := to.Resources[id]
		properties, known := replacing[old.Type]
		switch {
		case !known:
			faults = append(faults, fmt.Sprintf("%s: the test does not know what replaces a %s", id, old.Type))
		case slices.Contains(disposable, old.Type):
		case !kept:
			faults = append(faults, fmt.Sprintf("%s: the %s is removed or renamed", id, old.Type))
		case renewed.Type != old.Type || renewed.Condition != old.Condition:
			faults = append(faults,
				fmt.Sprintf("%s: the %s is a %s on condition %q", id, old.Type, renewed.Type, renewed.Condition))
		case old.DeletionPolicy == "Retain" && renewed.DeletionPolicy != "Retain":
			faults = append(faults, fmt.Sprintf("%s: the %s is no longer retained", id, old.Type))
		}
		for _, name := range properties {
			if kept && !slices.Contains(disposable, old.Type) &&
				!reflect.DeepEqual(old.Properties[name], renewed.Properties[name]) {
				faults = append(faults, fmt.Sprintf("%s: a change of %s replaces the %s", id, name, old.Type))
			}
		}
		if old.Type == "AWS::DynamoDB::Table" && kept {
			faults = append(faults, indexFaults(id, indexesOf(old.Properties), indexesOf(renewed.Properties))...)
		}
	}
	return faults
}

// indexesOf returns the indexes of a table by their names, as JSON.
func indexesOf(table map[string]any) map[string]string {
	all := map[string]string{}
	list, _ := table["GlobalSecondaryIndexes"].([]any)
	for _, each := range list {
		index, _ := each.(map[string]any)
		name, _ := index["IndexName"].(string)
		// the throughput may change in an update
		shape, _ := json.Marshal([]any{index["KeySchema"], index["Projection"]})
		all[name] = string(shape)
	}
	return all
}

// indexFaults allows the creation or deletion of one index, because DynamoDB allows no more in an update of a table.
func indexFaults(table string, from, to map[string]string) (faults []string) {
	changed := 0
	for name, shape := range from {
		renewed, kept := to[name]
		if !kept {
			changed++
		}
		if kept && renewed != shape {
			faults = append(faults,
				fmt.Sprintf("%s: the index %s changes its key or projection under its name", table, name))
		}
	}
	for name := range to {
		if _, before := from[name]; !before {
			changed++
		}
	}
	if changed > 1 {
		faults = append(faults, fmt.Sprintf("%s: %d indexes are created or deleted in one update", table, changed))
	}
	return faults
}

func parseJSON(t *testing.T, raw []byte) (parsed template) {
	t.Helper()
	if err := json.Unmarshal(raw, &parsed); err != nil {
		t.Fatal(err)
	}
	return parsed
}

func readDeployed(t *testing.T) []byte {
	t.Helper()
	raw, err := os.ReadFile(deployedTemplate)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestUpgrade_stackInUse_isUpdatedInPlace(t *testing.T) {
	t.Parallel()
	for _, fault := range upgradeFaults(parseJSON(t, readDeployed(t)), parse(t)) {
		t.Error(fault)
	}
}

// The parameters of a deployed stack keep their names, because `cdk deploy` passes their previous values.
func TestUpgrade_parametersInUse_stay(t *testing.T) {
	t.Parallel()
	now := parse(t).Parameters
	for name := range parseJSON(t, readDeployed(t)).Parameters {
		if _, kept := now[name]; !kept {
			t.Errorf("the parameter %s is gone", name)
		}
	}
}

func TestUpgrade_harmfulChange_isFound(t *testing.T) {
	t.Parallel()
	from := parseJSON(t, readDeployed(t))
	const (
		table = "AWS::DynamoDB::Table"
		index = `{"IndexName":%q,"KeySchema":[{"AttributeName":"a","KeyType":"HASH"}],"Projection":{"ProjectionType":"ALL"}}`
	)
	addIndexes := func(properties map[string]any, names ...string) {
		list, _ := properties["GlobalSecondaryIndexes"].([]any)
		for _, name := range names {
			var added any
			_ = json.Unmarshal(fmt.Appendf(nil, index, name), &added)
			list = append(list, added)
		}
		properties["GlobalSecondaryIndexes"] = list
	}
	for want, c := range map[string]struct {
		kind   string
		change func(to template, id string)
	}{
		"the AWS::SQS::Queue is removed or renamed": {queueType, func(to template, id string) {
			delete(to.Resources, id)
		}},
		"the AWS::DynamoDB::Table is no longer retained": {table, func(to template, id string) {
			r := to.Resources[id]
			r.DeletionPolicy = "Delete"
			to.Resources[id] = r
		}},
		"a change of QueueName replaces the AWS::SQS::Queue": {queueType, func(to template, id string) {
			to.Resources[id].Properties["QueueName"] = "other"
		}},
		"a change of FifoQueue replaces the AWS::SQS::Queue": {queueType, func(to template, id string) {
			p := to.Resources[id].Properties
			p["FifoQueue"] = p["FifoQueue"] == nil
		}},
		"a change of BucketName replaces the AWS::S3::Bucket": {"AWS::S3::Bucket", func(to template, id string) {
			to.Resources[id].Properties["BucketName"] = "other"
		}},
		"a change of Name replaces the AWS::Scheduler::ScheduleGroup": {
			"AWS::Scheduler::ScheduleGroup",
			func(to template, id string) {
				to.Resources[id].Properties["Name"] = "other"
			},
		},
		"a change of KeySchema replaces the AWS::DynamoDB::Table": {table, func(to template, id string) {
			to.Resources[id].Properties["KeySchema"] = nil
		}},
		"2 indexes are created or deleted in one update": {table, func(to template, id string) {
			addIndexes(to.Resources[id].Properties, "byA", "byB")
		}},
		"the index byDue changes its key or projection under its name": {table, func(to template, id string) {
			addIndexes(to.Resources[id].Properties, "byDue")
		}},
		"": {table, func(to template, id string) { addIndexes(to.Resources[id].Properties, "byA") }},
	} {
		to := parseJSON(t, readDeployed(t))
		c.change(to, to.ofType(c.kind)[0].id)
		got := upgradeFaults(from, to)
		if want == "" && len(got) > 0 || want != "" && (len(got) != 1 || !strings.HasSuffix(got[0], want)) {
			t.Errorf("faults %q, want %q", got, want)
		}
	}
}
