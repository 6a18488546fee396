// Package scale says how long steps of orchestrations take: shapes of them run on AWS in memory, in virtual time, where
// each call takes what chance says by the list of latencies (package latency), with so many instances in flight. `make
// latency` prints it; docs/operate/scale.md has it.
package scale
