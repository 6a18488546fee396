package dynamodblocal

import (
	"context"
	"time"

	"github.com/perdure/perdure/tests/localcloud"
)

// EndpointVariable is the name of the environment variable with the URL of a running DynamoDB Local. Without the
// variable, Main starts one.
const EndpointVariable = "PERDURE_TEST_DYNAMODB_ENDPOINT"

const startLimit = time.Minute

// Main runs tests for a TestMain, with EndpointVariable set to the URL of a server. If the variable is not set, Main
// starts a server and stops it after the tests. Main returns the exit code.
func Main(tests func() int) (code int) {
	return localcloud.While(EndpointVariable, startLimit,
		func(ctx context.Context) (endpoint string, stop func() error, err error) {
			s, err := Start(ctx)
			if err != nil {
				return "", nil, err
			}
			return s.Endpoint, s.Stop, nil
		}, tests)
}
