package differential_test

import (
	"fmt"
	"os"
	"testing"
)

const endpointVariable = "PERDURE_TEST_ENDPOINT"

func TestMain(m *testing.M) {
	if os.Getenv(endpointVariable) == "" {
		fmt.Fprintln(os.Stderr, endpointVariable+" must hold the URL of a running ministack, e.g. http://127.0.0.1:4566")
		os.Exit(1)
	}

	os.Exit(m.Run())
}
