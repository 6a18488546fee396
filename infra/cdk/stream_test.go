package cdk_test

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/jsii-runtime-go"

	"github.com/perdure/perdure/infra/cdk"
)

// withGrants returns the template of a hub of a kind, with and without StreamURL, whose grants for the HTTP API have a
// role each. It also returns the URL for streams.
func withGrants(t *testing.T, kind string, streams bool) (got template, streamURL string) {
	t.Helper()
	props := cdk.TaskHubProps{
		HubName: "orders", FunctionsDir: placeholders, DeadLetters: true, APIKind: kind, StreamURL: streams,
	}
	got = custom(t, props, func(stack awscdk.Stack, hub *cdk.TaskHub) {
		grantAll(stack, hub, props)
		streamURL = hub.StreamURL
		if streams {
			awscdk.NewCfnOutput(stack, jsii.String("Streams"), &awscdk.CfnOutputProps{Value: jsii.String(streamURL)})
		}
	})
	return got, streamURL
}

// StreamURL changes the function URL, the environment of the API function, and the policy of GrantAPI. It adds no
// permission to another role, and no resource policy.
func TestStreamURL_permitsCallsToGrantAPIOnly(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{cdk.APIKindHTTP, cdk.APIKindFunctionURL} {
		without, none := withGrants(t, kind, false)
		with, url := withGrants(t, kind, true)
		if none != "" || !strings.HasPrefix(url, "https://") || strings.HasSuffix(url, "/") {
			t.Errorf("%s: URLs %q and %q", kind, none, url)
		}
		var changed []string
		for id := range maps.Keys(with.Resources) {
			if !reflect.DeepEqual(with.Resources[id], without.Resources[id]) {
				changed = append(changed, with.Resources[id].Type)
			}
		}
		want := []string{"AWS::IAM::Policy", "AWS::Lambda::Function", "AWS::Lambda::Url"}
		if kind == cdk.APIKindFunctionURL { // GrantAPI permits its calls in any case
			want = want[1:]
		}
		if slices.Sort(changed); !slices.Equal(changed, want) || len(with.Resources) != len(without.Resources) {
			t.Errorf("%s: StreamURL changes %q, want %q", kind, changed, want)
		}

		stream := with.find(t, "AWS::Lambda::Url", "TaskHub")
		if stream.text("AuthType") != "AWS_IAM" || stream.text("InvokeMode") != "RESPONSE_STREAM" ||
			stream.condition != "" {
			t.Errorf("%s: the function URL has the condition %q and %v", kind, stream.condition, stream.properties)
		}
		if mode := without.find(t, "AWS::Lambda::Url", "TaskHub").get("InvokeMode"); mode != nil {
			t.Errorf("%s: without StreamURL, the invoke mode is %v", kind, mode)
		}
		variable := with.find(t, "AWS::Lambda::Function", "TaskHubApi").text("Environment", "Variables",
			"PERDURE_API_STREAM")
		if variable != "true" {
			t.Errorf("%s: PERDURE_API_STREAM is %q", kind, variable)
		}
		var actions []string
		statements := statementsIn(with.find(t, "AWS::IAM::Policy", "ordersGrantAPI").get("PolicyDocument"))
		for _, s := range statements {
			if actions = append(actions, s.actions...); s.actions[0] != "execute-api:Invoke" && s.condition == nil {
				t.Errorf("%s: GrantAPI permits %s without a condition", kind, s.actions)
			}
		}
		for _, needed := range []string{"lambda:InvokeFunctionUrl", "lambda:InvokeFunction"} {
			if !slices.Contains(actions, needed) {
				t.Errorf("%s: GrantAPI permits %s, not %s", kind, actions, needed)
			}
		}
	}
}

// IAM authorizes a function URL. It would be another way to an API with another authorizer.
func TestStreamURL_withOtherAuthorizer_panics(t *testing.T) {
	t.Parallel()
	jsiiLock.Lock()
	defer jsiiLock.Unlock()
	props := cdk.TaskHubProps{HubName: "orders", FunctionsDir: placeholders, StreamURL: true}
	props.HTTPAPI.JWT = &cdk.JWTAuthorizer{Issuer: "https://id.example.com", Audience: []string{"orders"}}
	if !refused(props) {
		t.Error("NewTaskHub accepted StreamURL with JWT")
	}
}
