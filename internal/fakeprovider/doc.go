// Package fakeprovider implements the part of a provider that a client uses, in memory. It is for tests of code that
// uses a client. It runs no orchestrations: a test adds events to an instance with Append.
package fakeprovider
