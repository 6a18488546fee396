package dynamodblocal

import (
	"context"
	"fmt"
	"os"
	"time"
)

// EndpointVariable names the variable with the URL of a DynamoDB Local that runs already. Without it, Main starts one.
const EndpointVariable = "PERDURE_TEST_DYNAMODB_ENDPOINT"

const startLimit = time.Minute

// Main is what a TestMain does with its tests: it runs them with EndpointVariable set, to the server it names or to one that
// is started and stopped here, and returns the exit code.
func Main(tests func() int) (code int) {
	if os.Getenv(EndpointVariable) != "" {
		return tests()
	}
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	s, err := Start(ctx)
	if err != nil {
		return complain(err)
	}
	defer func() {
		if err := s.Stop(); err != nil {
			code = max(code, complain(err))
		}
	}()
	if err := os.Setenv(EndpointVariable, s.Endpoint); err != nil {
		return complain(err)
	}
	return tests()
}

func complain(err error) int {
	fmt.Fprintln(os.Stderr, err)
	return 1
}
