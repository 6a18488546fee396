package ministack_test

import (
	"os"
	"testing"

	"github.com/perdure/perdure/provider/providertest"
	"github.com/perdure/perdure/tests/awscheck"
	"github.com/perdure/perdure/tests/localcloud"
)

func TestMain(m *testing.M) { os.Exit(awscheck.Main(m.Run)) }

func TestConformance(t *testing.T) { providertest.Run(t, localcloud.NewEmulator().Harness()) }
