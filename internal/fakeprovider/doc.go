// Package fakeprovider implements a provider for tests of clients, which run without an engine. It consists of a
// memhub.Hub, whose state tests can set, and dead letters.
package fakeprovider
