package meter

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// AddTo makes the meter count the calls of clients that are created from the configuration afterwards.
func (m *Meter) AddTo(cfg *aws.Config) { cfg.APIOptions = append(cfg.APIOptions, m.add) }

// add puts the meter into a client's stack: the question for capacity in front of everything, the count inside the retries.
func (m *Meter) add(stack *middleware.Stack) error {
	if err := stack.Initialize.Add(middleware.InitializeMiddlewareFunc("perdure.MeterAsk", ask), middleware.Before); err != nil {
		return err //nolint:wrapcheck // the SDK names the client and the call
	}
	return stack.Finalize.Insert(middleware.FinalizeMiddlewareFunc("perdure.MeterCount", m.count), "Retry", middleware.After) //nolint:wrapcheck // as above
}

type inputKey struct{}

// ask has AWS say what a call consumes, and keeps the input for count. The caller's input stays as it is.
func ask(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
	in.Parameters = asking(in.Parameters)
	return next.HandleInitialize(middleware.WithStackValue(ctx, inputKey{}, in.Parameters), in) //nolint:wrapcheck // the client's own error
}

func (m *Meter) count(ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler) (middleware.FinalizeOutput, middleware.Metadata, error) {
	out, metadata, err := next.HandleFinalize(ctx, in)
	m.Observe(middleware.GetStackValue(ctx, inputKey{}), out.Result, err, sentBytes(in.Request), receivedBytes(metadata))
	return out, metadata, err //nolint:wrapcheck // the client's own error
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
