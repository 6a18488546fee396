// Package cost calculates the cost of orchestrations on AWS. The orchestrations run on AWS in memory, in virtual time.
// A meter counts the calls of the SDK clients, and a price list converts the counts to dollars. `make cost` prints the
// results, which are in docs/operate/cost.md and docs/operate/scale.md.
package cost
