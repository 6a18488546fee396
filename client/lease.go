package client

import (
	"context"
	"fmt"
	"time"

	"github.com/perdure/perdure/client/internal/leasing"
	"github.com/perdure/perdure/provider"
)

// Limits of RenewWorkItems.
const (
	// MaxLeases is the maximum number of leases of one call.
	MaxLeases = leasing.MaxLeases
	// MaxVisibility is the maximum visibility of one call, from the call, and the maximum duration of a lock, from the
	// receipt of the message. It is a quota of SQS.
	MaxVisibility = leasing.MaxVisibility
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
	// Err is nil if the lock was extended. Otherwise it is one of these errors:
	//
	//   - provider.ErrInvalidToken if the token does not belong to this hub.
	//   - provider.ErrLockLost if the caller does not hold the message anymore.
	//   - provider.ErrLockLimit if the lock would exceed 12 hours since the receipt.
	//   - A *provider.FieldError if the hub does not have the queue anymore.
	//   - A *provider.Error for any other failure.
	Err error
	// Cancel reports whether the activity is cancelled. The lock is also extended for a cancelled activity, to give the
	// code time to stop.
	Cancel provider.CancelInfo
	// CancelErr is the error if the cancellation could not be read. The next renewal reads it again.
	CancelErr error
}

// RenewWorkItems extends the locks of 1 to MaxLeases messages and returns a result for each, in the same order. Use it
// in processes that run activities without a worker of this module, usually in another language. The visibility counts
// from now and is 1 second to 12 hours, in whole seconds. The messages may be from several queues.
//
// A failure of one lease does not affect the others. RenewWorkItems returns an error only if it extended no lock. For
// invalid input, the error is a *provider.FieldError that names the index of the lease.
//
// The receipt handle identifies the lock, and the token identifies the activity whose cancellation is reported.
// RenewWorkItems only checks that both belong to the same queue, not that they belong to the same message.
func (c *Client) RenewWorkItems(
	ctx context.Context, visibility time.Duration, leases ...Lease,
) ([]LeaseRenewal, error) {
	requested := make([]leasing.Lease, len(leases))
	for i := range leases {
		requested[i] = leasing.Lease(leases[i])
	}
	renewed, err := c.ops.Renew(ctx, visibility, requested)
	if err != nil {
		return nil, fmt.Errorf("client: renew work items: %w", err)
	}
	results := make([]LeaseRenewal, len(renewed))
	for i := range renewed {
		results[i] = LeaseRenewal(renewed[i])
	}
	return results, nil
}
