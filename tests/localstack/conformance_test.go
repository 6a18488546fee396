package localstack_test

import (
	"os"
	"testing"

	"github.com/perdure/perdure/provider/providertest"
	"github.com/perdure/perdure/tests/localcloud"
)

func TestMain(m *testing.M) {
	if err := os.Setenv("CLOUD", "localstack-native"); err != nil {
		panic(err)
	}
	os.Exit(localcloud.Main(m.Run))
}

func TestConformance(t *testing.T) { providertest.Run(t, localcloud.NewEmulator().Harness()) }
