package queryinvoke

import (
	"context"
	"errors"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"

	"github.com/perdure/perdure/provider"
)

// responding is a Lambda function with a fixed response.
type responding lambda.InvokeOutput

func (r *responding) Invoke(
	context.Context, *lambda.InvokeInput, ...func(*lambda.Options),
) (*lambda.InvokeOutput, error) {
	return (*lambda.InvokeOutput)(r), nil
}

// FuzzQueryInstance checks that any response of the orchestrator function is a result or a typed error.
func FuzzQueryInstance(f *testing.F) {
	for _, payload := range []string{
		`{"answer":{"a":1}}`, `{"error":{"code":"not_found","message":"m"}}`, `{"error":{"code":"unavailable"}}`,
		`{"batchItemFailures":[]}`, `{"errorType":"Sandbox.Timedout","errorMessage":"Task timed out"}`, ``, `null`,
		`{"answer":null,"error":null}`,
	} {
		f.Add([]byte(payload), false)
		f.Add([]byte(payload), true)
	}
	f.Fuzz(func(t *testing.T, payload []byte, failed bool) {
		out := responding{Payload: payload}
		if failed {
			out.FunctionError = aws.String("Unhandled")
		}
		doc, err := New(&out, "h", "f").QueryInstance(t.Context(), provider.QueryRequest{InstanceID: "a", Name: "q"})
		_, isQueryError := errors.AsType[*provider.QueryError](err)
		_, isError := errors.AsType[*provider.Error](err)
		typed := isQueryError || isError || errors.Is(err, provider.ErrNotFound) || errors.Is(err, provider.ErrCorrupt)
		if (err == nil) != (doc != nil) || err != nil && !typed || failed && !isQueryError {
			t.Errorf("%q, failed %v: %s, %v", payload, failed, doc, err)
		}
	})
}
