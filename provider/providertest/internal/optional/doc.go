// Package optional tests the optional interfaces of a provider, with one group for each interface. The tests of
// provider.DeadLetterRecovery are in package queues.
package optional
