//go:build !perdure_quick

package reconcile

import "time"

// countDelay is the maximum age of the counts of a queue, a minute, with a reserve.
const countDelay = 75 * time.Second
