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

func TestAPI_withoutAuthorizer_requiresIAM(t *testing.T) {
	t.Parallel()
	parsed := parse(t)
	var keys []string
	for _, route := range parsed.ofType("AWS::ApiGatewayV2::Route") {
		keys = append(keys, route.text("RouteKey"))
		if auth := route.text("AuthorizationType"); auth != "AWS_IAM" {
			t.Errorf("route %s is authorised by %q", route.text("RouteKey"), auth)
		}
	}
	slices.Sort(keys)
	if want := []string{"ANY /v1/{proxy+}", "POST /v1/work-items/renew"}; !slices.Equal(keys, want) {
		t.Errorf("the routes are %v, want %v", keys, want)
	}
	url := parsed.find(t, "AWS::Lambda::Url", "TaskHub")
	if auth := url.text("AuthType"); auth != "AWS_IAM" {
		t.Errorf("the function URL is authorised by %q", auth)
	}
}

func TestAPIKindParameter_createsResourcesOfOneKindOnly(t *testing.T) {
	t.Parallel()
	parsed := parse(t)
	conditions := map[string]string{"AWS::Lambda::Url": "IsFunctionUrl"}
	for _, kind := range []string{"Api", "Stage", "Route", "Integration"} {
		conditions["AWS::ApiGatewayV2::"+kind] = "IsHttpApi"
	}
	for kind, condition := range conditions {
		all := parsed.ofType(kind)
		if len(all) == 0 {
			t.Errorf("the template has no %s", kind)
		}
		for _, r := range all {
			if !strings.Contains(r.condition, condition) {
				t.Errorf("%s has the condition %q, want %s", r.id, r.condition, condition)
			}
		}
	}
}

func TestAPIIntegrations_usePayloadFormat2(t *testing.T) {
	t.Parallel()
	for _, integration := range parse(t).ofType("AWS::ApiGatewayV2::Integration") {
		if version := integration.text("PayloadFormatVersion"); version != "2.0" {
			t.Errorf("%s: payload format %q", integration.id, version)
		}
	}
}

// The gateway may invoke the renewer for the renew route only.
func TestRenewRoute_invokesRenewerOnly(t *testing.T) {
	t.Parallel()
	parsed := parse(t)
	integration := parsed.find(t, "AWS::ApiGatewayV2::Integration", "TaskHubRenew")
	if uri := plain(integration.get("IntegrationUri")); len(uri) != 1 || !strings.HasPrefix(uri[0], "TaskHubRenewer") {
		t.Errorf("the route targets %v", uri)
	}
	permission := parsed.find(t, "AWS::Lambda::Permission", "TaskHubRenewPermission")
	if arn := plain(permission.get("SourceArn")); len(arn) != 1 ||
		!strings.HasSuffix(arn[0], "/*/POST/v1/work-items/renew") {
		t.Errorf("the renewer may be invoked by %v", arn)
	}
}

func TestInvokePermissions_haveSourceARN(t *testing.T) {
	t.Parallel()
	for _, permission := range parse(t).ofType("AWS::Lambda::Permission") {
		if permission.get("SourceArn") == nil {
			t.Errorf("%s lets %s of any account invoke the function", permission.id, permission.text("Principal"))
		}
	}
}

// GrantAPI also allows the web UI. Pages of exact CORS origins may send changes to the API, but origins with a * may
// not.
func TestGrantAPI_withWebUI_allowsItsRoute(t *testing.T) {
	t.Parallel()
	props := cdk.TaskHubProps{HubName: "orders", FunctionsDir: placeholders, UI: true}
	props.HTTPAPI.CORS = &cdk.CORS{AllowOrigins: []string{"https://shop.example.com", "https://*"}}
	got := custom(t, props, func(stack awscdk.Stack, hub *cdk.TaskHub) {
		hub.GrantAPI(awsiam.NewRole(stack, jsii.String("Caller"),
			&awsiam.RoleProps{AssumedBy: awsiam.NewAccountRootPrincipal()}))
	})
	policy, err := json.Marshal(got.find(t, "AWS::IAM::Policy", "Caller").get("PolicyDocument"))
	if err != nil {
		t.Fatal(err)
	}
	for _, call := range []string{"/*/*/v1/*", "/*/GET/ui"} {
		if !strings.Contains(string(policy), call) {
			t.Errorf("GrantAPI does not allow %s: %s", call, policy)
		}
	}
	if origins := got.find(t, "AWS::Lambda::Function", "TaskHubApi").text("Environment", "Variables",
		"PERDURE_UI_ORIGINS"); origins != "https://shop.example.com" {
		t.Errorf("PERDURE_UI_ORIGINS is %q", origins)
	}
}

// The web UI has a route only with the prop UI, and its route requires the same authorization as the API.
func TestUIProp_addsRouteOnlyIfSet(t *testing.T) {
	t.Parallel()
	of := func(ui bool) (routes []string, env string) {
		got := custom(t, cdk.TaskHubProps{HubName: "orders", FunctionsDir: placeholders, UI: ui},
			func(awscdk.Stack, *cdk.TaskHub) {})
		for _, route := range got.ofType("AWS::ApiGatewayV2::Route") {
			routes = append(routes, route.text("RouteKey"))
			if auth := route.text("AuthorizationType"); auth != "AWS_IAM" {
				t.Errorf("route %s is authorised by %q", route.text("RouteKey"), auth)
			}
		}
		if v, there := got.find(t, "AWS::Lambda::Function", "TaskHubApi").get("Environment", "Variables",
			"PERDURE_UI").(string); there {
			env = v
		}
		return routes, env
	}
	if routes, env := of(true); !slices.Contains(routes, "GET /ui") || env != "true" {
		t.Errorf("with UI: routes %v, PERDURE_UI %q", routes, env)
	}
	if routes, env := of(false); slices.Contains(routes, "GET /ui") || env != "" {
		t.Errorf("without UI: routes %v, PERDURE_UI %q", routes, env)
	}
}
