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

// HTTPAPIProps is how the HTTP API is called. The zero value of each field is its
// default. With APIKindFunctionURL all must be zero.
type HTTPAPIProps struct {
	// RateLimit is how many requests a second the API takes, and BurstLimit how many at once. The API responds to more
	// with 429. Default: 1,000 and 500, a tenth of the account's default quotas, which all of its APIs share.
	RateLimit, BurstLimit int
	// AccessLogs writes a line for each request to a log group of its own.
	AccessLogs bool
	// JWT authorises callers by a token in the header Authorization, instead of IAM. The
	// token's sub is who did it, in history. The grants of a hub are of no use then.
	JWT *JWTAuthorizer
	// Authorizer is a function that authorises callers, instead of IAM: it is given payload
	// format 2.0 with the header Authorization, and answers isAuthorized. The principalId of its
	// context is who did it.
	Authorizer awslambda.IFunction
	// Domain is where the API answers. Default: the endpoint that API Gateway makes.
	Domain *APIDomain
	// CORS lets pages of other origins call the API. Default: none may.
	CORS *CORS
}

// JWTAuthorizer is who issues the tokens that the API accepts, and for whom.
type JWTAuthorizer struct {
	Issuer   string
	Audience []string
}

// APIDomain is a domain name with its certificate of ACM, in the API's region. Point its
// record at TaskHub.APIDomainTarget.
type APIDomain struct{ Name, CertificateARN string }

// CORS is what pages of other origins may do.
type CORS struct {
	// AllowOrigins are the origins. With UI, pages of those that have a * may read, but change nothing.
	AllowOrigins []string
	// AllowHeaders beside Authorization, Content-Type and Idempotency-Key, and those of signatures.
	AllowHeaders []string
	// MaxAge is how long a browser keeps the answer. Default: not at all.
	MaxAge awscdk.Duration
}

// pageOrigins are the origins which may change something beside the page of the API: those that CORS names.
func (p HTTPAPIProps) pageOrigins() string {
	if p.CORS == nil {
		return ""
	}
	return strings.Join(slices.DeleteFunc(slices.Clone(p.CORS.AllowOrigins), func(origin string) bool { return strings.Contains(origin, "*") }), ",")
}

const (
	authJWT    = "JWT"
	authCustom = "CUSTOM"
	authNone   = "NONE"
)

func (p HTTPAPIProps) validate(kind string) error {
	switch {
	case kind == APIKindFunctionURL && p != (HTTPAPIProps{}):
		return errors.New("field HTTPAPI: a function URL has none of it")
	case p.JWT != nil && p.Authorizer != nil:
		return errors.New("field HTTPAPI: there are both JWT and Authorizer")
	case p.JWT != nil && (p.JWT.Issuer == "" || len(p.JWT.Audience) == 0):
		return errors.New("field HTTPAPI: JWT needs Issuer and Audience")
	case p.Domain != nil && (p.Domain.Name == "" || p.Domain.CertificateARN == ""):
		return errors.New("field HTTPAPI: Domain needs Name and CertificateARN")
	case p.CORS != nil && len(p.CORS.AllowOrigins) == 0:
		return errors.New("field HTTPAPI: CORS needs AllowOrigins")
	}
	return nil
}

// authorization is what the API's function believes an event of its caller. A function URL is authorized by IAM.
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

// byIAM says whether callers of the API are authorised by IAM.
func (p HTTPAPIProps) byIAM() bool { return p.JWT == nil && p.Authorizer == nil }

func (h doors) addAuthorizer(api awsapigatewayv2.CfnApi, condition awscdk.CfnCondition) {
	h.api.authorization = authIAM
	props := &awsapigatewayv2.CfnAuthorizerProps{ApiId: api.Ref(), Name: h.name("authorizer"), IdentitySource: jsii.Strings("$request.header.Authorization")}
	own := h.props.HTTPAPI
	switch {
	case own.JWT != nil:
		h.api.authorization = authJWT
		props.AuthorizerType = jsii.String(authJWT)
		props.JwtConfiguration = &awsapigatewayv2.CfnAuthorizer_JWTConfigurationProperty{Issuer: jsii.String(own.JWT.Issuer), Audience: jsii.Strings(own.JWT.Audience...)}
	case own.Authorizer != nil:
		h.api.authorization = authCustom
		props.AuthorizerType = jsii.String("REQUEST")
		props.AuthorizerPayloadFormatVersion = jsii.String("2.0")
		props.EnableSimpleResponses = true
		props.AuthorizerUri = jsii.String(fmt.Sprintf("arn:%s:apigateway:%s:lambda:path/2015-03-31/functions/%s/invocations",
			*h.stack.Partition(), *h.stack.Region(), *own.Authorizer.FunctionArn()))
	default:
		return
	}
	authorizer := awsapigatewayv2.NewCfnAuthorizer(h.Construct, jsii.String("Authorizer"), props)
	authorizer.CfnOptions().SetCondition(condition)
	h.api.authorizer = authorizer.Ref()
	if own.Authorizer != nil {
		permission := awslambda.NewCfnPermission(h.Construct, jsii.String("AuthorizerPermission"), &awslambda.CfnPermissionProps{
			Action:       jsii.String("lambda:InvokeFunction"),
			FunctionName: own.Authorizer.FunctionArn(),
			Principal:    jsii.String("apigateway.amazonaws.com"),
			SourceArn:    h.executeARN(api, "authorizers/"+*authorizer.Ref()),
		})
		permission.CfnOptions().SetCondition(condition)
	}
}

