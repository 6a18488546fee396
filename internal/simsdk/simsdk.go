// Package simsdk creates SDK clients whose requests a simaws.Cloud handles. Middleware of a client, such as a meter,
// observes the calls and their bytes like on AWS. The clients send nothing over the network.
package simsdk

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go/middleware"

	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/provider/dynamo"
)

// Config returns a configuration for clients of a Cloud.
func Config() aws.Config {
	return aws.Config{
		Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("simulated", "simulated", ""),
	}
}

// Clients returns clients of the configuration whose requests c handles.
func Clients(c *simaws.Cloud, cfg aws.Config) dynamo.Clients {
	cfg = cfg.Copy()
	cfg.APIOptions = append(cfg.APIOptions, responder{c}.add)
	return dynamo.Clients{
		Table: dynamodb.NewFromConfig(cfg), Queues: sqs.NewFromConfig(cfg), Schedules: scheduler.NewFromConfig(cfg),
		Bucket: c.Bucket,
	}
}

// responder is middleware that returns responses instead of the network.
type responder struct{ cloud *simaws.Cloud }

func (a responder) add(stack *middleware.Stack) error {
	if err := stack.Initialize.Add(middleware.InitializeMiddlewareFunc("simsdk.Keep", keep),
		middleware.After); err != nil {
		return err //nolint:wrapcheck // the SDK names the client and the call
	}
	response := middleware.FinalizeMiddlewareFunc("simsdk.Respond", a.response)
	return stack.Finalize.Add(response, middleware.After) //nolint:wrapcheck // as above
}

type inputKey struct{}

// keep stores the input, because the middleware that sends the request has only its bytes.
func keep(
	ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler,
) (middleware.InitializeOutput, middleware.Metadata, error) {
	ctx = middleware.WithStackValue(ctx, inputKey{}, in.Parameters)
	return next.HandleInitialize(ctx, in) //nolint:wrapcheck // the error of the client
}

func (a responder) response(
	ctx context.Context, _ middleware.FinalizeInput, _ middleware.FinalizeHandler,
) (out middleware.FinalizeOutput, m middleware.Metadata, err error) {
	out.Result, err = a.query(ctx, middleware.GetStackValue(ctx, inputKey{}))
	return out, m, err
}

// query calls the method of the cloud for an input.
func (a responder) query(ctx context.Context, input any) (any, error) {
	switch in := input.(type) {
	case *dynamodb.GetItemInput:
		return a.cloud.Table.GetItem(ctx, in)
	case *dynamodb.PutItemInput:
		return a.cloud.Table.PutItem(ctx, in)
	case *dynamodb.UpdateItemInput:
		return a.cloud.Table.UpdateItem(ctx, in)
	case *dynamodb.DeleteItemInput:
		return a.cloud.Table.DeleteItem(ctx, in)
	case *dynamodb.QueryInput:
		return a.cloud.Table.Query(ctx, in)
	case *dynamodb.TransactWriteItemsInput:
		return a.cloud.Table.TransactWriteItems(ctx, in)
	case *sqs.SendMessageBatchInput:
		return a.cloud.Queues.SendMessageBatch(ctx, in)
	case *sqs.ReceiveMessageInput:
		return a.cloud.Queues.ReceiveMessage(ctx, in)
	case *sqs.DeleteMessageBatchInput:
		return a.cloud.Queues.DeleteMessageBatch(ctx, in)
	case *sqs.ChangeMessageVisibilityBatchInput:
		return a.cloud.Queues.ChangeMessageVisibilityBatch(ctx, in)
	case *sqs.GetQueueAttributesInput:
		return a.cloud.Queues.GetQueueAttributes(ctx, in)
	case *scheduler.CreateScheduleInput:
		return a.cloud.Schedules.CreateSchedule(ctx, in)
	case *scheduler.DeleteScheduleInput:
		return a.cloud.Schedules.DeleteSchedule(ctx, in)
	default:
		return nil, fmt.Errorf("simsdk: no handler for %T", input)
	}
}
