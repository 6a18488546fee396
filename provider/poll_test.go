package provider_test

import (
	"sync"
	"testing"
	"time"

	"github.com/perdure/perdure/provider"
)

var noon = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

func TestLockHold_copiesOfARecord_shareItUntilItEnds(t *testing.T) {
	t.Parallel()
	r := provider.Record{Hold: provider.NewHold(noon, time.Minute)}
	other := r
	if !r.LockedUntil().Equal(noon.Add(time.Minute)) || !r.Held(noon.Add(59*time.Second)) ||
		r.Held(noon.Add(time.Minute)) || r.Hold.Length() != time.Minute {
		t.Errorf("held until %v", r.LockedUntil())
	}
	if !other.Hold.Extend(noon, time.Hour) || !r.Held(noon.Add(59*time.Minute)) || r.Held(noon.Add(time.Hour)) {
		t.Errorf("a copy was renewed, but the record is held until %v", r.LockedUntil())
	}
	other.EndHold()
	if r.Hold.Extend(noon, time.Hour) || !r.Hold.Ended() || r.Held(noon) || r.LockedUntil().IsZero() {
		t.Errorf("an ended hold was extended until %v", r.LockedUntil())
	}
}

// A concurrent renewal must not restore a hold that has ended.
func TestLockHold_renewalsDuringTheEnd_staysEnded(t *testing.T) {
	t.Parallel()
	for range 100 {
		h := provider.NewHold(noon, time.Minute)
		var renewals sync.WaitGroup
		for range 4 {
			renewals.Go(func() {
				for range 100 {
					h.Extend(noon, time.Hour)
				}
			})
		}
		h.End()
		renewals.Wait()
		if !h.Ended() {
			t.Fatal("the hold has not ended")
		}
	}
}

func TestRecord_pushed_isAlwaysHeld(t *testing.T) {
	t.Parallel()
	var r provider.Record
	if r.EndHold(); !r.Held(noon) || !r.LockedUntil().IsZero() {
		t.Errorf("a record without a hold: held %v, until %v", r.Held(noon), r.LockedUntil())
	}
}

// A turn needs the locks of all records of its item.
func TestOrchestrationItem_severalLocks_firstExpiryCounts(t *testing.T) {
	t.Parallel()
	item := func(minutes ...int) *provider.OrchestrationItem {
		it := &provider.OrchestrationItem{}
		for _, n := range minutes {
			m := provider.InboxMessage{}
			if n > 0 {
				m.Record.Hold = provider.NewHold(noon, time.Duration(n)*time.Minute)
			}
			it.Messages = append(it.Messages, m)
		}
		return it
	}
	if got := item(0, 3, 2, 4, 0).LockedUntil(); !got.Equal(noon.Add(2 * time.Minute)) {
		t.Errorf("locked until %v", got)
	}
	if got := item(0, 0).LockedUntil(); !got.IsZero() {
		t.Errorf("pushed records are locked until %v", got)
	}
	lost := item(3, 2)
	lost.Messages[0].Record.EndHold()
	if got := lost.LockedUntil(); got.IsZero() || got.After(noon) {
		t.Errorf("a record is lost, but the item is locked until %v", got)
	}
}
