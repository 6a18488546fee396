// Package starts creates instances: the first segment, then the instance, then the wake. An instance can replace the
// tombstone of an earlier incarnation of its ID.
package starts

import (
	"time"

	"github.com/perdure/perdure/provider/dynamo/internal/builds"
	"github.com/perdure/perdure/provider/dynamo/internal/inbox"
	"github.com/perdure/perdure/provider/dynamo/internal/instances"
	"github.com/perdure/perdure/provider/dynamo/internal/outbox"
	"github.com/perdure/perdure/provider/dynamo/internal/segments"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
	"github.com/perdure/perdure/provider/dynamo/internal/timers"
)

// Stores are the stores that Starts reads and writes.
type Stores struct {
	Table     *table.Table
	Inbox     *inbox.Inbox
	Builds    *builds.Builds
	Timers    *timers.Timers
	Instances *instances.Store
	Segments  *segments.Store
	Outbox    *outbox.Outbox
}

// Starts creates instances. It is safe for concurrent use.
type Starts struct {
	table     *table.Table
	inbox     *inbox.Inbox
	builds    *builds.Builds
	timers    *timers.Timers
	instances *instances.Store
	segments  *segments.Store
	outbox    *outbox.Outbox
	now       func() time.Time
}

// New returns the starts of a hub.
func New(s Stores, now func() time.Time) *Starts {
	return &Starts{
		table: s.Table, inbox: s.Inbox, builds: s.Builds, timers: s.Timers, instances: s.Instances,
		segments: s.Segments, outbox: s.Outbox, now: now,
	}
}
