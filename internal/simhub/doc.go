// Package simhub simulates a whole task hub in memory. It consists of internal/simaws with the table and queues of the
// stack, the real provider, and the functions as mappings. The engine's tests, the benchmarks and perduretest use it.
package simhub
