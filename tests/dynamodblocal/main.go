package dynamodblocal

import (
	"context"
	"time"

	"github.com/perdure/perdure/tests/localcloud"
)

// EndpointVariable names the variable with the URL of a DynamoDB Local that runs already. Without it, Main starts one.
const EndpointVariable = "PERDURE_TEST_DYNAMODB_ENDPOINT"

const startLimit = time.Minute

// Main is what a TestMain does with its tests: it runs them with EndpointVariable set, to the server it names or to one
// that is started and stopped here, and returns the exit code.
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
