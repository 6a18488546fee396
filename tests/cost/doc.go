// Package cost says what orchestrations cost on AWS: shapes of them run on AWS in memory, in virtual time, with clients
// of the SDK whose calls a meter counts, and a price list makes dollars of it. `make cost` prints it;
// docs/operate/cost.md and scale.md have it.
package cost
