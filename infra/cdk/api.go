package cdk

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsapigatewayv2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/jsii-runtime-go"

	"github.com/perdure/perdure/infra/cdk/internal/policy"
)

const authIAM = "AWS_IAM"

// apiResources has the ARNs of the HTTP API for grants. They depend on the APIKind of the hub.
type apiResources struct {
	invokeARN, renewARN string
	callARN             func(calls string) string // the ARN of calls, or an ARN that matches nothing for a function URL
	id                  string                    // of the HTTP API, valid only if isHTTP is true
	authorizer          *string                   // of its routes, nil for IAM
	authorization       string
	isHTTP, isURL       awscdk.CfnCondition
}

// endpoints creates the HTTP API and the function URL.
type endpoints struct{ *TaskHub }

// add creates the HTTP API and the function URL, each with a condition, so that one template also works in clouds
// without HTTP APIs.
func (h endpoints) add() {
	http := h.addCondition("IsHttpApi", APIKindHTTP)
	url := h.addCondition("IsFunctionUrl", APIKindFunctionURL)
	api := h.addHTTPAPI(http)
	functionURL := h.addFunctionURL(url)
	h.allowRenewals(url)
	h.api.isHTTP, h.api.isURL, h.api.id = http, url, *api.Ref()
	choose := func(a, b *string) string {
		return *awscdk.Token_AsString(awscdk.Fn_ConditionIf(http.LogicalId(), a, b), nil)
	}
	// A function URL ends with a slash. An API endpoint does not.
	trimmed := awscdk.Fn_Select(jsii.Number(2), awscdk.Fn_Split(jsii.String("/"), functionURL.AttrFunctionUrl(), nil))
	endpoint := api.AttrApiEndpoint()
	if domain := h.props.HTTPAPI.Domain; domain != nil {
		endpoint = jsii.String("https://" + domain.Name)
	}
	h.APIURL = choose(endpoint, jsii.String("https://"+*trimmed))
	if h.props.StreamURL {
		h.StreamURL = "https://" + *trimmed
	}
	h.api.invokeARN = choose(h.executeARN(api, "*/*/v1/*"), h.API.FunctionArn())
	h.api.renewARN = choose(h.executeARN(api, "*/POST"+renewPath), h.API.FunctionArn())
	h.api.callARN = func(calls string) string {
		none := awscdk.Fn_Join(jsii.String(":"), &[]*string{
			jsii.String("arn"), h.stack.Partition(), jsii.String("execute-api:"), jsii.String(":none"),
		})
		return choose(h.executeARN(api, calls), none)
	}
}

// renewPath is the route that the renewer serves.
const renewPath = "/v1/work-items/renew"

// allowRenewals allows the API function to extend the locks of work items if the hub has a function URL, which invokes
// a single function. An HTTP API routes this call to the renewer.
func (h endpoints) allowRenewals(functionURL awscdk.CfnCondition) {
	policy := awsiam.NewCfnPolicy(h.Construct, jsii.String("ApiRenewals"), &awsiam.CfnPolicyProps{
		PolicyName:     jsii.String("renewals"),
		PolicyDocument: policy.Document(policy.Allow(h.workQueueARNs(), policy.Lock)),
		Roles:          &[]*string{h.API.Role().RoleName()},
	})
	policy.CfnOptions().SetCondition(functionURL)
}

func (h endpoints) addCondition(id, kind string) awscdk.CfnCondition {
	return awscdk.NewCfnCondition(h.Construct, jsii.String(id), &awscdk.CfnConditionProps{
		Expression: awscdk.Fn_ConditionEquals(h.props.APIKind, kind),
	})
}

