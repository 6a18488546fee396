// Package queryinvoke runs queries of instances in the orchestrator function of a hub.
package queryinvoke

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/lambda"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"

	"github.com/perdure/perdure/internal/querycall"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/awscall"
)

// API contains the Lambda call of Queries.
type API interface {
	Invoke(ctx context.Context, in *lambda.InvokeInput, opts ...func(*lambda.Options)) (*lambda.InvokeOutput, error)
}

// Queries invokes the orchestrator function of a hub. It is safe for concurrent use.
type Queries struct {
	api      API // nil if there is no client
	hub      string
	function string
}

// New returns the queries of a hub. function is the ARN or name of its orchestrator function.
func New(api API, hub, function string) *Queries {
	return &Queries{api: api, hub: hub, function: function}
}

// QueryInstance implements provider.Querier. It invokes the hub's orchestrator function, which has the code, and waits
// for its response. The permission to invoke that function directly gives full control of the hub, because its holder
// can also send forged messages to the function.
func (qr *Queries) QueryInstance(ctx context.Context, q provider.QueryRequest) (json.RawMessage, error) {
	if qr.api == nil || qr.function == "" {
		return nil, fmt.Errorf("dynamo: hub %q: %w: the function is not configured", qr.hub,
			provider.ErrQueriesUnsupported)
	}
	body, err := json.Marshal(querycall.Request{Query: &q})
	if err != nil {
		return nil, &provider.FieldError{Field: "input", Problem: fmt.Sprintf("cannot be sent as JSON: %v", err)}
	}

	var out *lambda.InvokeOutput
	err = awscall.Do(ctx, "Lambda.Invoke", q.InstanceID, func() (err error) {
		out, err = qr.api.Invoke(ctx, &lambda.InvokeInput{
			FunctionName:   &qr.function,
			InvocationType: lambdatypes.InvocationTypeRequestResponse,
			Payload:        body,
		})
		return err
	})
	if err != nil {
		return nil, qr.invokeError(ctx, &q, err)
	}
	if out.FunctionError != nil {
		return nil, functionError(&q, out.Payload)
	}
	var reply querycall.Response
	if err := json.Unmarshal(out.Payload, &reply); err != nil {
		return nil, &provider.Error{
			Op: "Lambda.Invoke", InstanceID: q.InstanceID,
			Err: fmt.Errorf("decode query response: %w", err),
		}
	}
	return reply.Result(&q)
}

// invokeError returns the error of a query whose invocation failed or did not respond in time.
func (qr *Queries) invokeError(ctx context.Context, q *provider.QueryRequest, err error) error {
	if _, missing := errors.AsType[*lambdatypes.ResourceNotFoundException](err); missing {
		return fmt.Errorf("dynamo: hub %q: %w: function %s does not exist", qr.hub, provider.ErrQueriesUnsupported,
			qr.function)
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return &provider.QueryError{
			InstanceID: q.InstanceID, Query: q.Name, Code: provider.QueryTimedOut,
			Message: "orchestrator function did not respond in time: " + err.Error(),
		}
	}
	return err
}

// functionError returns the error of a query whose function failed without a response.
func functionError(q *provider.QueryRequest, payload []byte) error {
	var why struct {
		Type    string `json:"errorType"`
		Message string `json:"errorMessage"`
	}
	if json.Unmarshal(payload, &why) != nil {
		why.Message = string(payload)
	}
	e := &provider.QueryError{
		InstanceID: q.InstanceID, Query: q.Name, Code: provider.QueryFunctionFailed,
		Message: strings.TrimSpace("orchestrator function failed: " + why.Type + " " + why.Message),
	}
	if why.Type == "Sandbox.Timedout" || strings.Contains(why.Message, "Task timed out") {
		e.Code = provider.QueryTimedOut
	}
	return e
}
