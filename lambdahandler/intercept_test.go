package lambdahandler

import (
	"context"
	"encoding/json"
	"log/slog"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/perdure/perdure"
)

func TestNewAPI_interceptors_areCalled(t *testing.T) {
	t.Parallel()
	var calls []perdure.ClientCall
	recording := perdure.Interceptor{ClientCall: func(
		ctx context.Context, c perdure.ClientCall, next func(context.Context) error,
	) {
		calls = append(calls, c)
		ctx, stop := context.WithCancel(ctx)
		stop() // the table does not exist
		_ = next(ctx)
	}}
	f, err := NewAPI(
		t.Context(), WithEnvironment(apiEnvironment), WithLogger(
			slog.New(slog.DiscardHandler),
		), WithInterceptors(recording),
	)
	if err != nil {
		t.Fatal(err)
	}
	request := events.APIGatewayV2HTTPRequest{
		RawPath: "/v1/instances/order-7", PathParameters: map[string]string{"proxy": "instances/order-7"},
	}
	request.RequestContext.HTTP.Method = "DELETE"
	payload, err := json.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Handler().Invoke(t.Context(), payload); err != nil {
		t.Fatal(err)
	}
	if len(calls) != 1 || calls[0] != (perdure.ClientCall{Operation: "Purge", InstanceID: "order-7"}) {
		t.Errorf("got calls %+v", calls)
	}
}
