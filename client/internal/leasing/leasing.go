// Package leasing extends the locks of work items for workers in other languages.
package leasing

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/perdure/perdure/internal/inputcheck"
	"github.com/perdure/perdure/provider"
)

// Limits of Renew.
const (
	MaxLeases     = 100
	MaxVisibility = 12 * time.Hour
	// maxHandleBytes is longer than any receipt handle.
	maxHandleBytes = 2 << 10
)

// Lease corresponds to client.Lease. The tags are for requests to the HTTP API.
type Lease struct {
	Token         string `json:"token"`
	ReceiptHandle string `json:"receiptHandle"`
}

// Renewal corresponds to client.LeaseRenewal.
type Renewal struct {
	ExpiresAt time.Time
	Err       error
	Cancel    provider.CancelInfo
	CancelErr error
}

// Backend is the part of a provider that Renew uses.
type Backend interface {
	VerifyWorkItemToken(ctx context.Context, token string) (provider.WorkItem, error)
	RenewWorkItemLocks(
		ctx context.Context, queue string, lock time.Duration, items ...provider.LockedWorkItem,
	) ([]provider.Renewal, error)
}

// Renew checks and renews leases, one call for each queue. It returns a result for each lease, in the same order.
func Renew(ctx context.Context, hub Backend, visibility time.Duration, leases []Lease) ([]Renewal, error) {
	if err := Check(visibility, leases); err != nil {
		return nil, err
	}
	results := make([]Renewal, len(leases))
	queues := map[string][]provider.LockedWorkItem{}
	for i := range leases {
		w, err := hub.VerifyWorkItemToken(ctx, leases[i].Token)
		switch {
		case errors.Is(err, provider.ErrInvalidToken):
			results[i].Err = err
		case err != nil:
			return nil, err
		default:
			record := provider.Record{ID: strconv.Itoa(i), ReceiptHandle: leases[i].ReceiptHandle}
			queues[w.Queue] = append(queues[w.Queue], provider.LockedWorkItem{WorkItem: w, Record: record})
		}
	}

	var renewing sync.WaitGroup
	for queue, items := range queues {
		renewing.Go(func() { renew(ctx, hub, visibility, queue, items, results) })
	}
	renewing.Wait()
	return results, nil
}

// renew renews the leases of a queue. The ID of each record is the index of its result.
func renew(
	ctx context.Context, hub Backend, visibility time.Duration, queue string, items []provider.LockedWorkItem,
	results []Renewal,
) {
	renewals, err := hub.RenewWorkItemLocks(ctx, queue, visibility, items...)
	for n := range items {
		i, _ := strconv.Atoi(items[n].Record.ID) // set by Renew
		result := &results[i]
		if n >= len(renewals) { // the call as a whole failed, for example because the hub has no such queue
			result.Err = err
			continue
		}
		r := &renewals[n]
		*result = Renewal{ExpiresAt: r.Until, Err: r.Err, Cancel: r.Cancel, CancelErr: r.CancelErr}
		if r.Lost {
			result.Err = provider.ErrLockLost
		}
	}
}

// Check checks the input of Renew.
func Check(visibility time.Duration, leases []Lease) error {
	if visibility < time.Second || visibility > MaxVisibility || visibility%time.Second != 0 {
		return &provider.FieldError{Field: "visibilityTimeout", Problem: fmt.Sprintf(
			"must be a whole number of seconds from 1 to %d",
			MaxVisibility/time.Second)}
	}
	if n := len(leases); n == 0 || n > MaxLeases {
		return &provider.FieldError{
			Field: "leases", Problem: fmt.Sprintf("must have 1 to %d entries, has %d", MaxLeases, n),
		}
	}
	for i := range leases {
		if leases[i].Token == "" {
			return &provider.FieldError{Field: fmt.Sprintf("leases[%d].token", i), Problem: "is required"}
		}
		field := fmt.Sprintf("leases[%d].receiptHandle", i)
		if err := inputcheck.Text(field, leases[i].ReceiptHandle, 1, maxHandleBytes); err != nil {
			return err
		}
	}
	return nil
}
