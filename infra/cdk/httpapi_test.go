package cdk_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/jsii-runtime-go"

	"github.com/perdure/perdure/infra/cdk"
)

const routeType = "AWS::ApiGatewayV2::Route"

func ofHTTPAPI(t *testing.T, own cdk.HTTPAPIProps) template {
	t.Helper()
	return custom(t, cdk.TaskHubProps{HubName: "orders", FunctionsDir: placeholders, HTTPAPI: own},
		func(awscdk.Stack, *cdk.TaskHub) {})
}

func TestHTTPAPIProps_setLimitsLogsDomainAndCORS(t *testing.T) {
	t.Parallel()
	got := ofHTTPAPI(t, cdk.HTTPAPIProps{
		RateLimit: 50, BurstLimit: 100, AccessLogs: true,
		Domain: &cdk.APIDomain{
			Name: "orders.example.com", CertificateARN: "arn:aws:acm:eu-west-1:123456789012:certificate/c",
		},
		CORS: &cdk.CORS{AllowOrigins: []string{"https://app.example.com"}, AllowHeaders: []string{"x-team"}},
	})
	stage := got.find(t, "AWS::ApiGatewayV2::Stage", "TaskHub")
	if stage.get("DefaultRouteSettings", "ThrottlingRateLimit") != 50.0 ||
		stage.get("DefaultRouteSettings", "ThrottlingBurstLimit") != 100.0 {
		t.Errorf("the limits are %v", stage.get("DefaultRouteSettings"))
	}
	if logs := refOf(stage.get("AccessLogSettings", "DestinationArn")); !strings.HasPrefix(logs, "TaskHubAccessLogs") ||
		!strings.Contains(stage.text("AccessLogSettings", "Format"), "$context.requestId") {
		t.Errorf("access logs go to %q as %s", logs, stage.text("AccessLogSettings", "Format"))
	}
	domain := got.find(t, "AWS::ApiGatewayV2::DomainName", "TaskHub")
	mapping := got.find(t, "AWS::ApiGatewayV2::ApiMapping", "TaskHub")
	if domain.text("DomainName") != "orders.example.com" || refOf(mapping.get("DomainName")) != domain.id ||
		refOf(mapping.get("Stage")) != stage.id {
		t.Errorf("domain %v, mapped by %v", domain.properties, mapping.properties)
	}
	cors := got.find(t, "AWS::ApiGatewayV2::Api", "TaskHub")
	if origins := plain(cors.get("CorsConfiguration", "AllowOrigins")); !slices.Equal(origins,
		[]string{"https://app.example.com"}) {
		t.Errorf("origins %v", origins)
	}
	headers := plain(cors.get("CorsConfiguration", "AllowHeaders"))
	if !slices.Contains(headers, "x-team") || !slices.Contains(headers, "idempotency-key") {
		t.Errorf("headers %v", headers)
	}
	for _, route := range got.ofType(routeType) {
		want := "AWS_IAM"
		if strings.HasPrefix(route.text("RouteKey"), "OPTIONS ") {
			want = "NONE" // browsers do not sign preflight requests
		}
		if route.text("AuthorizationType") != want {
			t.Errorf("%s is authorised by %s", route.text("RouteKey"), route.text("AuthorizationType"))
		}
	}
}

