package client

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/perdure/perdure/provider"
)

// Limits of RenewWorkItems.
const (
	// MaxLeases is the maximum number of leases of one call.
	MaxLeases = 100
	// MaxVisibility is the maximum duration of a lock. SQS counts it from the receipt of the message.
	MaxVisibility = 12 * time.Hour
	// maxHandleBytes is longer than any receipt handle.
	maxHandleBytes = 2 << 10
)

// Lease identifies a message of a work queue that a process received without a worker of this module.
type Lease struct {
	// Token is the token of the work item in the message.
	Token string
	// ReceiptHandle is the SQS receipt handle of the message.
	ReceiptHandle string
}

// LeaseRenewal is the result for one lease.
type LeaseRenewal struct {
	// ExpiresAt is the earliest time at which the lock expires. It is zero if Err is set.
	ExpiresAt time.Time
	// Err is why the lock was not extended. It is provider.ErrInvalidToken if the token does not belong to this hub,
	// provider.ErrLockLost if the caller no longer holds the message, provider.ErrLockLimit if the lock would exceed 12
	// hours since the receipt, a *provider.FieldError if the hub no longer has the queue, and a *provider.Error
	// otherwise.
	Err error
	// Cancel reports whether the activity is cancelled. The lock is extended in this case too, to give the code time to
	// stop.
	Cancel provider.CancelInfo
	// CancelErr is why the cancellation could not be read. The next renewal reads it again.
	CancelErr error
}

// RenewWorkItems extends the locks of 1 to MaxLeases messages and returns a result for each, in the same order. Use it
// in processes that run activities without a worker of this module, usually in another language. The visibility counts
// from now and is 1 second to 12 hours, in whole seconds. The messages may come from several queues.
//
// A failure of one lease does not affect the others. RenewWorkItems itself returns an error only if it extended
// nothing. For invalid input this is a *provider.FieldError that names the lease by its index.
//
// The lock that is extended belongs to the receipt handle, the cancellation to the token. RenewWorkItems checks only
// that both belong to the same queue, not that they belong to the same message.
func (c *Client) RenewWorkItems(ctx context.Context, visibility time.Duration, leases ...Lease) ([]LeaseRenewal, error) {
	if err := checkLeases(visibility, leases); err != nil {
		return nil, fmt.Errorf("client: renew work items: %w", err)
	}
	answers := make([]LeaseRenewal, len(leases))
	queues := map[string][]provider.LockedWorkItem{}
	for i := range leases {
		w, err := c.hub.VerifyWorkItemToken(ctx, leases[i].Token)
		switch {
		case errors.Is(err, provider.ErrInvalidToken):
			answers[i].Err = err
		case err != nil:
			return nil, fmt.Errorf("client: renew work items: %w", err)
		default:
			record := provider.Record{ID: strconv.Itoa(i), ReceiptHandle: leases[i].ReceiptHandle}
			queues[w.Queue] = append(queues[w.Queue], provider.LockedWorkItem{WorkItem: w, Record: record})
		}
	}

	var all sync.WaitGroup
	for queue, items := range queues {
		all.Go(func() { c.renew(ctx, visibility, queue, items, answers) })
	}
	all.Wait()
	return answers, nil
}

// renew renews the leases of a queue, and writes each result into its place.
func (c *Client) renew(ctx context.Context, visibility time.Duration, queue string, items []provider.LockedWorkItem, answers []LeaseRenewal) {
	renewals, err := c.hub.RenewWorkItemLocks(ctx, queue, visibility, items...)
	for n := range items {
		i, _ := strconv.Atoi(items[n].Record.ID) // written by RenewWorkItems
		a := &answers[i]
		if n >= len(renewals) { // the hub has no such queue
			a.Err = err
			continue
		}
		r := &renewals[n]
		a.ExpiresAt = r.Until
		a.Err = r.Err
		a.Cancel = r.Cancel
		a.CancelErr = r.CancelErr
		if r.Lost {
			a.Err = provider.ErrLockLost
		}
	}
}

func checkLeases(visibility time.Duration, leases []Lease) error {
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
		if err := provider.CheckText(fmt.Sprintf("leases[%d].receiptHandle", i), leases[i].ReceiptHandle, 1, maxHandleBytes); err != nil {
			return err
		}
	}
	return nil
}
