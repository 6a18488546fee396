// Package kit contains the common parts of the conformance suite. These are the hub that a harness creates, executions
// that commit turns, events and messages.
package kit

import (
	"time"

	"github.com/perdure/perdure/provider"
)

// Group is a list of tests of one subject.
type Group struct {
	Name  string
	Cases []Case
	// Optional is the capability of the provider that all tests of the group require. It is empty for the mandatory
	// part of the suite.
	Optional provider.Capability
}

// Case is a test of one guarantee. The subtest has the name group/name.
type Case struct {
	Name string
	Run  func(f *Fixture)
	// Needs are the capabilities of the harness that the test requires.
	Needs []Capability
	// Optional is described in Group.
	Optional provider.Capability
	// Visibility is the visibility timeout of the queues. 0 selects a time that does not expire during the test.
	Visibility time.Duration
	Long       bool // skipped in a short run
}
