//go:build !perdure_lambda

package lambdahandler

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/smithy-go/logging"
)

// awsConfig loads the configuration of the AWS SDK from the environment and the shared files.
func awsConfig(ctx context.Context, log logging.Logger) (aws.Config, error) {
	return config.LoadDefaultConfig(ctx, config.WithLogger(log)) //nolint:wrapcheck // the caller adds context
}
