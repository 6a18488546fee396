// Package fakeprovider is a provider for tests of clients, which run without an engine: a memhub.Hub whose state tests
// set, and dead letters.
package fakeprovider
