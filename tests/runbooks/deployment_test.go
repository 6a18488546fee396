package runbooks_test

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	dynamotypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/aws-sdk-go-v2/service/ssm"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/tests/localcloud"
)

const (
	pollInterval = 100 * time.Millisecond
	pollLimit    = 90 * time.Second
)

// until polls a condition, and fails the test after a time limit.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	look := time.NewTicker(pollInterval)
	defer look.Stop()
	for limit := time.Now().Add(pollLimit); !is(); <-look.C {
		if time.Now().After(limit) {
			t.Fatalf("after %v: condition is not met: %s", pollLimit, what)
		}
	}
}

// start starts an instance.
func (d *deployment) start(t *testing.T, orchestration string, input any, suffix ...string) (instance string) {
	t.Helper()
	instance, err := d.client.Start(t.Context(), orchestration, input,
		client.WithInstanceID(strings.Join(append([]string{t.Name()}, suffix...), "-")))
	if err != nil {
		t.Fatal(err)
	}
	return instance
}

func (d *deployment) status(t *testing.T, instance string) client.RuntimeStatus {
	t.Helper()
	s, err := d.client.Status(t.Context(), instance)
	if err != nil {
		t.Fatal(err)
	}
	return s.Status
}

// parts are the names of the functions of the hub.
var parts = []string{"orchestrator", "worker-default", "renewer", "api"}

// set changes environment variables of a function like a deployment does, and returns the previous variables. An empty
// value removes a variable.
func (d *deployment) set(t *testing.T, part string, variables map[string]string) (before map[string]string) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context()) // cleanups run after the test's own context has ended
	name := "perdure-" + hubName + "-" + part
	now, err := d.functions.GetFunctionConfiguration(ctx, &lambda.GetFunctionConfigurationInput{FunctionName: &name})
	if err != nil {
		t.Fatal(err)
	}
	all := maps.Clone(now.Environment.Variables)
	maps.Copy(all, variables)
	for name, value := range all {
		if value == "" {
			delete(all, name)
		}
	}
	if _, err := d.functions.UpdateFunctionConfiguration(ctx,
		&lambda.UpdateFunctionConfigurationInput{
			FunctionName: &name, Environment: &lambdatypes.Environment{Variables: all},
		}); err != nil {
		t.Fatal(err)
	}
	return now.Environment.Variables
}

// reservedConcurrency returns the reserved concurrency of a function, or nil without one.
func (d *deployment) reservedConcurrency(t *testing.T, part string) *int32 {
	t.Helper()
	out, err := d.functions.GetFunctionConcurrency(t.Context(), &lambda.GetFunctionConcurrencyInput{
		FunctionName: aws.String("perdure-" + hubName + "-" + part),
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.ReservedConcurrentExecutions
}

// atRest waits until no message is in flight.
func (d *deployment) atRest(t *testing.T) {
	t.Helper()
	const name = sqstypes.QueueAttributeNameApproximateNumberOfMessagesNotVisible
	until(t, "nothing is handled", func() bool {
		for _, url := range []string{d.place.InboxURL, d.place.TimersURL, d.place.WorkQueues["default"]} {
			out, err := d.queues.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{
				QueueUrl: &url, AttributeNames: []sqstypes.QueueAttributeName{name},
			})
			if err != nil {
				t.Fatal(err)
			}
			if out.Attributes[string(name)] != "0" {
				return false
			}
		}
		return true
	})
}

// items returns all items of a table.
func (d *deployment) items(t *testing.T, table string) (all []map[string]dynamotypes.AttributeValue) {
	t.Helper()
	pages := dynamodb.NewScanPaginator(d.tables, &dynamodb.ScanInput{TableName: &table, ConsistentRead: aws.Bool(true)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, page.Items...)
	}
	return all
}

// replace replaces all items of a table.
func (d *deployment) replace(t *testing.T, table string, items []map[string]dynamotypes.AttributeValue) {
	t.Helper()
	for _, it := range d.items(t, table) {
		key := map[string]dynamotypes.AttributeValue{"pk": it["pk"], "sk": it["sk"]}
		if _, err := d.tables.DeleteItem(t.Context(),
			&dynamodb.DeleteItemInput{TableName: &table, Key: key}); err != nil {
			t.Fatal(err)
		}
	}
	for _, it := range items {
		if _, err := d.tables.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &table, Item: it}); err != nil {
			t.Fatal(err)
		}
	}
}

// allow changes the role of a function like a deployment with another table does.
func (d *deployment) allow(t *testing.T, part, table string) {
	t.Helper()
	function, err := d.functions.GetFunctionConfiguration(t.Context(), &lambda.GetFunctionConfigurationInput{
		FunctionName: aws.String("perdure-" + hubName + "-" + part),
	})
	if err != nil {
		t.Fatal(err)
	}
	role := (*function.Role)[strings.LastIndex(*function.Role, "/")+1:]
	roles, policy := iam.NewFromConfig(localcloud.Config(d.cloud.Env["AWS_ENDPOINT_URL"])), aws.String("hub")
	now, err := roles.GetRolePolicy(t.Context(), &iam.GetRolePolicyInput{RoleName: &role, PolicyName: policy})
	if err != nil {
		t.Fatal(err)
	}
	document, err := url.QueryUnescape(*now.PolicyDocument)
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.ReplaceAll(document, ":table/"+d.place.Table, ":table/"+table)
	if changed == document {
		t.Fatalf("role %s has no permission for the table %s: %s", role, d.place.Table, document)
	}
	if _, err := roles.PutRolePolicy(t.Context(), &iam.PutRolePolicyInput{
		RoleName: &role, PolicyName: policy, PolicyDocument: &changed,
	}); err != nil {
		t.Fatal(err)
	}
}

// deployOn deploys the hub with another table, and changes the configuration for clients.
func (d *deployment) deployOn(t *testing.T, table string) {
	t.Helper()
	for _, part := range parts {
		d.allow(t, part, table)
		d.set(t, part, map[string]string{"PERDURE_TABLE": table})
	}
	now, err := d.settings.GetParameter(t.Context(), &ssm.GetParameterInput{Name: aws.String(parameter)})
	if err != nil {
		t.Fatal(err)
	}
	value := strings.Replace(*now.Parameter.Value, fmt.Sprintf("%q", d.place.Table), fmt.Sprintf("%q", table), 1)
	if value == *now.Parameter.Value {
		t.Fatalf("configuration %s: want table %s", value, d.place.Table)
	}
	if _, err := d.settings.PutParameter(t.Context(),
		&ssm.PutParameterInput{Name: aws.String(parameter), Value: &value, Overwrite: aws.Bool(true)}); err != nil {
		t.Fatal(err)
	}
	if err := d.find(t.Context()); err != nil {
		t.Fatal(err)
	}
}
