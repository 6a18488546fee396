// Package providertest is the conformance suite for implementations of provider.Provider.
//
// A provider's test calls Run with a Harness that creates hubs of its backend. The suite has a mandatory part for
// provider.Core and a part for each optional interface. A harness lists the optional interfaces that the provider does
// not support in Lacks, and the features of its hubs in Capabilities. Want contains the excluded tests and the number
// of the other tests, so that no test is skipped silently.
package providertest

import (
	"testing"

	"github.com/perdure/perdure/provider"
)

// Harness creates hubs of one backend.
type Harness struct {
	// Capabilities are the capabilities of the hubs. The hooks of Hub that a listed capability requires must be set.
	Capabilities []Capability
	// Lacks are the optional interfaces that the provider does not support, for example because it embeds
	// provider.NoJobs. Run skips their tests, and checks that the methods return a provider.UnsupportedError.
	Lacks []provider.Capability
	// Want is the expected report. Run fails on any difference.
	Want Report
	// Open creates an empty hub and calls test with it once before it returns, optionally in a testing/synctest bubble.
	// Many tests call it concurrently. Hubs must be isolated from each other.
	Open func(t *testing.T, c Config, test func(t *testing.T, h Hub))
}
