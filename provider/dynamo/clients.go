package dynamo

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go/logging"

	"github.com/perdure/perdure/internal/awsrequest"
	"github.com/perdure/perdure/provider/dynamo/internal/payloadstore"
	"github.com/perdure/perdure/provider/dynamo/internal/queryinvoke"
	"github.com/perdure/perdure/provider/dynamo/internal/sqsqueue"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
	"github.com/perdure/perdure/provider/dynamo/internal/timers"
)

// TableAPI contains the DynamoDB operations that a Provider calls: GetItem, PutItem, UpdateItem, DeleteItem, Query and
// TransactWriteItems. *dynamodb.Client implements it. Implementations must be safe for concurrent use and return the
// errors of the SDK, because the provider detects failed conditions, conflicts and throttling with errors.As.
type TableAPI = table.API

// QueueAPI contains the SQS operations that a Provider calls: SendMessageBatch, DeleteMessageBatch,
// ChangeMessageVisibilityBatch, GetQueueAttributes and, only in polling processes, ReceiveMessage. *sqs.Client
// implements it. Implementations must be safe for concurrent use.
type QueueAPI = sqsqueue.API

// FunctionAPI contains the Lambda operation Invoke, with which a Provider runs queries. *lambda.Client implements it.
// Implementations must be safe for concurrent use.
type FunctionAPI = queryinvoke.API

// ScheduleAPI contains the EventBridge Scheduler operations that a Provider calls if it holds timers with schedules:
// CreateSchedule and DeleteSchedule. *scheduler.Client implements it. Implementations must be safe for concurrent use.
type ScheduleAPI = timers.API

// BucketAPI contains the S3 operations that a Provider calls if the hub has a payload store. FromConfig returns an
// implementation that is smaller than the SDK's client. Implementations must be safe for concurrent use, and return the
// errors of the SDK, or provider.ErrNotFound.
type BucketAPI = payloadstore.Bucket

// NewBucket returns an S3 client with the region, credentials, endpoint and HTTP client of a configuration.
func NewBucket(cfg aws.Config) BucketAPI { return payloadstore.NewClient(cfg, defaults().Now) }

// ExpiryRule is a lifecycle rule of a bucket that deletes objects.
type ExpiryRule = payloadstore.ExpiryRule

// ExpiryRules returns the enabled lifecycle rules of a bucket that delete objects. It requires the permission
// s3:GetLifecycleConfiguration.
func ExpiryRules(ctx context.Context, cfg aws.Config, bucket string) ([]ExpiryRule, error) {
	return payloadstore.NewClient(cfg, defaults().Now).ExpiryRules(ctx, bucket)
}

// ParameterName returns the name of the SSM parameter that holds a hub's configuration.
func ParameterName(hub string) string { return "/perdure/" + hub + "/config" }

// FromConfig returns the clients that a Provider requires.
func FromConfig(cfg aws.Config) Clients {
	return Clients{
		Table:     dynamodb.NewFromConfig(cfg),
		Queues:    sqs.NewFromConfig(cfg),
		Schedules: scheduler.NewFromConfig(cfg),
		Functions: lambda.NewFromConfig(cfg),
		Bucket:    NewBucket(cfg),
	}
}

// adapt disables the retries of the SDK's clients, because package awscall repeats calls, and keeps the SDK from losing
// responses (awsrequest.HTTPClient).
func adapt(c Clients) Clients {
	if table, ok := c.Table.(*dynamodb.Client); ok {
		c.Table = dynamodb.New(table.Options(), func(o *dynamodb.Options) {
			o.Retryer, o.HTTPClient = aws.NopRetryer{}, awsrequest.HTTPClient{Next: o.HTTPClient}
		})
	}
	if queues, ok := c.Queues.(*sqs.Client); ok {
		c.Queues = sqs.New(queues.Options(), func(o *sqs.Options) {
			o.Retryer, o.HTTPClient = aws.NopRetryer{}, awsrequest.HTTPClient{Next: o.HTTPClient}
		})
	}
	if schedules, ok := c.Schedules.(*scheduler.Client); ok {
		c.Schedules = scheduler.New(schedules.Options(), func(o *scheduler.Options) {
			o.Retryer, o.HTTPClient = aws.NopRetryer{}, awsrequest.HTTPClient{Next: o.HTTPClient}
		})
	}
	if functions, ok := c.Functions.(*lambda.Client); ok {
		c.Functions = lambda.New(functions.Options(), func(o *lambda.Options) {
			o.Retryer, o.HTTPClient = aws.NopRetryer{}, awsrequest.HTTPClient{Next: o.HTTPClient}
		})
	}
	return c
}

// SDKLogger returns a logger for aws.Config.Logger that writes the SDK's messages to l at debug level. Without it, the
// SDK writes to standard error. It is safe for concurrent use if l is safe for concurrent use.
func SDKLogger(l *slog.Logger) logging.Logger {
	return logging.LoggerFunc(func(c logging.Classification, format string, v ...any) {
		l.Debug("AWS SDK message", "classification", string(c), "text", fmt.Sprintf(format, v...))
	})
}
