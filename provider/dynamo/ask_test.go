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

// function returns its answers to invocations in order. The last answer is repeated.
type function struct {
	asked   []*lambda.InvokeInput
	answers []func() (*lambda.InvokeOutput, error)
}

func (f *function) Invoke(
	ctx context.Context, in *lambda.InvokeInput, _ ...func(*lambda.Options),
) (*lambda.InvokeOutput, error) {
	f.asked = append(f.asked, in)
	answer := f.answers[0]
	if len(f.answers) > 1 {
		f.answers = f.answers[1:]
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return answer()
}

func answering(payload string) func() (*lambda.InvokeOutput, error) {
	return func() (*lambda.InvokeOutput, error) { return &lambda.InvokeOutput{Payload: []byte(payload)}, nil }
}

func failing(err error) func() (*lambda.InvokeOutput, error) {
	return func() (*lambda.InvokeOutput, error) { return nil, err }
}

func dying(payload string) func() (*lambda.InvokeOutput, error) {
	return func() (*lambda.InvokeOutput, error) {
		return &lambda.InvokeOutput{Payload: []byte(payload), FunctionError: aws.String("Unhandled")}, nil
	}
}

func asker(t *testing.T, f *function) *dynamo.Provider {
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
		answers: []func() (*lambda.InvokeOutput, error){
			failing(&types.TooManyRequestsException{}), answering(`{"answer":{"done":3}}`),
		},
	}
	answer, err := asker(t, f).QueryInstance(t.Context(), question)
	if err != nil || string(answer) != `{"done":3}` || len(f.asked) != 2 {
		t.Fatalf("%s, %v, after %d calls", answer, err, len(f.asked))
	}
	in := f.asked[1]
	if *in.FunctionName != "arn:orchestrator:live" || in.InvocationType != types.InvocationTypeRequestResponse {
		t.Errorf("invoked function %s with type %s", *in.FunctionName, in.InvocationType)
	}
	if want := `{"perdureQuery":{"instanceId":"order-7","name":"progress","input":{"n":1}}}`; string(in.Payload) != want {
		t.Errorf("sent payload %s", in.Payload)
	}
}

// Each failure of the function is a typed error. The answer null is valid.
func TestQueryInstance_functionFails_returnsTypedError(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer    func() (*lambda.InvokeOutput, error)
		is        error
		code      provider.QueryCode
		retryable bool
	}{
		"of the handler": {
			answer: answering(
				`{"error":{"instanceId":"order-7","query":"progress","code":"unknown_query","message":"m","known":["a"]}}`,
			),
			code: provider.QueryHandlerNotFound,
		},
		"no such instance": {answer: answering(`{"error":{"code":"not_found"}}`), is: provider.ErrNotFound},
		"damaged": {
			answer: answering(`{"error":{"code":"corrupt","message":"h#3"}}`), is: provider.ErrCorrupt,
		},
		"the store is away": {answer: answering(`{"error":{"code":"unavailable"}}`), retryable: true},
		"a release before":  {answer: answering(`{"batchItemFailures":[]}`), code: provider.QueryUnsupported},
		"no function": {
			answer: failing(&types.ResourceNotFoundException{}), is: provider.ErrQueriesUnsupported,
		},
		"the function is over": {
			answer: dying(
				`{"errorType":"Sandbox.Timedout","errorMessage":"RequestId: 1 Error: Task timed out after 30.00 seconds"}`,
			),
			code: provider.QueryTimedOut,
		},
		"the process dies": {
			answer: dying(`{"errorType":"Runtime.ExitError","errorMessage":"exit status 2"}`),
			code:   provider.QueryFunctionFailed,
		},
		"throttled throughout": {answer: failing(&types.TooManyRequestsException{}), retryable: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := asker(t,
				&function{answers: []func() (*lambda.InvokeOutput, error){c.answer}}).QueryInstance(t.Context(),
				question)
			told, _ := errors.AsType[*provider.QueryError](err)
			failed, _ := errors.AsType[*provider.Error](err)
			switch {
			case c.is != nil && !errors.Is(err, c.is), c.code != "" && (told == nil || told.Code != c.code),
				c.retryable && (failed == nil || !failed.Retryable), err == nil:
				t.Errorf("%T %v", err, err)
			}
		})
	}
	if answer, err := asker(t,
		&function{answers: []func() (
			*lambda.InvokeOutput, error,
		){answering(`{"answer":null}`)}}).QueryInstance(t.Context(), question); err != nil || string(answer) != "null" {
		t.Errorf("null: %s, %v", answer, err)
	}
	over, stop := context.WithTimeout(t.Context(), 0)
	defer stop()
	_, err := asker(t,
		&function{answers: []func() (*lambda.InvokeOutput, error){answering(`{"answer":1}`)}}).QueryInstance(over,
		question)
	if told, ok := errors.AsType[*provider.QueryError](err); !ok || told.Code != provider.QueryTimedOut ||
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
