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

// Main is what a TestMain does with its tests: it runs them with EndpointVariable set, to the emulator it names or to one
// that is started and stopped here, and returns the exit code.
func Main(tests func() int) (code int) {
	if os.Getenv(EndpointVariable) != "" {
		return tests()
	}
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	c, err := Start(ctx, "cloud")
	if err != nil {
		return complain(err)
	}
	defer func() {
		if err := c.Stop(); err != nil {
			code = max(code, complain(err))
		}
	}()
	if err := os.Setenv(EndpointVariable, c.Env["AWS_ENDPOINT_URL"]); err != nil {
		return complain(err)
	}
	return tests()
}

func complain(err error) int {
	fmt.Fprintln(os.Stderr, err)
	return 1
}
