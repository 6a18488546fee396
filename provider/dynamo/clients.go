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
		Table: dynamodb.NewFromConfig(cfg), Queues: sqs.NewFromConfig(cfg), Schedules: scheduler.NewFromConfig(cfg), Functions: lambda.NewFromConfig(cfg),
		Bucket: NewBucket(cfg),
	}
}
