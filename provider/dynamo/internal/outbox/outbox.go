// Package outbox sends the outputs of committed segments: work items, timers, messages, results of updates and the
// status of the instance. After a redelivery or in a reconciliation, it resends unsettled outputs. It records the
// outputs that SQS has accepted.
package outbox

import (
	"log/slog"
	"time"

	"github.com/perdure/perdure/provider/dynamo/internal/activityrecords"
	"github.com/perdure/perdure/provider/dynamo/internal/inbox"
	"github.com/perdure/perdure/provider/dynamo/internal/instances"
	"github.com/perdure/perdure/provider/dynamo/internal/segments"
	"github.com/perdure/perdure/provider/dynamo/internal/sqsqueue"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
	"github.com/perdure/perdure/provider/dynamo/internal/timers"
	"github.com/perdure/perdure/provider/dynamo/internal/updates"
	"github.com/perdure/perdure/provider/dynamo/internal/workqueue"
)

// Stores are the stores that an Outbox reads and writes.
type Stores struct {
	Table      *table.Table
	Queue      *sqsqueue.Queues
	Inbox      *inbox.Inbox
	WorkQueues *workqueue.WorkQueues
	Timers     *timers.Timers
	Instances  *instances.Store
	Attempts   *activityrecords.Store
	Segments   *segments.Store
	Updates    *updates.Store
}

// Outbox commits turns and sends their outputs. It is safe for concurrent use.
type Outbox struct {
	Stores

	now func() time.Time
	log *slog.Logger
}

// New returns the outbox of a hub.
func New(s Stores, now func() time.Time, log *slog.Logger) *Outbox {
	return &Outbox{Stores: s, now: now, log: log}
}
