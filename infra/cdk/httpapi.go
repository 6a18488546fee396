package cdk

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsapigatewayv2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslogs"
	"github.com/aws/jsii-runtime-go"
)

// HTTPAPIProps configures the HTTP API. The zero value of a field selects its default. With APIKindFunctionURL, all
// fields must be zero.
type HTTPAPIProps struct {
	// RateLimit is the limit of requests per second, and BurstLimit is the limit of requests in a burst. The API
	// rejects other requests with status 429. Default: 1,000 and 500, a tenth of the default quotas that all APIs of an
	// account share.
	RateLimit, BurstLimit int
	// AccessLogs enables access logs in a separate log group. Default: false.
	AccessLogs bool
	// JWT authorizes callers by a token in the header Authorization instead of IAM. Histories record the claim sub of
	// the token as requester. The grants of the hub for the HTTP API then have no effect.
	JWT *JWTAuthorizer
	// Authorizer is a Lambda function that authorizes callers instead of IAM. It receives the header Authorization in
	// payload format 2.0 and returns isAuthorized. Histories record the principalId in its context as requester.
	Authorizer awslambda.IFunction
	// Domain is the custom domain name of the API. Default: the endpoint of API Gateway.
	Domain *APIDomain
	// CORS allows web pages of other origins to call the API. Default: no other origin.
	CORS *CORS
}

// JWTAuthorizer configures the tokens that the API accepts. Both fields are required.
type JWTAuthorizer struct {
	// Issuer is the URL of the issuer of the tokens.
	Issuer string
	// Audience has the accepted audiences of the tokens.
	Audience []string
}

// APIDomain is a domain name with the ARN of its ACM certificate in the region of the API. Both fields are required.
// Point the DNS record of the domain to TaskHub.APIDomainTarget.
type APIDomain struct{ Name, CertificateARN string }

// CORS configures the access of web pages of other origins.
type CORS struct {
	// AllowOrigins has the allowed origins. It is required. If TaskHubProps.UI is set, origins with a * can only read.
	AllowOrigins []string
	// AllowHeaders has additional request headers. Authorization, Content-Type, Idempotency-Key and the headers of
	// signatures are always allowed.
	AllowHeaders []string
	// MaxAge is the time that a browser caches the CORS response. Default: no caching.
	MaxAge awscdk.Duration
}

// pageOrigins returns the origins that can make changes: the origins of CORS without a *.
func (p HTTPAPIProps) pageOrigins() string {
	if p.CORS == nil {
		return ""
	}
	return strings.Join(slices.DeleteFunc(slices.Clone(p.CORS.AllowOrigins), func(origin string) bool {
		return strings.Contains(origin, "*")
	}), ",")
}

const (
	authJWT    = "JWT"
	authCustom = "CUSTOM"
	authNone   = "NONE"
)

func (p HTTPAPIProps) validate(kind string, streams bool) error {
	switch {
	case kind == APIKindFunctionURL && p != (HTTPAPIProps{}):
		return errors.New("HTTPAPI: not supported with a function URL")
	case streams && !p.byIAM():
		return errors.New("StreamURL: not supported with JWT or Authorizer, because IAM authorizes a function URL")
	case p.JWT != nil && p.Authorizer != nil:
		return errors.New("HTTPAPI: JWT and Authorizer are mutually exclusive")
	case p.JWT != nil && (p.JWT.Issuer == "" || len(p.JWT.Audience) == 0):
		return errors.New("HTTPAPI: JWT requires Issuer and Audience")
	case p.Domain != nil && (p.Domain.Name == "" || p.Domain.CertificateARN == ""):
		return errors.New("HTTPAPI: Domain requires Name and CertificateARN")
	case p.CORS != nil && len(p.CORS.AllowOrigins) == 0:
		return errors.New("HTTPAPI: CORS requires AllowOrigins")
	}
	return nil
}

// authorization returns the authorizer for PERDURE_API_AUTHORIZATION. IAM authorizes a function URL.
func (p HTTPAPIProps) authorization() string {
	switch {
	case p.JWT != nil:
		return "jwt"
	case p.Authorizer != nil:
		return "lambda"
	default:
		return "iam"
	}
}

// byIAM reports whether IAM authorizes the callers of the API.
func (p HTTPAPIProps) byIAM() bool { return p.JWT == nil && p.Authorizer == nil }

func (h endpoints) addAuthorizer(api awsapigatewayv2.CfnApi, condition awscdk.CfnCondition) {
	h.api.authorization = authIAM
	props := &awsapigatewayv2.CfnAuthorizerProps{
		ApiId: api.Ref(), Name: h.name("authorizer"), IdentitySource: jsii.Strings("$request.header.Authorization"),
	}
	own := h.props.HTTPAPI
	switch {
	case own.JWT != nil:
		h.api.authorization = authJWT
		props.AuthorizerType = jsii.String(authJWT)
		props.JwtConfiguration = &awsapigatewayv2.CfnAuthorizer_JWTConfigurationProperty{
			Issuer: jsii.String(own.JWT.Issuer), Audience: jsii.Strings(own.JWT.Audience...),
		}
	case own.Authorizer != nil:
		h.api.authorization = authCustom
		props.AuthorizerType = jsii.String("REQUEST")
		props.AuthorizerPayloadFormatVersion = jsii.String("2.0")
		props.EnableSimpleResponses = true
		const uri = "arn:%s:apigateway:%s:lambda:path/2015-03-31/functions/%s/invocations"
		props.AuthorizerUri = jsii.String(fmt.Sprintf(uri,
			*h.stack.Partition(), *h.stack.Region(), *own.Authorizer.FunctionArn()))
	default:
		return
	}
	authorizer := awsapigatewayv2.NewCfnAuthorizer(h.Construct, jsii.String("Authorizer"), props)
	authorizer.CfnOptions().SetCondition(condition)
	h.api.authorizer = authorizer.Ref()
	if own.Authorizer != nil {
		permission := awslambda.NewCfnPermission(h.Construct, jsii.String("AuthorizerPermission"),
			&awslambda.CfnPermissionProps{
				Action:       jsii.String("lambda:InvokeFunction"),
				FunctionName: own.Authorizer.FunctionArn(),
				Principal:    jsii.String("apigateway.amazonaws.com"),
				SourceArn:    h.executeARN(api, "authorizers/"+*authorizer.Ref()),
			})
		permission.CfnOptions().SetCondition(condition)
	}
}

