package dynamo_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"

	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo"
)

// function returns its responses to invocations in order. The last response is repeated.
type function struct {
	requested []*lambda.InvokeInput
	results   []func() (*lambda.InvokeOutput, error)
}

func (f *function) Invoke(
	ctx context.Context, in *lambda.InvokeInput, _ ...func(*lambda.Options),
) (*lambda.InvokeOutput, error) {
	f.requested = append(f.requested, in)
	result := f.results[0]
	if len(f.results) > 1 {
		f.results = f.results[1:]
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return result()
}

func respondWith(payload string) func() (*lambda.InvokeOutput, error) {
	return func() (*lambda.InvokeOutput, error) { return &lambda.InvokeOutput{Payload: []byte(payload)}, nil }
}

func failing(err error) func() (*lambda.InvokeOutput, error) {
	return func() (*lambda.InvokeOutput, error) { return nil, err }
}

func crashing(payload string) func() (*lambda.InvokeOutput, error) {
	return func() (*lambda.InvokeOutput, error) {
		return &lambda.InvokeOutput{Payload: []byte(payload), FunctionError: aws.String("Unhandled")}, nil
	}
}

func querier(t *testing.T, f *function) *dynamo.Provider {
	t.Helper()
	p, err := dynamo.New(dynamo.HubConfig{Name: "h", Table: "t", InboxURL: "i", Orchestrator: "arn:orchestrator:live"},
		dynamo.Clients{Functions: f})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

var question = provider.QueryRequest{InstanceID: "order-7", Name: "progress", Input: json.RawMessage(`{"n":1}`)}

// A query invokes the function synchronously through its alias. A throttled invocation is retried.
func TestQueryInstance_throttledOnce_invokesTheOrchestratorAgain(t *testing.T) {
	t.Parallel()
	f := &function{
		results: []func() (*lambda.InvokeOutput, error){
			failing(&types.TooManyRequestsException{}), respondWith(`{"answer":{"done":3}}`),
		},
	}
	result, err := querier(t, f).QueryInstance(t.Context(), question)
	if err != nil || string(result) != `{"done":3}` || len(f.requested) != 2 {
		t.Fatalf("%s, %v, after %d calls", result, err, len(f.requested))
	}
	in := f.requested[1]
	if *in.FunctionName != "arn:orchestrator:live" || in.InvocationType != types.InvocationTypeRequestResponse {
		t.Errorf("invoked function %s with type %s", *in.FunctionName, in.InvocationType)
	}
	if want := `{"perdureQuery":{"instanceId":"order-7","name":"progress","input":{"n":1}}}`; string(in.Payload) != want {
		t.Errorf("sent payload %s", in.Payload)
	}
}

// Each failure of the function is a typed error. The result null is valid.
func TestQueryInstance_functionFails_returnsTypedError(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		result    func() (*lambda.InvokeOutput, error)
		is        error
		code      provider.QueryCode
		retryable bool
	}{
		"of the handler": {
			result: respondWith(
				`{"error":{"instanceId":"order-7","query":"progress","code":"unknown_query","message":"m","known":["a"]}}`,
			),
			code: provider.QueryHandlerNotFound,
		},
		"no such instance": {result: respondWith(`{"error":{"code":"not_found"}}`), is: provider.ErrNotFound},
		"damaged": {
			result: respondWith(`{"error":{"code":"corrupt","message":"h#3"}}`), is: provider.ErrCorrupt,
		},
		"the store is away": {result: respondWith(`{"error":{"code":"unavailable"}}`), retryable: true},
		"a release before":  {result: respondWith(`{"batchItemFailures":[]}`), code: provider.QueryUnsupported},
		"no function": {
			result: failing(&types.ResourceNotFoundException{}), is: provider.ErrQueriesUnsupported,
		},
		"the function has ended": {
			result: crashing(
				`{"errorType":"Sandbox.Timedout","errorMessage":"RequestId: 1 Error: Task timed out after 30.00 seconds"}`,
			),
			code: provider.QueryTimedOut,
		},
		"the process dies": {
			result: crashing(`{"errorType":"Runtime.ExitError","errorMessage":"exit status 2"}`),
			code:   provider.QueryFunctionFailed,
		},
		"throttled throughout": {result: failing(&types.TooManyRequestsException{}), retryable: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := querier(t,
				&function{results: []func() (*lambda.InvokeOutput, error){c.result}}).QueryInstance(t.Context(),
				question)
			reported, _ := errors.AsType[*provider.QueryError](err)
			failed, _ := errors.AsType[*provider.Error](err)
			switch {
			case c.is != nil && !errors.Is(err, c.is), c.code != "" && (reported == nil || reported.Code != c.code),
				c.retryable && (failed == nil || !failed.Retryable), err == nil:
				t.Errorf("%T %v", err, err)
			}
		})
	}
	if result, err := querier(t,
		&function{results: []func() (
			*lambda.InvokeOutput, error,
		){respondWith(`{"answer":null}`)}}).QueryInstance(t.Context(), question); err != nil ||
		string(result) != "null" {
		t.Errorf("null: %s, %v", result, err)
	}
	over, stop := context.WithTimeout(t.Context(), 0)
	defer stop()
	_, err := querier(t,
		&function{results: []func() (*lambda.InvokeOutput, error){respondWith(`{"answer":1}`)}}).QueryInstance(over,
		question)
	if reported, ok := errors.AsType[*provider.QueryError](err); !ok || reported.Code != provider.QueryTimedOut ||
		!errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("with an expired context: %v", err)
	}
	p, err := dynamo.New(dynamo.HubConfig{Name: "h", Table: "t", InboxURL: "i"}, dynamo.Clients{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.QueryInstance(t.Context(), question); !errors.Is(err, provider.ErrQueriesUnsupported) {
		t.Errorf("a hub without an orchestrator function: %v", err)
	}
}
