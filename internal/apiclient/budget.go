package apiclient

import "sync"

// The budget of retries, in tokens, with the values of the standard mode of the AWS SDKs. An outage empties the budget
// after 100 retries. Calls then fail at once, so that clients do not multiply the load of a service that is down.
const (
	budgetCapacity = 500
	retryCost      = 5
	timeoutCost    = 10
	successRefund  = 1
)

// budget is the retry budget of a client. The zero value is full. It is safe for concurrent use.
type budget struct {
	mu    sync.Mutex
	spent int
}

// take takes the cost of a retry, and reports whether the budget has enough.
func (b *budget) take(cost int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.spent+cost > budgetCapacity {
		return false
	}
	b.spent += cost
	return true
}

// succeeded returns the cost of the last retry of a call that succeeded, or a token if the call had no retry.
func (b *budget) succeeded(cost int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.spent = max(b.spent-max(cost, successRefund), 0)
}
