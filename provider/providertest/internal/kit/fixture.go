package kit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// Fixture is a hub and the test that uses it, with methods for all tests.
type Fixture struct {
	Hub

	T *testing.T
	// Capabilities are the capabilities of the harness.
	Capabilities []Capability
	// Lacks are the optional interfaces that the provider does not support.
	Lacks []provider.Capability

	reported []string // the builds of ReportBuilds
}

// Can reports whether the backend has a capability. Tests use it for additional checks.
func (f *Fixture) Can(c Capability) bool { return slices.Contains(f.Capabilities, c) }

// Supports reports whether the provider has an optional interface. Tests use it for additional checks.
func (f *Fixture) Supports(c provider.Capability) bool { return !slices.Contains(f.Lacks, c) }

// Ctx returns the context of the test.
func (f *Fixture) Ctx() context.Context { return f.T.Context() }

// Must ends the test if err is not nil.
func (f *Fixture) Must(err error) {
	f.T.Helper()
	if err != nil {
		f.T.Fatal(err)
	}
}

// WantErrorIs fails if errors.Is does not find target in err.
func (f *Fixture) WantErrorIs(err, target error) {
	f.T.Helper()
	if !errors.Is(err, target) {
		f.T.Errorf("got error %v, want %v", err, target)
	}
}

// StartOf returns a start with the given instance ID.
func StartOf(id string) provider.Start {
	return provider.Start{InstanceID: id, Name: Order, Input: history.Payload(`{"n":1}`), StartID: "start of " + id}
}

// Start starts an instance and does not receive its wake.
func (f *Fixture) Start(id string) *Execution {
	f.T.Helper()
	in, err := f.Provider.StartOrchestration(f.Ctx(), StartOf(id))
	f.Must(err)
	return &Execution{F: f, Instance: in, Head: provider.Head{ExecutionID: in.ExecutionID}, Next: 2}
}

// StartWithoutWake starts an instance and deletes its wake.
func (f *Fixture) StartWithoutWake(id string) *Execution {
	f.T.Helper()
	e := f.Start(id)
	f.Must(f.Provider.DeleteRecords(f.Ctx(), provider.QueueInbox, f.Receive(provider.QueueInbox)...))
	return e
}

// Instance reads an instance.
func (f *Fixture) Instance(id string) provider.Instance {
	f.T.Helper()
	in, err := f.Provider.ReadInstance(f.Ctx(), id)
	f.Must(err)
	return in
}

// WantStatus fails if the instance does not have this status.
func (f *Fixture) WantStatus(id string, want provider.RuntimeStatus) {
	f.T.Helper()
	if got := f.Instance(id).Status; got != want {
		f.T.Errorf("instance %q is %s, want %s", id, got, want)
	}
}

// Inbox receives the visible messages of the inbox, in one receive.
func (f *Fixture) Inbox() []*provider.OrchestrationItem {
	f.T.Helper()
	items, bad := f.Provider.DecodeOrchestrationItems(f.Receive(provider.QueueInbox))
	if len(bad) > 0 {
		f.T.Fatalf("unreadable: got %v", bad)
	}
	return items
}

// Messages receives all messages of the inbox, and deletes each batch so that the groups continue.
func (f *Fixture) Messages() (all []provider.InboxMessage) {
	f.T.Helper()
	for {
		items := f.Inbox()
		if len(items) == 0 {
			return all
		}
		for _, it := range items {
			all = append(all, it.Messages...)
			for i := range it.Messages {
				f.Must(f.Provider.DeleteRecords(f.Ctx(), provider.QueueInbox, it.Messages[i].Record))
			}
		}
	}
}

// Drain receives and deletes all visible records of a queue.
func (f *Fixture) Drain(queue string) (all []provider.Record) {
	f.T.Helper()
	for {
		records := f.Receive(queue)
		if len(records) == 0 {
			return all
		}
		all = append(all, records...)
		f.Must(f.Provider.DeleteRecords(f.Ctx(), queue, records...))
	}
}

// Work receives and deletes all work items of a queue, sorted by ID.
func (f *Fixture) Work(queue string) []provider.LockedWorkItem {
	f.T.Helper()
	items, bad := f.Provider.DecodeWorkItems(f.Ctx(), f.Drain(queue))
	if len(bad) > 0 {
		f.T.Fatalf("unreadable: got %v", bad)
	}
	slices.SortFunc(items, func(a, b provider.LockedWorkItem) int { return int(a.ActivityID - b.ActivityID) })
	return items
}

// Locked receives the visible work items and does not delete them.
func (f *Fixture) Locked(queue string) []provider.LockedWorkItem {
	f.T.Helper()
	items, bad := f.Provider.DecodeWorkItems(f.Ctx(), f.Receive(queue))
	if len(bad) > 0 {
		f.T.Fatalf("unreadable: got %v", bad)
	}
	return items
}

// Timers receives and deletes all visible timers.
func (f *Fixture) Timers() []provider.LockedTimer {
	f.T.Helper()
	timers, bad := f.Provider.DecodeTimers(f.Drain(provider.QueueTimers))
	if len(bad) > 0 {
		f.T.Fatalf("unreadable: got %v", bad)
	}
	return timers
}

// DueTimers receives all timers and waits for the first one. A queue guarantees only that a delayed record does not
// arrive early.
func (f *Fixture) DueTimers() []provider.LockedTimer {
	f.T.Helper()
	const polls, pause = 30, 100 * time.Millisecond
	for range polls {
		if timers := f.Timers(); len(timers) > 0 {
			return timers
		}
		f.Advance(pause)
	}
	return f.Timers()
}

// WantNothingSent fails if a turn's outputs are in any queue.
func (f *Fixture) WantNothingSent() {
	f.T.Helper()
	for _, queue := range []string{Queue, OtherQueue, provider.QueueTimers} {
		if records := f.Drain(queue); len(records) > 0 {
			f.T.Errorf("got %d records in queue %s, the first: %s", len(records), queue, records[0].Body)
		}
	}
}

// StoredNow returns the hub's time with the precision in which it is stored.
func (f *Fixture) StoredNow() time.Time { return f.Now().UTC().Truncate(time.Millisecond) }

// Text formats a value, so that tests can compare results of the provider with inputs.
func Text(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// WantEqual fails if the JSON encodings of got and want differ.
func (f *Fixture) WantEqual(what string, got, want any) {
	f.T.Helper()
	if g, w := Text(got), Text(want); g != w {
		f.T.Errorf("%s:\n got %s\nwant %s", what, Shorten(g), Shorten(w))
	}
}

// Shorten returns at most 2,000 bytes of a text.
func Shorten(s string) string {
	const most = 2000
	if len(s) <= most {
		return s
	}
	return s[:most] + "…"
}

// Canonical returns a canonical form of a JSON document. It does not change the digits of numbers.
func Canonical(doc []byte) []byte {
	d := json.NewDecoder(bytes.NewReader(doc))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return doc
	}
	b, err := json.Marshal(v)
	if err != nil {
		return doc
	}
	return b
}