func (h endpoints) addHTTPAPI(condition awscdk.CfnCondition) awsapigatewayv2.CfnApi {
	api := awsapigatewayv2.NewCfnApi(h.Construct, jsii.String("HttpApi"), &awsapigatewayv2.CfnApiProps{
		Name:              h.name("api"),
		ProtocolType:      jsii.String("HTTP"),
		CorsConfiguration: h.corsConfiguration(),
	})
	stage := awsapigatewayv2.NewCfnStage(h.Construct, jsii.String("HttpApiStage"), &awsapigatewayv2.CfnStageProps{
		ApiId: api.Ref(), StageName: jsii.String("$default"), AutoDeploy: true,
		DefaultRouteSettings: h.routeSettings(), AccessLogSettings: h.accessLogs(),
	})
	api.CfnOptions().SetCondition(condition)
	stage.CfnOptions().SetCondition(condition)
	h.addAuthorizer(api, condition)
	h.addDomain(api, stage, condition)
	target := h.addRoute(api, condition, "Api", h.API, "ANY /v1/{proxy+}", "*/*/v1/*")
	if h.props.UI {
		h.addRoute(api, condition, "Ui", h.API, "GET /ui", "*/GET/ui")
	}
	h.addRoute(api, condition, "Renew", h.Renewer, "POST "+renewPath, "*/POST"+renewPath)
	if h.props.HTTPAPI.CORS != nil {
		h.addPreflight(api, condition, target)
	}
	return api
}

func (h endpoints) addRoute(
	api awsapigatewayv2.CfnApi, condition awscdk.CfnCondition, id string, function awslambda.Function,
	routeKey, calls string,
) (target *string) {
	integration := awsapigatewayv2.NewCfnIntegration(h.Construct, jsii.String(id+"Integration"),
		&awsapigatewayv2.CfnIntegrationProps{
			ApiId:                api.Ref(),
			IntegrationType:      jsii.String("AWS_PROXY"),
			IntegrationUri:       function.FunctionArn(),
			PayloadFormatVersion: jsii.String("2.0"),
			TimeoutInMillis:      jsii.Number(30_000),
		})
	target = jsii.String("integrations/" + *integration.Ref())
	route := awsapigatewayv2.NewCfnRoute(h.Construct, jsii.String(id+"Route"), &awsapigatewayv2.CfnRouteProps{
		ApiId:             api.Ref(),
		RouteKey:          jsii.String(routeKey),
		AuthorizationType: jsii.String(h.api.authorization),
		AuthorizerId:      h.api.authorizer,
		Target:            target,
	})
	permission := awslambda.NewCfnPermission(h.Construct, jsii.String(id+"Permission"), &awslambda.CfnPermissionProps{
		Action:       jsii.String("lambda:InvokeFunction"),
		FunctionName: function.FunctionArn(),
		Principal:    jsii.String("apigateway.amazonaws.com"),
		SourceArn:    h.executeARN(api, calls),
	})
	for _, resource := range []awscdk.CfnResource{integration, route, permission} {
		resource.CfnOptions().SetCondition(condition)
	}
	return target
}

// addFunctionURL creates the URL of the API, with a condition, or the URL for streams, which an HTTP API has too.
func (h endpoints) addFunctionURL(condition awscdk.CfnCondition) awslambda.CfnUrl {
	url := awslambda.NewCfnUrl(h.Construct, jsii.String("ApiUrl"), &awslambda.CfnUrlProps{
		TargetFunctionArn: h.API.FunctionArn(),
		AuthType:          jsii.String(authIAM),
	})
	if h.props.StreamURL {
		url.SetInvokeMode(jsii.String("RESPONSE_STREAM"))
	} else {
		url.CfnOptions().SetCondition(condition)
	}
	return url
}

// executeARN returns the ARN of calls of an API, in the format stage/method/path.
func (h endpoints) executeARN(api awsapigatewayv2.CfnApi, calls string) *string {
	return h.stack.FormatArn(&awscdk.ArnComponents{
		Service:      jsii.String("execute-api"),
		Resource:     api.Ref(),
		ResourceName: jsii.String(calls),
	})
}
