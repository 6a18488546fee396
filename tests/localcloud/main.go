package localcloud

import (
	"context"
	"fmt"
	"os"
	"time"
)

// EndpointVariable names the variable with the URL of an emulator that runs already. Without it, Main starts one.
const EndpointVariable = "PERDURE_TEST_ENDPOINT"

const startLimit = 3 * time.Minute // the first start installs the emulator

// Main is what a TestMain does with its tests: it runs them with EndpointVariable set, to the emulator it names or to
// one that is started and stopped here, and returns the exit code.
func Main(tests func() int) (code int) {
	return While(EndpointVariable, startLimit,
		func(ctx context.Context) (endpoint string, stop func() error, err error) {
			c, err := Start(ctx, "cloud")
			if err != nil {
				return "", nil, err
			}
			return c.Env["AWS_ENDPOINT_URL"], c.Stop, nil
		}, tests)
}

// While runs tests with the variable set to an endpoint: the one it has already, or else of a server that is started,
// within the limit, and stopped afterwards. It returns the exit code.
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
