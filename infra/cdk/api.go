package cdk

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsapigatewayv2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/jsii-runtime-go"
)

const authIAM = "AWS_IAM"

// apiResources is how callers of the HTTP API are granted: the ARN they call,
// which depends on the template's ApiKind.
type apiResources struct{ invokeARN string }

// addAPI makes both kinds of door, each on a condition, so that one template
// serves clouds that have no HTTP APIs.
func (h *TaskHub) addAPI() {
	http := h.addCondition("IsHttpApi", APIKindHTTP)
	url := h.addCondition("IsFunctionUrl", APIKindFunctionURL)
	api := h.addHTTPAPI(http)
	functionURL := h.addFunctionURL(url)
	choose := func(a, b *string) string {
		return *awscdk.Token_AsString(awscdk.Fn_ConditionIf(http.LogicalId(), a, b), nil)
	}
	// A function URL ends with a slash, an API endpoint does not.
	trimmed := awscdk.Fn_Select(jsii.Number(2), awscdk.Fn_Split(jsii.String("/"), functionURL.AttrFunctionUrl(), nil))
	h.APIURL = choose(api.AttrApiEndpoint(), jsii.String("https://"+*trimmed))
	h.api.invokeARN = choose(h.executeARN(api, "*/*/v1/*"), h.API.FunctionArn())
}

func (h *TaskHub) addCondition(id, kind string) awscdk.CfnCondition {
	return awscdk.NewCfnCondition(h.Construct, jsii.String(id), &awscdk.CfnConditionProps{
		Expression: awscdk.Fn_ConditionEquals(h.props.APIKind, kind),
	})
}

func (h *TaskHub) addHTTPAPI(condition awscdk.CfnCondition) awsapigatewayv2.CfnApi {
	api := awsapigatewayv2.NewCfnApi(h.Construct, jsii.String("HttpApi"), &awsapigatewayv2.CfnApiProps{
		Name:         h.name("api"),
		ProtocolType: jsii.String("HTTP"),
	})
	stage := awsapigatewayv2.NewCfnStage(h.Construct, jsii.String("HttpApiStage"), &awsapigatewayv2.CfnStageProps{
		ApiId: api.Ref(), StageName: jsii.String("$default"), AutoDeploy: true,
	})
	api.CfnOptions().SetCondition(condition)
	stage.CfnOptions().SetCondition(condition)
	h.addRoute(api, condition, "Api", h.API, "ANY /v1/{proxy+}")
	return api
}

func (h *TaskHub) addRoute(
	api awsapigatewayv2.CfnApi, condition awscdk.CfnCondition, id string, function awslambda.Function, routeKey string,
) {
	integration := awsapigatewayv2.NewCfnIntegration(h.Construct, jsii.String(id+"Integration"),
		&awsapigatewayv2.CfnIntegrationProps{
			ApiId:                api.Ref(),
			IntegrationType:      jsii.String("AWS_PROXY"),
			IntegrationUri:       function.FunctionArn(),
			PayloadFormatVersion: jsii.String("2.0"),
			TimeoutInMillis:      jsii.Number(30_000),
		})
	route := awsapigatewayv2.NewCfnRoute(h.Construct, jsii.String(id+"Route"), &awsapigatewayv2.CfnRouteProps{
		ApiId:             api.Ref(),
		RouteKey:          jsii.String(routeKey),
		AuthorizationType: jsii.String(authIAM),
		Target:            jsii.String("integrations/" + *integration.Ref()),
	})
	permission := awslambda.NewCfnPermission(h.Construct, jsii.String(id+"Permission"), &awslambda.CfnPermissionProps{
		Action:       jsii.String("lambda:InvokeFunction"),
		FunctionName: function.FunctionArn(),
		Principal:    jsii.String("apigateway.amazonaws.com"),
		SourceArn:    h.executeARN(api, "*/*/v1/*"),
	})
	for _, resource := range []awscdk.CfnResource{integration, route, permission} {
		resource.CfnOptions().SetCondition(condition)
	}
}

func (h *TaskHub) addFunctionURL(condition awscdk.CfnCondition) awslambda.CfnUrl {
	url := awslambda.NewCfnUrl(h.Construct, jsii.String("ApiUrl"), &awslambda.CfnUrlProps{
		TargetFunctionArn: h.API.FunctionArn(),
		AuthType:          jsii.String(authIAM),
	})
	url.CfnOptions().SetCondition(condition)
	return url
}

// executeARN names the calls of an API: stage/method/path.
func (h *TaskHub) executeARN(api awsapigatewayv2.CfnApi, calls string) *string {
	return h.stack.FormatArn(&awscdk.ArnComponents{
		Service:      jsii.String("execute-api"),
		Resource:     api.Ref(),
		ResourceName: jsii.String(calls),
	})
}
