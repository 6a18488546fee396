//go:build !perdure_lambda

package lambdahandler

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/smithy-go/logging"
)

// awsConfig is what the environment and the shared files give the AWS SDK.
func awsConfig(ctx context.Context, log logging.Logger) (aws.Config, error) {
	return config.LoadDefaultConfig(ctx, config.WithLogger(log)) //nolint:wrapcheck // its caller names what it is about
}
