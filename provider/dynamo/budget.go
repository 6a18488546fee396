package dynamo

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// withoutRetries disables the retries of the SDK's clients, because call is the only place that repeats calls.
func withoutRetries(c Clients) Clients {
	if table, ok := c.Table.(*dynamodb.Client); ok {
		c.Table = dynamodb.New(table.Options(), func(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} })
	}
	if queues, ok := c.Queues.(*sqs.Client); ok {
		c.Queues = sqs.New(queues.Options(), func(o *sqs.Options) { o.Retryer = aws.NopRetryer{} })
	}
	if schedules, ok := c.Schedules.(*scheduler.Client); ok {
		c.Schedules = scheduler.New(schedules.Options(), func(o *scheduler.Options) { o.Retryer = aws.NopRetryer{} })
	}
	if functions, ok := c.Functions.(*lambda.Client); ok {
		c.Functions = lambda.New(functions.Options(), func(o *lambda.Options) { o.Retryer = aws.NopRetryer{} })
	}
	return c
}
