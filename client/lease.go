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

// The limits of RenewWorkItems.
const (
	// MaxLeases is how many leases one call renews.
	MaxLeases = 100
	// MaxVisibility is the longest time that a lock lasts; SQS counts it from when the message was received.
	MaxVisibility = 12 * time.Hour
	// maxHandleBytes is longer than any receipt handle.
	maxHandleBytes = 2 << 10
)

// Lease is a message of a work queue that a process has received without a worker of this module.
type Lease struct {
	// Token is the token of the work item in the message.
	Token string
	// ReceiptHandle is the handle that the queue returned with this delivery of the message.
	ReceiptHandle string
}

// LeaseRenewal is the result of renewing a lease.
type LeaseRenewal struct {
	// ExpiresAt is the earliest time at which the lock ends; zero where it was not extended. Err then has the error.
	ExpiresAt time.Time
	// Err is provider.ErrToken where the token is not one of this hub's; provider.ErrLockLost where the caller no
	// longer has the message; provider.ErrLockLimit where SQS would have to lock it for more than 12 hours since it was
	// received; a *provider.FieldError where the hub no longer has such a queue; and otherwise a *provider.Error.
	Err error
	// Cancel reports whether the activity is cancelled. The lock of a cancelled activity is extended too, since its
	// code needs time to end.
	Cancel provider.CancelInfo
	// CancelErr is why the cancel could not be read. It is then unknown, and the next renewal reads it again.
	CancelErr error
}

// RenewWorkItems extends the locks of messages to visibility from now, 1 second to 12 hours in whole seconds. It
// returns for each, in their order, until when it is locked, and whether its activity is cancelled. It serves processes
// that run activities without a worker of this module, usually in another language. The leases, 1 to MaxLeases, may be
// of several queues; an error of one does not affect the others.
//
// Bad input is a *provider.FieldError that names the lease by its index. When RenewWorkItems returns an error, it has
// extended nothing.
//
// A token identifies an activity, and the receipt handle a message; nothing ties the two except that they are of one
// queue. The lock that is extended is that of the receipt handle's message, and the cancel is that of the token's
// activity.
func (c *Client) RenewWorkItems(ctx context.Context, visibility time.Duration, leases ...Lease) ([]LeaseRenewal, error) {
	if err := checkLeases(visibility, leases); err != nil {
		return nil, fmt.Errorf("client: renew work items: %w", err)
	}
	answers := make([]LeaseRenewal, len(leases))
	queues := map[string][]provider.LockedWorkItem{}
	for i := range leases {
		w, err := c.hub.OpenWorkItem(ctx, leases[i].Token)
		switch {
		case errors.Is(err, provider.ErrToken):
			answers[i].Err = err
		case err != nil:
			return nil, fmt.Errorf("client: renew work items: %w", err)
		default:
			record := provider.Record{ID: strconv.Itoa(i), Lock: leases[i].ReceiptHandle}
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
		return &provider.FieldError{Field: "visibilityTimeout", Problem: fmt.Sprintf("must be a whole number of seconds from 1 to %d", MaxVisibility/time.Second)}
	}
	if n := len(leases); n == 0 || n > MaxLeases {
		return &provider.FieldError{Field: "leases", Problem: fmt.Sprintf("must be 1 to %d, are %d", MaxLeases, n)}
	}
	for i := range leases {
		if leases[i].Token == "" {
			return &provider.FieldError{Field: fmt.Sprintf("leases[%d].token", i), Problem: "is missing"}
		}
		if err := provider.CheckText(fmt.Sprintf("leases[%d].receiptHandle", i), leases[i].ReceiptHandle, 1, maxHandleBytes); err != nil {
			return err
		}
	}
	return nil
}
