package lambdahandler

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
)

// apiEnvironment returns the environment of the API function.
func apiEnvironment(name string) string {
	return map[string]string{
		"AWS_LAMBDA_RUNTIME_API": "127.0.0.1:9001", "PERDURE_HUB": "shop", "PERDURE_TABLE": "shop",
		"PERDURE_INBOX_URL":  "https://sqs/inbox.fifo",
		"PERDURE_TIMERS_URL": "https://sqs/timers", "GOGC": "100", "GOMEMLIMIT": "off",
	}[name]
}

// The first wrapper is the outermost one.
func TestWithMiddleware_wrapsHandler(t *testing.T) {
	t.Parallel()
	var calls []string
	recording := func(name string) func(lambda.Handler) lambda.Handler {
		return func(next lambda.Handler) lambda.Handler {
			return invoked(func(ctx context.Context, payload []byte) ([]byte, error) {
				calls = append(calls, name)
				return next.Invoke(ctx, payload)
			})
		}
	}
	f, err := NewAPI(
		t.Context(), WithEnvironment(apiEnvironment), WithLogger(slog.New(slog.DiscardHandler)), WithMiddleware(
			recording("traces"), recording("counts"),
		),
	)
	if err != nil {
		t.Fatal(err)
	}
	request := events.APIGatewayV2HTTPRequest{RawPath: "/nowhere"}
	request.RequestContext.HTTP.Method = "GET"
	payload, err := json.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	result, err := f.Handler().Invoke(t.Context(), payload)
	var got events.APIGatewayV2HTTPResponse
	if err == nil {
		err = json.Unmarshal(result, &got)
	}
	if err != nil || got.StatusCode != http.StatusNotFound || !slices.Equal(calls, []string{"traces", "counts"}) {
		t.Errorf("got status %d %s, error %v, calls %v", got.StatusCode, got.Body, err, calls)
	}
}

// invoked is a function that implements lambda.Handler.
type invoked func(ctx context.Context, payload []byte) ([]byte, error)

func (i invoked) Invoke(ctx context.Context, payload []byte) ([]byte, error) { return i(ctx, payload) }

// The error of each function names all invalid variables, before any call.
func TestNew_invalidEnvironment_errorNamesAllVariables(t *testing.T) {
	t.Parallel()
	wrong := WithEnvironment(func(name string) string {
		return map[string]string{
			"AWS_LAMBDA_RUNTIME_API": "127.0.0.1:9001", "PERDURE_MAX_ATTEMPTS": "none",
			"PERDURE_INLINE_TIMEOUT": "long", "GOGC": "100", "GOMEMLIMIT": "off",
		}[name]
	})
	for name, f := range map[string]func() (*Function, error){
		"orchestrator": func() (*Function, error) { return NewOrchestrator(t.Context(), greetings(), wrong) },
		"worker":       func() (*Function, error) { return NewWorker(t.Context(), greetings(), wrong) },
		"renewer":      func() (*Function, error) { return NewRenewer(t.Context(), wrong) },
		"api":          func() (*Function, error) { return NewAPI(t.Context(), wrong) },
	} {
		_, err := f()
		if err == nil || !strings.Contains(err.Error(), "PERDURE_HUB") ||
			!strings.Contains(err.Error(), "PERDURE_TABLE") {
			t.Errorf("%s: got error %v", name, err)
		}
		if attempts := name == "orchestrator" || name == "worker"; err != nil &&
			strings.Contains(err.Error(), "PERDURE_MAX_ATTEMPTS") != attempts {
			t.Errorf("%s: got error %v", name, err)
		}
		if inline := name == "orchestrator"; err != nil &&
			strings.Contains(err.Error(), "PERDURE_INLINE_TIMEOUT") != inline {
			t.Errorf("%s: got error %v", name, err)
		}
	}
}
