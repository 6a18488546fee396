package dynamo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	ssmtypes "github.com/aws/aws-sdk-go-v2/service/ssm/types"

	"github.com/perdure/perdure/provider"
)

// ParameterName returns the name of the SSM parameter that holds a hub's configuration.
func ParameterName(hub string) string { return "/perdure/" + hub + "/config" }

// Open finds a hub by its name, with the credentials, region and endpoint that the environment gives the AWS SDK. It
// calls SSM once. It returns provider.ErrNotFound for a hub that does not exist there.
func Open(ctx context.Context, hub string, opts ...Option) (*Provider, error) {
	s := defaults()
	for _, opt := range opts {
		opt(&s)
	}
	cfg, err := config.LoadDefaultConfig(ctx, config.WithLogger(SDKLogger(s.Log)))
	if err != nil {
		return nil, fmt.Errorf("dynamo: hub %q: AWS configuration: %w", hub, err)
	}
	h, err := find(ctx, ssm.NewFromConfig(cfg), hub)
	if err != nil {
		return nil, err
	}
	p, err := New(h, FromConfig(cfg), opts...)
	if err != nil {
		return nil, err
	}
	p.caller.ask = askSTS(cfg)
	return p, nil
}

// FromConfig makes the clients that a Provider needs.
func FromConfig(cfg aws.Config) Clients {
	return Clients{
		Table: dynamodb.NewFromConfig(cfg), Queues: sqs.NewFromConfig(cfg), Schedules: scheduler.NewFromConfig(cfg), Functions: lambda.NewFromConfig(cfg),
	}
}

func find(ctx context.Context, client *ssm.Client, hub string) (Hub, error) {
	name := ParameterName(hub)
	out, err := client.GetParameter(ctx, &ssm.GetParameterInput{Name: &name})
	if _, missing := errors.AsType[*ssmtypes.ParameterNotFound](err); missing {
		return Hub{}, fmt.Errorf("dynamo: hub %q: parameter %s in region %s: %w", hub, name, client.Options().Region, provider.ErrNotFound)
	}
	if err != nil {
		return Hub{}, &provider.Error{Op: "SSM.GetParameter", Retryable: isRetryable(err), Err: err}
	}
	h := Hub{}
	if err := json.Unmarshal([]byte(aws.ToString(out.Parameter.Value)), &h); err != nil {
		return Hub{}, fmt.Errorf("dynamo: hub %q: parameter %s: %w", hub, name, err)
	}
	h.Name = hub
	return h, nil
}