func TestHTTPAPIProps_authorizer_protectsAllRoutes(t *testing.T) {
	t.Parallel()
	function := given(func(stack awscdk.Stack) awslambda.IFunction {
		return awslambda.Function_FromFunctionArn(stack, jsii.String("Gate"),
			jsii.String("arn:aws:lambda:eu-west-1:123456789012:function:gate"))
	})
	for kind, own := range map[string]cdk.HTTPAPIProps{
		"JWT":    {JWT: &cdk.JWTAuthorizer{Issuer: "https://id.example.com", Audience: []string{"orders"}}},
		"CUSTOM": {Authorizer: function},
	} {
		got := ofHTTPAPI(t, own)
		authorizer := got.find(t, "AWS::ApiGatewayV2::Authorizer", "TaskHub")
		for _, route := range got.ofType(routeType) {
			if route.text("AuthorizationType") != kind || refOf(route.get("AuthorizerId")) != authorizer.id {
				t.Errorf("%s: %s is authorised by %s %v", kind, route.text("RouteKey"), route.text("AuthorizationType"),
					route.get("AuthorizerId"))
			}
		}
		if kind == "JWT" && authorizer.text("JwtConfiguration", "Issuer") != "https://id.example.com" {
			t.Errorf("the token settings are %v", authorizer.get("JwtConfiguration"))
		}
		if uri := strings.Join(plain(authorizer.get("AuthorizerUri")), ""); kind == "CUSTOM" &&
			(!strings.HasSuffix(uri, ":function:gate/invocations") ||
				got.find(t, "AWS::Lambda::Permission", "TaskHubAuthorizerPermission").get("SourceArn") == nil) {
			t.Errorf("the authorizer is %s", uri)
		}
	}
}

func TestHTTPAPIProps_invalidCombinations_panic(t *testing.T) {
	t.Parallel()
	jsiiLock.Lock()
	defer jsiiLock.Unlock()
	jwt := &cdk.JWTAuthorizer{Issuer: "https://id.example.com", Audience: []string{"orders"}}
	for name, props := range map[string]cdk.TaskHubProps{
		"limits with a function URL": {APIKind: cdk.APIKindFunctionURL, HTTPAPI: cdk.HTTPAPIProps{RateLimit: 1}},
		"no audience": {
			HTTPAPI: cdk.HTTPAPIProps{JWT: &cdk.JWTAuthorizer{Issuer: "https://id.example.com"}},
		},
		"no certificate": {HTTPAPI: cdk.HTTPAPIProps{Domain: &cdk.APIDomain{Name: "x.example.com"}}},
		"no origins":     {HTTPAPI: cdk.HTTPAPIProps{CORS: &cdk.CORS{}}},
	} {
		props.HubName, props.FunctionsDir = "orders", placeholders
		if !refused(props) {
			t.Errorf("%s: NewTaskHub accepted it", name)
		}
	}
	for name, props := range map[string]cdk.TaskHubProps{
		"a function URL": {APIKind: cdk.APIKindFunctionURL}, "tokens": {HTTPAPI: cdk.HTTPAPIProps{JWT: jwt}},
	} {
		props.HubName, props.FunctionsDir = "orders", placeholders
		stack := awscdk.NewStack(awscdk.NewApp(nil), jsii.String("Narrow"), nil)
		hub := cdk.NewTaskHub(stack, "TaskHub", props)
		role := awsiam.NewRole(stack, jsii.String("Role"),
			&awsiam.RoleProps{AssumedBy: awsiam.NewAccountRootPrincipal()})
		for grant, call := range map[string]func(awsiam.IGrantable){
			"GrantRead": hub.GrantRead, "GrantStart": hub.GrantStart, "GrantPut": hub.GrantPut,
			"GrantControl": hub.GrantControl, "GrantComplete": hub.GrantComplete, "GrantPurge": hub.GrantPurge,
			"GrantSchedule": hub.GrantSchedule,
		} {
			if text := panicOf(func() { call(role) }); !strings.Contains(text, " "+grant+": requires an HTTP API") {
				t.Errorf("%s: %s panics with %q", name, grant, text)
			}
		}
	}
}

