package cdk_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/jsii-runtime-go"

	"github.com/perdure/perdure/infra/cdk"
)

// grantsFile has the policy of each grant. TestRights_… in tests/e2e calls the hub e2e with them, so the hub has the
// name and the logical IDs of that deployment.
const grantsFile = "testdata/grants.golden.json"

func TestGrants_policies_matchGoldenFile(t *testing.T) {
	t.Parallel()
	var names []string
	parsed := custom(t, cdk.TaskHubProps{
		HubName: "e2e", FunctionsDir: placeholders, WorkQueues: []string{"default"}, LargePayloads: true,
		WorkQueueProps: map[string]cdk.WorkQueueProps{"default": {Exclusive: true, Client: true}}, DeadLetters: true,
	}, func(stack awscdk.Stack, hub *cdk.TaskHub) {
		methods := reflect.ValueOf(hub)
		for i := range methods.NumMethod() {
			name := methods.Type().Method(i).Name
			if !strings.HasPrefix(name, "Grant") {
				continue
			}
			names = append(names, name)
			role := awsiam.NewRole(stack, jsii.String(name),
				&awsiam.RoleProps{AssumedBy: awsiam.NewAccountRootPrincipal()})
			args := []reflect.Value{reflect.ValueOf(role), reflect.ValueOf("default")}
			methods.Method(i).Call(args[:methods.Type().Method(i).Type.NumIn()-1])
		}
	})
	policies := map[string]any{}
	for _, p := range parsed.ofType("AWS::IAM::Policy") {
		for _, name := range names {
			if strings.HasPrefix(p.id, name+"DefaultPolicy") {
				policies[name] = p.get("PolicyDocument")
			}
		}
	}
	if len(policies) != len(names) || !slices.Contains(names, "GrantRead") {
		t.Fatalf("got %d policies of the grants %v", len(policies), names)
	}
	text, err := json.MarshalIndent(policies, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	compareGolden(t, grantsFile, append(text, '\n'))
}
