package selftest

import (
	"maps"

	"github.com/perdure/perdure/cmd/perdure/internal/selftest/probes"
)

// gatewayResources returns an HTTP API or function URLs of the probe functions, like those of a hub.
func gatewayResources() map[string]any {
	const kind, requests = "AWS::ApiGatewayV2::", 20 // in a second
	all := map[string]any{
		probeAPI: resource(kind+"Api", properties{
			keyName: sub("perdure-${HubName}-selftest"), "ProtocolType": "HTTP",
			"CorsConfiguration": properties{
				"AllowOrigins": []string{probes.AllowedOrigin}, "AllowMethods": []string{"GET", "POST"},
				"AllowHeaders": []string{"authorization"},
			},
		}),
		"SelfTestIntegration": resource(kind+"Integration", properties{
			keyAPI: ref(probeAPI), "IntegrationType": "AWS_PROXY", "IntegrationUri": arn(probeCalled),
			"PayloadFormatVersion": "2.0",
		}),
		"SelfTestApiPermission": resource("AWS::Lambda::Permission", properties{
			keyAction: actionInvoke, keyFunction: ref(probeCalled),
			keyPrincipal: "apigateway.amazonaws.com",
			"SourceArn": sub(
				"arn:${AWS::Partition}:execute-api:${AWS::Region}:${AWS::AccountId}:${" + probeAPI + "}/*",
			),
		}),
	}
	// API Gateway processes one change of an API at a time, and deploys a stage with the routes that exist.
	before := "SelfTestIntegration"
	add := func(id string, r properties) {
		r["DependsOn"] = before
		all[id], before = r, id
	}
	for _, r := range []struct{ id, key, authorization string }{
		{"SelfTestAllRoute", probes.RouteOfAll, authIAM},
		{"SelfTestOneRoute", probes.RouteOfOne, authIAM},
		{"SelfTestPreflightRoute", probes.PreflightRoute, "NONE"},
	} {
		add(r.id, resource(kind+"Route", properties{
			keyAPI: ref(probeAPI), "RouteKey": r.key, "AuthorizationType": r.authorization,
			"Target": sub("integrations/${SelfTestIntegration}"),
		}))
	}
	add("SelfTestApiStage", resource(kind+"Stage", properties{
		keyAPI: ref(probeAPI), "StageName": "$default", "AutoDeploy": true,
		"DefaultRouteSettings": properties{"ThrottlingRateLimit": requests, "ThrottlingBurstLimit": requests},
	}))
	onlyIf(conditionAPI, all)
	maps.Copy(all, urlResources())
	return all
}

// urlResources returns function URLs of the probe functions, and roles of callers.
func urlResources() map[string]any {
	url := func(function string) properties {
		return properties{"TargetFunctionArn": arn(function), "AuthType": authIAM}
	}
	stream := url(probeStreaming)
	stream["InvokeMode"] = "RESPONSE_STREAM"
	all := callerResources()
	all[probeURL] = resource("AWS::Lambda::Url", url(probeCalled))
	all[probeStreamURL] = resource("AWS::Lambda::Url", stream)
	onlyIf(conditionURL, all)
	return all
}

// onlyIf gives resources a condition.
func onlyIf(condition string, all map[string]any) {
	for _, r := range all {
		conditional, _ := r.(properties)
		conditional[keyCondition] = condition
	}
}

// callerResources returns a role with both permissions for the function URL, as in GrantAPI, and one with the first of
// them and a permission for another function.
func callerResources() map[string]any {
	call := allow(arn(probeCalled), "lambda:InvokeFunctionUrl")
	call[keyCondition] = properties{"StringEquals": properties{"lambda:FunctionUrlAuthType": authIAM}}
	invoke := allow(arn(probeCalled), actionInvoke)
	invoke[keyCondition] = properties{"Bool": properties{"lambda:InvokedViaFunctionUrl": "true"}}
	return map[string]any{
		probeCaller:        role(ofAccount(), call, invoke),
		probePartialCaller: role(ofAccount(), call, allow(arn(probeFunction), actionInvoke)),
	}
}
