// Package queries runs queries of instances in the orchestrator function of a hub.
package queries

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/lambda"
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
