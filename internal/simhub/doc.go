// Package simhub is a whole task hub in memory: internal/simaws with the table and queues of the stack, the real provider on
// it, and the functions as mappings. The engine's own tests, the benchmarks and perduretest are all made of it.
package simhub
