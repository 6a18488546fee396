// Package simhub simulates a whole task hub in memory: internal/simaws with the table and queues of the stack, the real
// provider on it, and the functions as mappings. The engine's tests, the benchmarks and perduretest use it.
package simhub
