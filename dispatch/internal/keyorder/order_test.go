package keyorder

import (
	"context"
	"testing"
)

// record is a record of a group.
type record struct {
	Place

	group    string
	mayCrash bool
}

// counter counts the records that start.
type counter int

func (c *counter) AddBusy(n int) { *c += counter(n) }

func link(t *testing.T, records []record) *Order {
	t.Helper()
	waiting := Link(records, func(r *record) *Place { return &r.Place }, func(r *record) string { return r.group },
		func(r *record) bool { return r.mayCrash })
	if waiting != 2 {
		t.Fatalf("%d records wait, want 2", waiting)
	}
	o := &Order{}
	o.Init(new(counter))
	return o
}

func threeOfOneGroup(t *testing.T) (*Order, []record) {
	t.Helper()
	records := []record{{group: "a"}, {group: "b"}, {group: "a"}, {group: "a", mayCrash: true}}
	return link(t, records), records
}

func TestOrder_recordIsDone_nextStarts(t *testing.T) {
	t.Parallel()
	o, r := threeOfOneGroup(t)
	if !r[0].IsFirst() || !r[1].IsFirst() || r[2].IsFirst() || !r[0].MayCrash() || r[1].MayCrash() {
		t.Error("the places are wrong")
	}
	o.Pass(&r[0].Place, false)
	if !o.Await(t.Context(), &r[2].Place) || r[2].IsWaiting() || !r[3].IsWaiting() {
		t.Error("only the next record must start")
	}
	if n := *o.counter.(*counter); n != 1 {
		t.Errorf("%d records are counted, want 1", n)
	}
}

// A FIFO queue preserves the order of a group, so later records are released together with an earlier one.
func TestOrder_recordIsReleased_laterOnesAreReleased(t *testing.T) {
	t.Parallel()
	o, r := threeOfOneGroup(t)
	o.Pass(&r[0].Place, true)
	for _, i := range []int{2, 3} {
		if o.Await(t.Context(), &r[i].Place) || !r[i].WasReleased() {
			t.Errorf("record %d starts", i)
		}
	}
	if r[1].WasReleased() {
		t.Error("a record of another group is released")
	}
}

func TestOrder_contextEnds_waitingRecordIsReleased(t *testing.T) {
	t.Parallel()
	o, r := threeOfOneGroup(t)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if o.Await(ctx, &r[2].Place) {
		t.Error("the record starts")
	}
	o.Pass(&r[0].Place, false) // too late
	if !r[2].WasReleased() || !r[3].IsWaiting() {
		t.Error("the released record starts, or passes its turn on")
	}
}