func (h doors) addDomain(api awsapigatewayv2.CfnApi, stage awsapigatewayv2.CfnStage, condition awscdk.CfnCondition) {
	own := h.props.HTTPAPI.Domain
	if own == nil {
		return
	}
	domain := awsapigatewayv2.NewCfnDomainName(h.Construct, jsii.String("Domain"), &awsapigatewayv2.CfnDomainNameProps{
		DomainName: jsii.String(own.Name),
		DomainNameConfigurations: []any{&awsapigatewayv2.CfnDomainName_DomainNameConfigurationProperty{
			CertificateArn: jsii.String(own.CertificateARN), EndpointType: jsii.String("REGIONAL"), SecurityPolicy: jsii.String("TLS_1_2"),
		}},
	})
	mapping := awsapigatewayv2.NewCfnApiMapping(h.Construct, jsii.String("DomainMapping"), &awsapigatewayv2.CfnApiMappingProps{
		ApiId: api.Ref(), DomainName: domain.Ref(), Stage: stage.Ref(),
	})
	domain.CfnOptions().SetCondition(condition)
	mapping.CfnOptions().SetCondition(condition)
	h.APIDomainTarget = *domain.AttrRegionalDomainName()
}

// The default limits of the API: a tenth of the default quotas that all APIs of an account share in a region, 10,000
// requests a second and a burst of 5,000 ("Amazon API Gateway quotas").
const (
	defaultRateLimit  = 1000
	defaultBurstLimit = 500
)

func (h doors) routeSettings() *awsapigatewayv2.CfnStage_RouteSettingsProperty {
	own := h.props.HTTPAPI
	return &awsapigatewayv2.CfnStage_RouteSettingsProperty{
		ThrottlingRateLimit:  jsii.Number(cmp.Or(own.RateLimit, defaultRateLimit)),
		ThrottlingBurstLimit: jsii.Number(cmp.Or(own.BurstLimit, defaultBurstLimit)),
	}
}

// accessLogFormat has a request in one line of JSON, and nothing that callers send but the path.
const accessLogFormat = `{"requestId":"$context.requestId","time":"$context.requestTime","method":"$context.httpMethod","path":"$context.path",` +
	`"status":"$context.status","latency":"$context.responseLatency","ip":"$context.identity.sourceIp","caller":"$context.identity.userArn",` +
	`"sub":"$context.authorizer.claims.sub","error":"$context.error.message","integrationError":"$context.integrationErrorMessage"}`

func (h doors) accessLogs() any {
	if !h.props.HTTPAPI.AccessLogs {
		return nil
	}
	props := &awslogs.LogGroupProps{
		LogGroupName: jsii.String("/aws/apigateway/" + *h.name("api")), Retention: h.props.LogRetention, RemovalPolicy: h.props.LogRemovalPolicy,
	}
	if h.props.EncryptionKey != nil {
		props.EncryptionKey = h.props.EncryptionKey
	}
	logs := awslogs.NewLogGroup(h.Construct, jsii.String("AccessLogs"), props)
	return &awsapigatewayv2.CfnStage_AccessLogSettingsProperty{DestinationArn: logs.LogGroupArn(), Format: jsii.String(accessLogFormat)}
}

func (h doors) corsConfiguration() any {
	own := h.props.HTTPAPI.CORS
	if own == nil {
		return nil
	}
	headers := append([]string{"authorization", "content-type", "idempotency-key", "x-amz-date", "x-amz-security-token", "x-amz-content-sha256"}, own.AllowHeaders...)
	cors := &awsapigatewayv2.CfnApi_CorsProperty{
		AllowOrigins: jsii.Strings(own.AllowOrigins...), AllowHeaders: jsii.Strings(headers...), AllowMethods: jsii.Strings("GET", "POST", "PUT", "DELETE"),
		ExposeHeaders: jsii.Strings("location", "retry-after"),
	}
	if own.MaxAge != nil {
		cors.MaxAge = own.MaxAge.ToSeconds(nil)
	}
	return cors
}

// addPreflight is the route of the requests by which browsers ask what they may: those are never authorised. API Gateway
// answers them itself.
func (h doors) addPreflight(api awsapigatewayv2.CfnApi, condition awscdk.CfnCondition, target *string) {
	route := awsapigatewayv2.NewCfnRoute(h.Construct, jsii.String("PreflightRoute"), &awsapigatewayv2.CfnRouteProps{
		ApiId: api.Ref(), RouteKey: jsii.String("OPTIONS /v1/{proxy+}"), AuthorizationType: jsii.String(authNone), Target: target,
	})
	route.CfnOptions().SetCondition(condition)
}
