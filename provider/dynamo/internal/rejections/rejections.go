// Package rejections records what an instance does not accept, and then answers the sender: starts of an ID that is in
// use, cancels of a missing child, and events without a receiver. After the answer, no copy of the message may have an
// effect.
package rejections

import (
	"log/slog"
	"time"

	"github.com/perdure/perdure/provider/dynamo/internal/inbox"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

// Rejections records and answers rejected messages. It is safe for concurrent use.
type Rejections struct {
	table *table.Table
	inbox *inbox.Inbox
	now   func() time.Time
	log   *slog.Logger
}

// New returns the rejections of a hub.
func New(t *table.Table, in *inbox.Inbox, now func() time.Time, log *slog.Logger) *Rejections {
	return &Rejections{table: t, inbox: in, now: now, log: log}
}
