package meter

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// AddTo makes the meter count the calls of clients that are created from the configuration afterwards.
func (m *Meter) AddTo(cfg *aws.Config) { cfg.APIOptions = append(cfg.APIOptions, m.addMiddleware) }

// addMiddleware adds the meter to the middleware of a client. It requests the capacity before all other middleware, and
// counts each retry.
func (m *Meter) addMiddleware(stack *middleware.Stack) error {
	request := middleware.InitializeMiddlewareFunc("perdure.MeterAsk", requestCapacity)
	if err := stack.Initialize.Add(request, middleware.Before); err != nil {
		return err
	}
	count := middleware.FinalizeMiddlewareFunc("perdure.MeterCount", m.count)
	return stack.Finalize.Insert(count, "Retry", middleware.After)
}

type inputKey struct{}

// requestCapacity requests the consumed capacity of a call, and stores the input for count. It does not change the
// caller's input.
func requestCapacity(
	ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler,
) (middleware.InitializeOutput, middleware.Metadata, error) {
	in.Parameters = withCapacity(in.Parameters)
	ctx = middleware.WithStackValue(ctx, inputKey{}, in.Parameters)
	return next.HandleInitialize(ctx, in)
}

func (m *Meter) count(
	ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler,
) (middleware.FinalizeOutput, middleware.Metadata, error) {
	out, metadata, err := next.HandleFinalize(ctx, in)
	input := middleware.GetStackValue(ctx, inputKey{})
	m.Observe(input, out.Result, err, sentBytes(in.Request), receivedBytes(metadata))
	return out, metadata, err
}

func sentBytes(request any) int64 {
	r, ok := request.(*smithyhttp.Request)
	if !ok {
		return 0
	}
	n, known, err := r.StreamLength()
	if err != nil || !known {
		return 0
	}
	return n
}

func receivedBytes(metadata middleware.Metadata) int64 {
	r, ok := awsmiddleware.GetRawResponse(metadata).(*smithyhttp.Response)
	if !ok || r == nil {
		return 0
	}
	return max(0, r.ContentLength)
}
