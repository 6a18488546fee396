package dynamo

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/payloads"
)

// TableAPI contains the DynamoDB operations that a Provider calls. *dynamodb.Client implements it. Implementations must
// be safe for concurrent use and return the errors of the SDK, because the provider detects failed conditions,
// conflicts and throttling with errors.As.
type TableAPI interface {
	GetItem(
		ctx context.Context, in *dynamodb.GetItemInput, opts ...func(*dynamodb.Options),
	) (*dynamodb.GetItemOutput, error)
	PutItem(
		ctx context.Context, in *dynamodb.PutItemInput, opts ...func(*dynamodb.Options),
	) (*dynamodb.PutItemOutput, error)
	UpdateItem(
		ctx context.Context, in *dynamodb.UpdateItemInput, opts ...func(*dynamodb.Options),
	) (*dynamodb.UpdateItemOutput, error)
	DeleteItem(
		ctx context.Context, in *dynamodb.DeleteItemInput, opts ...func(*dynamodb.Options),
	) (*dynamodb.DeleteItemOutput, error)
	Query(ctx context.Context, in *dynamodb.QueryInput, opts ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error)
	TransactWriteItems(
		ctx context.Context, in *dynamodb.TransactWriteItemsInput, opts ...func(*dynamodb.Options),
	) (*dynamodb.TransactWriteItemsOutput, error)
}

// QueueAPI contains the SQS operations that a Provider calls. *sqs.Client implements it. Implementations must be safe
// for concurrent use.
type QueueAPI interface {
	SendMessageBatch(
		ctx context.Context, in *sqs.SendMessageBatchInput, opts ...func(*sqs.Options),
	) (*sqs.SendMessageBatchOutput, error)
	DeleteMessageBatch(
		ctx context.Context, in *sqs.DeleteMessageBatchInput, opts ...func(*sqs.Options),
	) (*sqs.DeleteMessageBatchOutput, error)
	ChangeMessageVisibilityBatch(
		ctx context.Context, in *sqs.ChangeMessageVisibilityBatchInput, opts ...func(*sqs.Options),
	) (*sqs.ChangeMessageVisibilityBatchOutput, error)
	// ReceiveMessage is called only by polling processes.
	ReceiveMessage(
		ctx context.Context, in *sqs.ReceiveMessageInput, opts ...func(*sqs.Options),
	) (*sqs.ReceiveMessageOutput, error)
	// GetQueueAttributes is called by polling processes and by the sweeper.
	GetQueueAttributes(
		ctx context.Context, in *sqs.GetQueueAttributesInput, opts ...func(*sqs.Options),
	) (*sqs.GetQueueAttributesOutput, error)
}

// FunctionAPI contains the Lambda operation with which a Provider runs queries. *lambda.Client implements it.
// Implementations must be safe for concurrent use.
type FunctionAPI interface {
	Invoke(ctx context.Context, in *lambda.InvokeInput, opts ...func(*lambda.Options)) (*lambda.InvokeOutput, error)
}

// ScheduleAPI contains the EventBridge Scheduler operations that a Provider calls if it holds timers with schedules.
// *scheduler.Client implements it. Implementations must be safe for concurrent use.
type ScheduleAPI interface {
	DeleteSchedule(
		ctx context.Context, in *scheduler.DeleteScheduleInput, opts ...func(*scheduler.Options),
	) (*scheduler.DeleteScheduleOutput, error)
	CreateSchedule(
		ctx context.Context, in *scheduler.CreateScheduleInput, opts ...func(*scheduler.Options),
	) (*scheduler.CreateScheduleOutput, error)
}

// BucketAPI contains the S3 operations that a Provider calls if the hub has a payload store. FromConfig returns an
// implementation that is smaller than the SDK's client. Implementations must be safe for concurrent use, and return the
// errors of the SDK, or provider.ErrNotFound.
type BucketAPI interface {
	PutObject(ctx context.Context, bucket, key string, data []byte) error
	// GetObject reads an object of up to most bytes. It returns provider.ErrNotFound if the object does not exist.
	GetObject(ctx context.Context, bucket, key string, most int64) ([]byte, error)
	// CopyObject copies an object within a bucket. It returns provider.ErrNotFound if the object does not exist.
	CopyObject(ctx context.Context, bucket, from, to string) error
	// DeleteObjects deletes up to 1,000 objects. Objects that do not exist are ignored.
	DeleteObjects(ctx context.Context, bucket string, keys []string) error
	// ListObjects returns up to 1,000 keys with a prefix that sort after the given key, in byte order.
	ListObjects(ctx context.Context, bucket, prefix, after string) ([]provider.StoredPayload, error)
}

// NewBucket returns an S3 client with the region, credentials, endpoint and HTTP client of a configuration.
func NewBucket(cfg aws.Config) BucketAPI { return payloads.NewClient(cfg, defaults().Now) }

// ExpiryRule is a lifecycle rule of a bucket that deletes objects.
type ExpiryRule = payloads.ExpiryRule

// ExpiryRules returns the enabled lifecycle rules of a bucket that delete objects. It requires the permission
// s3:GetLifecycleConfiguration.
func ExpiryRules(ctx context.Context, cfg aws.Config, bucket string) ([]ExpiryRule, error) {
	return payloads.NewClient(cfg, defaults().Now).ExpiryRules(ctx, bucket)
}
