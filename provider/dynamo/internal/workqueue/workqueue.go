// Package workqueue encodes and sends work items, decodes received ones, sends their outcomes, and renews their locks.
package workqueue

import (
	"log/slog"
	"time"

	"github.com/perdure/perdure/provider/dynamo/internal/cancels"
	"github.com/perdure/perdure/provider/dynamo/internal/inbox"
	"github.com/perdure/perdure/provider/dynamo/internal/sqsqueue"
	"github.com/perdure/perdure/provider/dynamo/internal/tokens"
)

// WorkQueues are the work queues of a hub. They are safe for concurrent use.
type WorkQueues struct {
	queue   *sqsqueue.Queues
	inbox   *inbox.Inbox
	tokens  *tokens.Keys
	cancels *cancels.Store
	now     func() time.Time
	log     *slog.Logger
}

// New returns the work queues of a hub.
func New(
	q *sqsqueue.Queues, in *inbox.Inbox, keys *tokens.Keys, c *cancels.Store, now func() time.Time, log *slog.Logger,
) *WorkQueues {
	return &WorkQueues{queue: q, inbox: in, tokens: keys, cancels: c, now: now, log: log}
}
