package providertest

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// fixture is a hub and the test that uses it.
type fixture struct {
	Hub

	p provider.Provider
	t *testing.T
	// capabilities are those of the harness.
	capabilities []Capability
}

// can reports whether the backend has a capability. Tests use it for additional checks.
func (f *fixture) can(c Capability) bool { return slices.Contains(f.capabilities, c) }

func (f *fixture) ctx() context.Context { return f.t.Context() }

func (f *fixture) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

// wantIs fails unless err is target.
func (f *fixture) wantIs(err, target error) {
	f.t.Helper()
	if !errors.Is(err, target) {
		f.t.Errorf("error %v, want %v", err, target)
	}
}

// startOf returns the start of an instance ID that tests use.
func startOf(id string) provider.Start {
	return provider.Start{InstanceID: id, Name: order, Input: history.Payload(`{"n":1}`), StartID: "start of " + id}
}

// start starts an instance and leaves its wake in the inbox.
func (f *fixture) start(id string) *execution {
	f.t.Helper()
	in, err := f.p.StartOrchestration(f.ctx(), startOf(id))
	f.must(err)
	return &execution{f: f, instance: in, head: provider.Head{ExecutionID: in.ExecutionID}, next: 2}
}

// quiet starts an instance and deletes its wake.
func (f *fixture) quiet(id string) *execution {
	f.t.Helper()
	e := f.start(id)
	f.must(f.p.DeleteRecords(f.ctx(), provider.QueueInbox, f.Receive(provider.QueueInbox)...))
	return e
}

func (f *fixture) instance(id string) provider.Instance {
	f.t.Helper()
	in, err := f.p.ReadInstance(f.ctx(), id)
	f.must(err)
	return in
}

// wantStatus fails unless the instance has that status.
func (f *fixture) wantStatus(id string, want provider.RuntimeStatus) {
	f.t.Helper()
	if got := f.instance(id).Status; got != want {
		f.t.Errorf("instance %q is %s, want %s", id, got, want)
	}
}

// inbox receives the visible messages of the inbox, in one receive.
func (f *fixture) inbox() []*provider.OrchestrationItem {
	f.t.Helper()
	items, bad := f.p.DecodeOrchestrationItems(f.Receive(provider.QueueInbox))
	if len(bad) > 0 {
		f.t.Fatalf("unreadable: %v", bad)
	}
	return items
}

// messages receives all messages of the inbox, and deletes each batch so that the groups continue.
func (f *fixture) messages() (all []provider.InboxMessage) {
	f.t.Helper()
	for {
		items := f.inbox()
		if len(items) == 0 {
			return all
		}
		for _, it := range items {
			all = append(all, it.Messages...)
			for i := range it.Messages {
				f.must(f.p.DeleteRecords(f.ctx(), provider.QueueInbox, it.Messages[i].Record))
			}
		}
	}
}

// drain receives and deletes all visible records of a queue.
func (f *fixture) drain(queue string) (all []provider.Record) {
	f.t.Helper()
	for {
		records := f.Receive(queue)
		if len(records) == 0 {
			return all
		}
		all = append(all, records...)
		f.must(f.p.DeleteRecords(f.ctx(), queue, records...))
	}
}

// work receives and deletes all work items of a queue, sorted by ID.
func (f *fixture) work(queue string) []provider.LockedWorkItem {
	f.t.Helper()
	items, bad := f.p.DecodeWorkItems(f.ctx(), f.drain(queue))
	if len(bad) > 0 {
		f.t.Fatalf("unreadable: %v", bad)
	}
	slices.SortFunc(items, func(a, b provider.LockedWorkItem) int { return int(a.ActivityID - b.ActivityID) })
	return items
}

// locked receives the visible work items and leaves them in their queue.
func (f *fixture) locked(queue string) []provider.LockedWorkItem {
	f.t.Helper()
	items, bad := f.p.DecodeWorkItems(f.ctx(), f.Receive(queue))
	if len(bad) > 0 {
		f.t.Fatalf("unreadable: %v", bad)
	}
	return items
}

// timers receives and deletes all visible timers.
func (f *fixture) timers() []provider.LockedTimer {
	f.t.Helper()
	timers, bad := f.p.DecodeTimers(f.drain(provider.QueueTimers))
	if len(bad) > 0 {
		f.t.Fatalf("unreadable: %v", bad)
	}
	return timers
}

// dueTimers receives all timers and waits for the first one. A queue guarantees only that a delayed record does not
// arrive early.
func (f *fixture) dueTimers() []provider.LockedTimer {
	f.t.Helper()
	const looks, pause = 30, 100 * time.Millisecond
	for range looks {
		if timers := f.timers(); len(timers) > 0 {
			return timers
		}
		f.Advance(pause)
	}
	return f.timers()
}

// wantNothingSent fails if a turn's outputs are in any queue.
func (f *fixture) wantNothingSent() {
	f.t.Helper()
	for _, queue := range []string{Queue, OtherQueue, provider.QueueTimers} {
		if records := f.drain(queue); len(records) > 0 {
			f.t.Errorf("%d records in queue %s, the first: %s", len(records), queue, records[0].Body)
		}
	}
}

// now returns the hub's time with the precision in which it is stored.
func (f *fixture) now() time.Time { return f.Now().UTC().Truncate(time.Millisecond) }

// text formats a value, so that tests can compare results of the provider with inputs.
func text(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

func (f *fixture) wantEqual(what string, got, want any) {
	f.t.Helper()
	if g, w := text(got), text(want); g != w {
		f.t.Errorf("%s:\n got %s\nwant %s", what, shorten(g), shorten(w))
	}
}

func shorten(s string) string {
	const most = 2000
	if len(s) <= most {
		return s
	}
	return s[:most] + "…"
}
