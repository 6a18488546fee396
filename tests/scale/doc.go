// Package scale measures the duration of steps of orchestrations. The orchestrations run on AWS in memory, in virtual
// time, with several numbers of instances in flight. The latency of each call is random, with the distributions of
// package latency. `make latency` prints the results, which are in docs/operate/scale.md.
package scale
