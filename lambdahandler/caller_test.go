package lambdahandler

import (
	"testing"

	"github.com/aws/aws-lambda-go/events"
)

// Whoever authorises a call, the caller is whom the gateway has verified.
func TestTheCallerIsWhomTheGatewayNames(t *testing.T) {
	t.Parallel()
	type description = events.APIGatewayV2HTTPRequestContextAuthorizerDescription
	for name, c := range map[string]struct {
		authorizer *description
		want       string
	}{
		"nobody":              {nil, ""},
		"IAM":                 {&description{IAM: &events.APIGatewayV2HTTPRequestContextAuthorizerIAMDescription{UserARN: operator("kim")}}, operator("kim")},
		"a token":             {&description{JWT: &events.APIGatewayV2HTTPRequestContextAuthorizerJWTDescription{Claims: map[string]string{"sub": "kim"}}}, "kim"},
		"a function":          {&description{Lambda: map[string]any{"principalId": "kim"}}, "kim"},
		"a function, unnamed": {&description{Lambda: map[string]any{"team": "x"}}, ""},
	} {
		var e events.APIGatewayV2HTTPRequest
		e.RequestContext.Authorizer = c.authorizer
		if got := callerOf(&e); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
