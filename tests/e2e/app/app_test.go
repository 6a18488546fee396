package app_test

import (
	"testing"

	"github.com/perdure/perdure/tests/e2e/app"
)

// A function whose registry panics does not start, and in a deployed hub its instances stay pending.
func TestRegistry_allFeatures_registersEachNameOnce(t *testing.T) {
	if app.Registry(nil) == nil {
		t.Error("got a nil registry")
	}
}
