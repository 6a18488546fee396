package lambdahandler

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/fakeprovider"
)

type (
	authorizerOf = events.APIGatewayV2HTTPRequestContextAuthorizerDescription
	iamOf        = events.APIGatewayV2HTTPRequestContextAuthorizerIAMDescription
	jwtOf        = events.APIGatewayV2HTTPRequestContextAuthorizerJWTDescription
)

// A caller that may invoke the function directly can send any event. Only identities that the gateway verifies count.
func TestCaller_isVerifiedByGateway(t *testing.T) {
	t.Parallel()
	byIAM := iamOf{UserARN: operator("kim")}
	byJWT := jwtOf{Claims: map[string]string{"sub": "kim"}}
	byLambda := map[string]any{"principalId": "kim"}
	for name, c := range map[string]struct {
		authorizer *authorizerOf
		want       map[authorization]string
	}{
		"missing":             {nil, nil},
		"IAM":                 {&authorizerOf{IAM: &byIAM}, map[authorization]string{authorizedByIAM: operator("kim")}},
		"a token":             {&authorizerOf{JWT: &byJWT}, map[authorization]string{authorizedByJWT: "kim"}},
		"a function":          {&authorizerOf{Lambda: byLambda}, map[authorization]string{authorizedByLambda: "kim"}},
		"a function, unnamed": {&authorizerOf{Lambda: map[string]any{"team": "x"}}, nil},
		"all at once": {&authorizerOf{IAM: &byIAM, JWT: &byJWT, Lambda: byLambda}, map[authorization]string{
			authorizedByIAM: operator("kim"), authorizedByJWT: "kim", authorizedByLambda: "kim",
		}},
	} {
		var e events.APIGatewayV2HTTPRequest
		e.RequestContext.Authorizer = c.authorizer
		for _, by := range []authorization{notAuthorized, authorizedByIAM, authorizedByJWT, authorizedByLambda} {
			if got := by.caller(&e); got != c.want[by] {
				t.Errorf("%s, authorized by %s: got %q, want %q", name, by, got, c.want[by])
			}
		}
	}
}

// An identity in an event is not recorded unless the deployment declares the kind of authorization that verifies it.
func TestAPI_inventedIdentity_isNotInHistory(t *testing.T) {
	t.Parallel()
	for by, want := range map[authorization]string{
		notAuthorized: "", authorizedByJWT: "", authorizedByIAM: operator("kim"),
	} {
		var got string
		h := httpHandler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			got = requesterOf(r.Context(), t)
		}), by)
		var e events.APIGatewayV2HTTPRequest
		e.RequestContext.Authorizer = &authorizerOf{IAM: &iamOf{UserARN: operator("kim")}}
		if _, err := h(t.Context(), e); err != nil {
			t.Fatal(err)
		}
		if got != want {
			t.Errorf("authorized by %s: got %q, want %q", by, got, want)
		}
	}
}

// requesterOf starts an instance, and returns the recorded requester of the start.
func requesterOf(ctx context.Context, t *testing.T) string {
	t.Helper()
	p := fakeprovider.New(time.Now, "hello")
	if _, err := client.New(p, client.WithCaller("")).Start(ctx, "hello", nil, client.WithInstanceID("a")); err != nil {
		t.Error(err)
	}
	in, err := p.ReadInstance(ctx, "a")
	if err != nil {
		t.Error(err)
	}
	return in.RequestedBy
}

func TestAPI_unknownAuthorization_isAnError(t *testing.T) {
	t.Parallel()
	_, err := NewAPI(t.Context(), WithEnvironment(func(name string) string {
		if name == apiAuthorization {
			return "cognito"
		}
		return ""
	}))
	if err == nil ||
		!strings.Contains(
			err.Error(), `PERDURE_API_AUTHORIZATION has the invalid value "cognito"; use iam, jwt, lambda or none`,
		) {
		t.Error(err)
	}
}

// With the environment of an earlier release, the API serves every call and warns that it records no caller.
func TestNewAPI_withoutAuthorization_warnsThatCallersAreNotRecorded(t *testing.T) {
	t.Parallel()
	const warning = "callers are not recorded: PERDURE_API_AUTHORIZATION is not set"
	for _, by := range []string{"", "none", "iam", "jwt", "lambda"} {
		var log bytes.Buffer
		logger := slog.New(slog.NewTextHandler(&log, nil))
		_, err := NewAPI(t.Context(), WithLogger(logger), WithEnvironment(func(name string) string {
			if name == apiAuthorization {
				return by
			}
			return apiEnvironment(name)
		}))
		if err != nil || strings.Contains(log.String(), warning) != (by == "") {
			t.Errorf("%q: got error %v, log %q", by, err, log.String())
		}
	}
}
