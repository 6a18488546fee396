// Package retries makes the next attempts of activities current, sends them, and stores pending attempts with their
// timers. All writes require that the caller's head is the head of the history.
package retries

import (
	"time"

	"github.com/perdure/perdure/provider/dynamo/internal/attempts"
	"github.com/perdure/perdure/provider/dynamo/internal/lru"
	"github.com/perdure/perdure/provider/dynamo/internal/outbox"
	"github.com/perdure/perdure/provider/dynamo/internal/segments"
	"github.com/perdure/perdure/provider/dynamo/internal/sqsqueue"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
	"github.com/perdure/perdure/provider/dynamo/internal/workqueue"
)

// Stores are the stores that Retries reads and writes.
type Stores struct {
	Table      *table.Table
	Queue      *sqsqueue.Queues
	WorkQueues *workqueue.WorkQueues
	Attempts   *attempts.Store
	WorkItems  *segments.WorkItems
	Outbox     *outbox.Outbox
}

// Retries retries the activities of a hub. It is safe for concurrent use.
type Retries struct {
	Stores

	now func() time.Time
	// sent caches the attempts that were sent.
	sent *lru.Cache[struct{}]
}

// New returns the retries of a hub.
func New(s Stores, now func() time.Time) *Retries {
	return &Retries{Stores: s, now: now, sent: lru.New[struct{}](maxSentRetries)}
}
