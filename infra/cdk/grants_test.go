package cdk_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/jsii-runtime-go"

	"github.com/perdure/perdure/infra/cdk"
)

// A caller that can invoke the function of the API directly could forge an event that names another caller.
func TestGrants_functionURL_permitNoDirectInvocation(t *testing.T) {
	t.Parallel()
	conditions := map[string]string{
		"lambda:InvokeFunctionUrl": `{"StringEquals":{"lambda:FunctionUrlAuthType":"AWS_IAM"}}`,
		"lambda:InvokeFunction":    `{"Bool":{"lambda:InvokedViaFunctionUrl":"true"}}`,
	}
	kinds := map[string][]string{
		cdk.APIKindHTTP:        {"execute-api:Invoke"},
		cdk.APIKindFunctionURL: {"lambda:InvokeFunction", "lambda:InvokeFunctionUrl"},
	}
	for kind, want := range kinds {
		got := custom(t, cdk.TaskHubProps{HubName: "orders", FunctionsDir: placeholders, APIKind: kind},
			func(stack awscdk.Stack, hub *cdk.TaskHub) {
				role := func(name string) awsiam.Role {
					return awsiam.NewRole(stack, jsii.String(name),
						&awsiam.RoleProps{AssumedBy: awsiam.NewAccountRootPrincipal()})
				}
				hub.GrantAPI(role("API"))
				hub.GrantRenew(role("Renew"))
			})
		for _, grantee := range []string{"API", "Renew"} {
			var actions []string
			for _, s := range statementsIn(got.find(t, "AWS::IAM::Policy", grantee).get("PolicyDocument")) {
				actions = append(actions, s.actions...)
				condition, err := json.Marshal(s.condition)
				if err != nil {
					t.Fatal(err)
				}
				if needed, ok := conditions[strings.Join(s.actions, " ")]; ok && string(condition) != needed {
					t.Errorf("%s, Grant%s: %s on the condition %s, want %s", kind, grantee, s.actions, condition,
						needed)
				}
			}
			if slices.Sort(actions); !slices.Equal(actions, want) {
				t.Errorf("%s, Grant%s: %s, want %s", kind, grantee, actions, want)
			}
		}
	}
}

// The function trusts the caller in an event only if the gateway verifies the caller.
func TestAPI_authorization_isInFunctionEnvironment(t *testing.T) {
	t.Parallel()
	jwt := cdk.HTTPAPIProps{JWT: &cdk.JWTAuthorizer{Issuer: "https://issuer.example.com", Audience: []string{"orders"}}}
	for name, c := range map[string]struct {
		kind string
		api  cdk.HTTPAPIProps
		want string
	}{
		"IAM":          {cdk.APIKindHTTP, cdk.HTTPAPIProps{}, "iam"},
		"a token":      {cdk.APIKindHTTP, jwt, "jwt"},
		"function URL": {cdk.APIKindFunctionURL, cdk.HTTPAPIProps{}, "iam"},
	} {
		props := cdk.TaskHubProps{HubName: "orders", FunctionsDir: placeholders, APIKind: c.kind, HTTPAPI: c.api}
		function := custom(t, props, func(awscdk.Stack, *cdk.TaskHub) {}).find(t, "AWS::Lambda::Function", "TaskHubApi")
		if got := function.text("Environment", "Variables", "PERDURE_API_AUTHORIZATION"); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
