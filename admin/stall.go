package admin

import (
	"time"

	"github.com/perdure/perdure/internal/retrybudget"
)

// Stall reports that calls fail and are being retried.
type Stall struct {
	// Service is the service that rejects calls or does not respond, such as "DynamoDB". It is empty if unknown.
	Service string
	// Elapsed is the time since the last successful call.
	Elapsed time.Duration
	// Err is the latest error.
	Err error
}

// retryBudget returns the retry budget of an operation. onStall may be nil.
func (c *Client) retryBudget(onStall func(Stall)) *retrybudget.Budget {
	if onStall == nil {
		return retrybudget.New(c.now, c.sleep, nil)
	}
	return retrybudget.New(c.now, c.sleep, func(elapsed time.Duration, err error) {
		onStall(Stall{Service: retrybudget.ServiceOf(err), Elapsed: elapsed, Err: err})
	})
}
