// Package deletion deletes instances: it ends and marks an instance in one transaction, sends the outputs of its end,
// erases its executions, and leaves a tombstone (R17). It also ends instances with a damaged history.
package deletion

import (
	"log/slog"
	"time"

	"github.com/perdure/perdure/provider/dynamo/internal/cancels"
	"github.com/perdure/perdure/provider/dynamo/internal/erasure"
	"github.com/perdure/perdure/provider/dynamo/internal/finalexec"
	"github.com/perdure/perdure/provider/dynamo/internal/instances"
	"github.com/perdure/perdure/provider/dynamo/internal/outbox"
	"github.com/perdure/perdure/provider/dynamo/internal/payloads"
	"github.com/perdure/perdure/provider/dynamo/internal/segments"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
	"github.com/perdure/perdure/provider/dynamo/internal/timers"
	"github.com/perdure/perdure/provider/dynamo/internal/updates"
)

// Stores are the stores that a Deleter reads and writes.
type Stores struct {
	Table     *table.Table
	Instances *instances.Store
	Segments  *segments.Store
	Cancels   *cancels.Store
	Updates   *updates.Store
	Payloads  *payloads.Store
	Timers    *timers.Timers
	Outbox    *outbox.Outbox
	Eraser    *erasure.Eraser
	FinalExec *finalexec.Reader
}

// Deleter deletes instances. It is safe for concurrent use.
type Deleter struct {
	table     *table.Table
	instances *instances.Store
	segments  *segments.Store
	cancels   *cancels.Store
	updates   *updates.Store
	payloads  *payloads.Store
	timers    *timers.Timers
	outbox    *outbox.Outbox
	erasure   *erasure.Eraser
	finalexec *finalexec.Reader
	now       func() time.Time
	log       *slog.Logger
}

// New returns a deleter.
func New(s Stores, now func() time.Time, log *slog.Logger) *Deleter {
	return &Deleter{
		table: s.Table, instances: s.Instances, segments: s.Segments, cancels: s.Cancels, updates: s.Updates,
		payloads: s.Payloads, timers: s.Timers, outbox: s.Outbox, erasure: s.Eraser, finalexec: s.FinalExec, now: now,
		log: log,
	}
}
