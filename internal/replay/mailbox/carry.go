package mailbox

import (
	"slices"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/replay/loading"
)

const (
	// carriedIDs is the number of event IDs that the next execution receives to drop duplicates (R3). It does not limit
	// the events, which are all carried.
	carriedIDs = 256
	// carriedInline is the total size up to which carried data is copied. The rest is referenced.
	carriedInline = 64 << 10
	// referenceBytes is the approximate size of a reference. Smaller data is always copied.
	referenceBytes = 256
)

// unobserved returns the events that the code has not observed, in the order of arrival.
func (m *Mailbox) unobserved() []*event {
	if m == nil {
		return nil
	}
	var all []*event
	for _, free := range m.free {
		all = append(all, free...)
	}
	for _, e := range m.held {
		all = append(all, e)
	}
	slices.SortFunc(all, byArrival)
	return all
}

// Carry returns the unobserved events for the next execution. Small data is copied, up to a total size. Other data is
// referenced.
func (m *Mailbox) Carry() []history.CarriedEvent {
	all := m.unobserved()
	if len(all) == 0 {
		return nil
	}

	events := make([]history.CarriedEvent, len(all))
	copied := 0
	for i, e := range all {
		events[i] = e.CarriedEvent
		n := len(e.Data)
		if _, inline := e.Data.Referable(); !inline || n <= referenceBytes {
			continue
		}
		if n <= loading.CopyLimit && copied+n <= carriedInline {
			copied += n
			continue
		}
		events[i].Data = m.payloads.Refer(e.at, e.Data)
	}
	return events
}

// CarryIDs returns the IDs that the next execution needs to recognize repeated inputs. It omits IDs of inputs that the
// next execution still receives, for example of queued updates.
func (m *Mailbox) CarryIDs(without []string) []string {
	if m == nil {
		return nil
	}
	ids := slices.Clone(m.ids)
	if len(without) > 0 {
		skip := make(map[string]bool, len(without))
		for _, id := range without {
			skip[id] = true
		}
		ids = slices.DeleteFunc(ids, func(id string) bool { return skip[id] })
	}
	return slices.Clip(ids[max(0, len(ids)-carriedIDs):])
}

// ReferenceLargeData replaces large data in memory by references if there is too much of it.
func (m *Mailbox) ReferenceLargeData() {
	if m == nil || !m.payloads.CanRefer() || m.freeBytes() <= loading.MemoryLimit {
		return
	}
	kept := 0
	for _, e := range m.unobserved() {
		if kept += len(e.Data); kept > loading.MemoryLimit && len(e.Data) > loading.CopyLimit {
			e.Data = m.payloads.Refer(e.at, e.Data) // a task that holds the event has its document
		}
	}
}

// freeBytes returns the size of the data of the free events.
func (m *Mailbox) freeBytes() (n int) {
	for _, free := range m.free {
		for _, e := range free {
			n += len(e.Data)
		}
	}
	return n
}