func (h endpoints) addDomain(
	api awsapigatewayv2.CfnApi, stage awsapigatewayv2.CfnStage, condition awscdk.CfnCondition,
) {
	own := h.props.HTTPAPI.Domain
	if own == nil {
		return
	}
	domain := awsapigatewayv2.NewCfnDomainName(h.Construct, jsii.String("Domain"), &awsapigatewayv2.CfnDomainNameProps{
		DomainName: jsii.String(own.Name),
		DomainNameConfigurations: []any{&awsapigatewayv2.CfnDomainName_DomainNameConfigurationProperty{
			CertificateArn: jsii.String(own.CertificateARN), EndpointType: jsii.String("REGIONAL"),
			SecurityPolicy: jsii.String("TLS_1_2"),
		}},
	})
	mapping := awsapigatewayv2.NewCfnApiMapping(h.Construct, jsii.String("DomainMapping"),
		&awsapigatewayv2.CfnApiMappingProps{
			ApiId: api.Ref(), DomainName: domain.Ref(), Stage: stage.Ref(),
		})
	domain.CfnOptions().SetCondition(condition)
	mapping.CfnOptions().SetCondition(condition)
	h.APIDomainTarget = *domain.AttrRegionalDomainName()
}

// Default limits of the API: a tenth of the default quotas that all APIs of an account share in a region. The quotas
// are 10,000 requests per second and a burst of 5,000 ("Amazon API Gateway quotas").
const (
	defaultRateLimit  = 1000
	defaultBurstLimit = 500
)

func (h endpoints) routeSettings() *awsapigatewayv2.CfnStage_RouteSettingsProperty {
	own := h.props.HTTPAPI
	return &awsapigatewayv2.CfnStage_RouteSettingsProperty{
		ThrottlingRateLimit:  jsii.Number(cmp.Or(own.RateLimit, defaultRateLimit)),
		ThrottlingBurstLimit: jsii.Number(cmp.Or(own.BurstLimit, defaultBurstLimit)),
	}
}

// accessLogFormat is the format of an access log, one line of JSON per request. It contains no data of the caller
// except the path.
const accessLogFormat = `{"requestId":"$context.requestId","time":"$context.requestTime",` +
	`"method":"$context.httpMethod",` +
	`"path":"$context.path","status":"$context.status","latency":"$context.responseLatency",` +
	`"ip":"$context.identity.sourceIp","caller":"$context.identity.userArn",` +
	`"sub":"$context.authorizer.claims.sub","error":"$context.error.message",` +
	`"integrationError":"$context.integrationErrorMessage"}`

func (h endpoints) accessLogs() any {
	if !h.props.HTTPAPI.AccessLogs {
		return nil
	}
	props := &awslogs.LogGroupProps{
		LogGroupName: jsii.String("/aws/apigateway/" + *h.name("api")), Retention: h.props.LogRetention,
		RemovalPolicy: h.props.LogRemovalPolicy,
	}
	if h.props.EncryptionKey != nil {
		props.EncryptionKey = h.props.EncryptionKey
	}
	logs := awslogs.NewLogGroup(h.Construct, jsii.String("AccessLogs"), props)
	return &awsapigatewayv2.CfnStage_AccessLogSettingsProperty{
		DestinationArn: logs.LogGroupArn(), Format: jsii.String(accessLogFormat),
	}
}

func (h endpoints) corsConfiguration() any {
	own := h.props.HTTPAPI.CORS
	if own == nil {
		return nil
	}
	headers := append([]string{
		"authorization", "content-type", "idempotency-key", "x-amz-date", "x-amz-security-token",
		"x-amz-content-sha256",
	}, own.AllowHeaders...)
	cors := &awsapigatewayv2.CfnApi_CorsProperty{
		AllowOrigins: jsii.Strings(own.AllowOrigins...), AllowHeaders: jsii.Strings(headers...),
		AllowMethods:  jsii.Strings("GET", "POST", "PUT", "DELETE"),
		ExposeHeaders: jsii.Strings("location", "retry-after"),
	}
	if own.MaxAge != nil {
		cors.MaxAge = own.MaxAge.ToSeconds(nil)
	}
	return cors
}

// addPreflight adds a route without authorization for CORS preflight requests. API Gateway responds to them.
func (h endpoints) addPreflight(api awsapigatewayv2.CfnApi, condition awscdk.CfnCondition, target *string) {
	route := awsapigatewayv2.NewCfnRoute(h.Construct, jsii.String("PreflightRoute"), &awsapigatewayv2.CfnRouteProps{
		ApiId: api.Ref(), RouteKey: jsii.String("OPTIONS /v1/{proxy+}"), AuthorizationType: jsii.String(authNone),
		Target: target,
	})
	route.CfnOptions().SetCondition(condition)
}
