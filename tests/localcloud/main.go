package localcloud

import (
	"context"
	"fmt"
	"os"
	"time"
)

// EndpointVariable is the name of the environment variable with the URL of a running emulator. Without the variable,
// Main starts one.
const EndpointVariable = "PERDURE_TEST_ENDPOINT"

// StartLimit is the time limit of starting an emulator. The first start installs the emulator.
const StartLimit = 3 * time.Minute

// Main runs tests for a TestMain, with EndpointVariable set to the URL of an emulator. If the variable is not set, Main
// starts an emulator and stops it after the tests. Main returns the exit code.
func Main(tests func() int) (code int) {
	return While(EndpointVariable, StartLimit,
		func(ctx context.Context) (endpoint string, stop func() error, err error) {
			c, err := Start(ctx, "cloud")
			if err != nil {
				return "", nil, err
			}
			return c.Env["AWS_ENDPOINT_URL"], c.Stop, nil
		}, tests)
}

// While runs tests with a variable set to an endpoint. If the variable is not set, While starts a server within the
// limit and stops it after the tests. While returns the exit code.
func While(
	variable string, limit time.Duration,
	start func(ctx context.Context) (endpoint string, stop func() error, err error), tests func() int,
) (code int) {
	if os.Getenv(variable) != "" {
		return tests()
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	endpoint, stop, err := start(ctx)
	if err != nil {
		return complain(err)
	}
	defer func() {
		if err := stop(); err != nil {
			code = max(code, complain(err))
		}
	}()
	if err := os.Setenv(variable, endpoint); err != nil {
		return complain(err)
	}
	return tests()
}

func complain(err error) int {
	fmt.Fprintln(os.Stderr, err)
	return 1
}
