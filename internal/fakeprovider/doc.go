// Package fakeprovider is a minimal provider: a hub in memory that passes the mandatory part of the conformance suite.
// Authors of other providers can read it first. Every call holds one lock, so that each write is atomic. The package
// omits what a real store requires: conditions in writes, retries of failed calls, pages and memory limits.
//
// Tests of code that uses a client do not need turns. They add events to an instance with Append, and set other state
// with the methods of hooks.go.
package fakeprovider
