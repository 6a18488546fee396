//go:build perdure_quick

package reconcile

// countDelay is zero for tests on a local cloud, whose counts are exact. Releases are built without this tag.
const countDelay = 0
