package app_test

import (
	"testing"

	"github.com/perdure/perdure/tests/e2e/app"
)

// A function whose registry panics never answers, and a deployed hub shows that as instances which do not begin.
func TestEverythingIsRegisteredOnce(t *testing.T) {
	if app.Registry(nil) == nil {
		t.Error("there is no registry")
	}
}
