package differential_test

import (
	"os"
	"testing"

	"github.com/perdure/perdure/tests/localcloud"
)

const endpointVariable = localcloud.EndpointVariable

func TestMain(m *testing.M) { os.Exit(localcloud.Main(m.Run)) }
