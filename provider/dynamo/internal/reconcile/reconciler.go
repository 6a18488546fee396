// Package reconcile restores the queues of a hub from its histories, after a table was restored or queues were purged.
package reconcile

import (
	"time"

	"github.com/perdure/perdure/provider/dynamo/internal/attempts"
	"github.com/perdure/perdure/provider/dynamo/internal/cancels"
	"github.com/perdure/perdure/provider/dynamo/internal/deletion"
	"github.com/perdure/perdure/provider/dynamo/internal/inbox"
	"github.com/perdure/perdure/provider/dynamo/internal/instances"
	"github.com/perdure/perdure/provider/dynamo/internal/lru"
	"github.com/perdure/perdure/provider/dynamo/internal/outbox"
	"github.com/perdure/perdure/provider/dynamo/internal/rejections"
	"github.com/perdure/perdure/provider/dynamo/internal/segments"
	"github.com/perdure/perdure/provider/dynamo/internal/sqsqueue"
	"github.com/perdure/perdure/provider/dynamo/internal/timers"
)

// Stores are the stores that a Reconciler reads and writes.
type Stores struct {
	Queue      *sqsqueue.Queues
	Inbox      *inbox.Inbox
	Timers     *timers.Timers
	Instances  *instances.Store
	Segments   *segments.Store
	Cancels    *cancels.Store
	Attempts   *attempts.Store
	Outbox     *outbox.Outbox
	Rejections *rejections.Rejections
	Deleter    *deletion.Deleter
}

// Reconciler sends the outputs of instances again, and purges queues. It is safe for concurrent use.
type Reconciler struct {
	Stores

	now func() time.Time
	// parents caches the states of parents.
	parents *lru.Cache[parentState]
}

// New returns a reconciler.
func New(s Stores, now func() time.Time) *Reconciler {
	return &Reconciler{Stores: s, now: now, parents: lru.New[parentState](maxParents)}
}
