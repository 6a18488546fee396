package dynamo

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// ParameterName returns the name of the SSM parameter that holds a hub's configuration.
func ParameterName(hub string) string { return "/perdure/" + hub + "/config" }

// FromConfig returns the clients that a Provider requires.
func FromConfig(cfg aws.Config) Clients {
	return Clients{
		Table: dynamodb.NewFromConfig(
			cfg,
		),
		Queues:    sqs.NewFromConfig(cfg),
		Schedules: scheduler.NewFromConfig(cfg),
		Functions: lambda.NewFromConfig(cfg),
		Bucket:    NewBucket(cfg),
	}
}

// withoutRetries disables the retries of the SDK's clients, because package awscall repeats calls.
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
