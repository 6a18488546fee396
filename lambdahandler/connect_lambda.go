//go:build perdure_lambda

package lambdahandler

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/smithy-go/logging"
)

// errBuiltForLambda is returned if the configuration needs code that the tag excludes.
var errBuiltForLambda = errors.New(
	"this binary was built with the tag perdure_lambda, for Lambda only; build it without the tag",
)

// awsConfig loads the configuration of the AWS SDK from Lambda's environment: region, credentials, endpoints and
// retries. A function has no other sources. The sources that config.LoadDefaultConfig links (profiles, SSO, STS, EC2
// metadata) are a fifth of the binary and a third of its initialization time.
func awsConfig(_ context.Context, log logging.Logger) (aws.Config, error) {
	env, err := config.NewEnvConfig()
	if err != nil {
		return aws.Config{}, err //nolint:wrapcheck // the caller adds context
	}
	switch {
	case !env.Credentials.HasKeys():
		return aws.Config{}, fmt.Errorf("AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not set: %w",
			errBuiltForLambda)
	case env.CustomCABundle != "":
		return aws.Config{}, fmt.Errorf("AWS_CA_BUNDLE is set: %w", errBuiltForLambda)
	}

	credentials := func(context.Context) (aws.Credentials, error) { return env.Credentials, nil }
	cfg := aws.Config{
		Region: env.Region, ConfigSources: []any{env}, Logger: log,
		Credentials: aws.CredentialsProviderFunc(credentials),
		RetryMode:   env.RetryMode, RetryMaxAttempts: env.RetryMaxAttempts,
		DefaultsMode: env.DefaultsMode, AppID: env.AppID,
		AccountIDEndpointMode: cmp.Or(env.AccountIDEndpointMode, aws.AccountIDEndpointModePreferred),
	}
	if ignored := env.IgnoreConfiguredEndpoints; env.BaseEndpoint != "" && (ignored == nil || !*ignored) {
		cfg.BaseEndpoint = &env.BaseEndpoint
	}
	return cfg, nil
}
