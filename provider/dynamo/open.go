//go:build !perdure_lambda

package dynamo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	ssmtypes "github.com/aws/aws-sdk-go-v2/service/ssm/types"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/awscall"
)

// Open returns a provider for the hub with the given name. It uses the credentials, region and endpoint of the
// environment, and reads the hub's SSM parameter. It returns provider.ErrNotFound if the hub does not exist. In
// binaries that are built with the tag perdure_lambda, it always returns an error.
func Open(ctx context.Context, hub string, opts ...Option) (*Provider, error) {
	s := defaults()
	for _, opt := range opts {
		opt(&s)
	}
	cfg, err := config.LoadDefaultConfig(ctx, config.WithLogger(SDKLogger(s.Log)))
	if err != nil {
		return nil, fmt.Errorf("dynamo: hub %q: load AWS configuration: %w", hub, err)
	}
	h, err := find(ctx, ssm.NewFromConfig(cfg), hub)
	if err != nil {
		return nil, err
	}
	p, err := New(h, FromConfig(cfg), opts...)
	if err != nil {
		return nil, err
	}
	p.caller.Read = callerFromSTS(cfg)
	return p, nil
}

func find(ctx context.Context, client *ssm.Client, hub string) (HubConfig, error) {
	name := ParameterName(hub)
	out, err := client.GetParameter(ctx, &ssm.GetParameterInput{Name: &name})
	if _, missing := errors.AsType[*ssmtypes.ParameterNotFound](err); missing {
		return HubConfig{}, fmt.Errorf(
			"dynamo: hub %q: parameter %s in region %s: %w", hub, name, client.Options().Region, provider.ErrNotFound,
		)
	}
	if err != nil {
		return HubConfig{}, &provider.Error{Op: "SSM.GetParameter", Retryable: awscall.IsRetryable(err), Err: err}
	}
	return parseParameter(hub, aws.ToString(out.Parameter.Value))
}

// parseParameter parses the value of a hub's SSM parameter.
func parseParameter(hub, value string) (h HubConfig, err error) {
	if err := json.Unmarshal([]byte(value), &h); err != nil {
		return HubConfig{}, fmt.Errorf("dynamo: hub %q: parameter %s: %w", hub, ParameterName(hub), err)
	}
	h.Name = hub
	return h, nil
}

// callerFromSTS returns a function that reads the identity of a configuration's credentials from STS.
func callerFromSTS(cfg aws.Config) func(ctx context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		client := sts.NewFromConfig(cfg, func(o *sts.Options) { o.Retryer = aws.NopRetryer{} })
		out, err := client.GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
		if err != nil {
			return "", err //nolint:wrapcheck // only for the log, and the error names its call
		}
		return aws.ToString(out.Arn), nil
	}
}
