// Package providertest is the conformance suite for implementations of provider.Provider.
//
// A provider's test calls Run with a Harness that creates hubs of its backend. The suite has a mandatory part, for
// provider.Core, and a part for each optional interface. A harness declares in Lacks which of these the provider
// declines, and in Capabilities the features of its hubs that tests need. Want lists the excluded tests and the number
// of the other tests, so that no test is skipped silently.
package providertest

import (
	"testing"

	"github.com/perdure/perdure/provider"
)

// Harness creates hubs of one backend.
type Harness struct {
	// Capabilities are the capabilities of the hubs. The hooks of Hub that belong to a declared capability must be set.
	Capabilities []Capability
	// Lacks are the optional interfaces that the provider declines, such as with provider.NoJobs. Their tests are
	// skipped. Run checks instead that the methods return a provider.UnsupportedError.
	Lacks []provider.Capability
	// Want is the expected report. Run fails on any difference.
	Want Report
	// Open creates an empty hub and calls test with it once before it returns, optionally in a testing/synctest bubble.
	// Many tests call it concurrently. Hubs must be isolated from each other.
	Open func(t *testing.T, c Config, test func(t *testing.T, h Hub))
}