// A grant allows its calls of the API, and no direct access to AWS resources.
func TestAPIGrants_allowOnlyTheirCalls(t *testing.T) {
	t.Parallel()
	const read = "/*/GET/v1/*"
	grants := map[string]struct {
		grant func(*cdk.TaskHub, awsiam.IGrantable)
		calls []string
	}{
		"Read":   {(*cdk.TaskHub).GrantRead, []string{read}},
		"Start":  {(*cdk.TaskHub).GrantStart, []string{read, "/*/POST/v1/orchestrations/*"}},
		"Put":    {(*cdk.TaskHub).GrantPut, []string{read, "/*/PUT/v1/instances/*"}},
		"Tell":   {(*cdk.TaskHub).GrantControl, []string{read, "/*/POST/v1/instances/*", "/*/POST/v1/entities/*"}},
		"Cancel": {(*cdk.TaskHub).GrantCancel, []string{read, "/*/POST/v1/instances/*", "/*/POST/v1/entities/*"}},
		"Purge": {
			(*cdk.TaskHub).GrantPurge,
			[]string{read, "/*/DELETE/v1/instances/*", "/*/POST/v1/jobs", "/*/POST/v1/jobs/*"},
		},
		"Schedule": {
			(*cdk.TaskHub).GrantSchedule,
			[]string{read, "/*/PUT/v1/schedules/*", "/*/DELETE/v1/schedules/*", "/*/POST/v1/schedules/*"},
		},
		"Complete": {(*cdk.TaskHub).GrantComplete, []string{"/*/POST/v1/activities/*"}},
		"Redrive":  {(*cdk.TaskHub).GrantRedrive, []string{read, "/*/POST/v1/dead-letters/*"}},
	}
	got := custom(t, cdk.TaskHubProps{HubName: "orders", FunctionsDir: placeholders, DeadLetters: true},
		func(stack awscdk.Stack, hub *cdk.TaskHub) {
			role := func(name string) awsiam.Role {
				return awsiam.NewRole(stack, jsii.String(name), &awsiam.RoleProps{
					AssumedBy: awsiam.NewServicePrincipal(jsii.String("lambda.amazonaws.com"), nil),
				})
			}
			for name, g := range grants {
				g.grant(hub, role(name))
			}
			hub.GrantPoll(role("Poll"), "default")
		})
	for name, g := range grants {
		statements := statementsIn(got.find(t, "AWS::IAM::Policy", name).get("PolicyDocument"))
		if len(statements) != 1 || !slices.Equal(statements[0].actions, []string{"execute-api:Invoke"}) {
			t.Fatalf("Grant%s allows %v", name, statements)
		}
		list, _ := got.find(t, "AWS::IAM::Policy", name).get("PolicyDocument").(map[string]any)["Statement"].([]any)
		resource, _ := list[0].(map[string]any)
		var calls []string
		for _, arn := range ifTrue(resource["Resource"]) {
			_, id, _ := strings.Cut(arn, "TaskHubHttpApi")
			_, call, _ := strings.Cut(id, "/")
			calls = append(calls, "/"+call)
		}
		if !slices.Equal(calls, g.calls) {
			t.Errorf("Grant%s is of %v, want %v", name, calls, g.calls)
		}
	}
	poll := actionsOf(statementsIn(got.find(t, "AWS::IAM::Policy", "Poll").get("PolicyDocument")))
	if !poll["sqs:ReceiveMessage"] || !poll["sqs:DeleteMessage"] || !poll["execute-api:Invoke"] ||
		poll["sqs:SendMessage"] || poll["dynamodb:GetItem"] {
		t.Errorf("GrantPoll allows %v", poll)
	}
}

// ifTrue returns the strings of a value as if each condition holds.
func ifTrue(value any) (all []string) {
	if list, ok := value.([]any); ok {
		for _, each := range list {
			all = append(all, ifTrue(each)...)
		}
		return all
	}
	if object, ok := value.(map[string]any); ok {
		if branches, ok := object["Fn::If"].([]any); ok && len(branches) == 3 {
			return ifTrue(branches[1])
		}
	}
	return plain(value)
}

// A loop in one caller must not use up the quota that all APIs of the account share.
func TestAPI_withoutLimits_takesATenthOfTheAccountsQuota(t *testing.T) {
	t.Parallel()
	settings := parse(t).find(t, "AWS::ApiGatewayV2::Stage", "TaskHub").get("DefaultRouteSettings")
	if got := fmt.Sprint(settings); got != "map[ThrottlingBurstLimit:500 ThrottlingRateLimit:1000]" {
		t.Errorf("the stage has %s", got)
	}
}
