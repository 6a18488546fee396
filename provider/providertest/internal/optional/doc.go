// Package optional tests the optional interfaces of a provider, one group each. The tests of
// provider.DeadLetterRecovery are in package queues.
package optional
