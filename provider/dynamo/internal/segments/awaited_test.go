package segments

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

// largeSegment returns the items of a segment that has several parts.
func largeSegment(t *testing.T) []table.Item {
	t.Helper()
	noise := make([]byte, 500<<10)
	if _, err := rand.Read(noise); err != nil {
		t.Fatal(err)
	}
	e := history.Event{
		ID: 2, Kind: history.ExternalEventRaised, Time: time.Unix(0, 0), Name: "n", EventID: "e",
		Data: history.Payload(`"` + hex.EncodeToString(noise) + `"`),
	}
	items, err := Encode("x", "nonce", provider.Segment{Sequence: 3, Events: []history.Event{e}})
	if err != nil || len(items) < 2 {
		t.Fatalf("%d items, %v", len(items), err)
	}
	return items
}

// Only documents that may settle a timer are decoded, so maySettle must not miss one.
func TestMaySettle_eachKindOfEvent_includesAllThatSettleATimer(t *testing.T) {
	t.Parallel()
	for _, kind := range history.Kinds() {
		e := history.Event{ID: 2, Kind: kind, Time: time.Unix(0, 0), FireAt: &time.Time{}}
		if kind.HasSource() {
			e.SourceEventID = 1
		}
		doc, err := json.Marshal([]history.Event{{ID: 1, Kind: history.TurnStarted}, e})
		if err != nil {
			t.Fatal(err)
		}
		state := history.NewState(history.TrackTimers)
		state.AddOpen(history.OpenItem{ID: 1})
		state.Apply(e)
		_, waits := state.Open(1)
		if settles := !waits || kind.Terminal(); settles && !maySettle(doc) ||
			maySettle(doc) != (kind.HasSource() || kind.Terminal()) {
			t.Errorf("%s: %v", kind, maySettle(doc))
		}
	}
}

// A page of a query may end within a segment.
func TestDecoder_pageEndsWithinASegment_isReadWithTheNextPage(t *testing.T) {
	t.Parallel()
	items := largeSegment(t)
	for cut := range items[1:] {
		c, found := decoder{Next: dueIn(t, items)}, 0
		count := func(provider.Segment) bool { found++; return true }
		c.Add(items[:cut+1], false)
		if err := c.decode(nil, count); found != 0 || len(c.Items) != cut+1 || err != nil {
			t.Errorf("%d of %d items: %d segments, %d items left, %v", cut+1, len(items), found, len(c.Items), err)
		}
		c.Add(items[cut+1:], true)
		if err := c.decode(nil, count); found != 1 || len(c.Items) != 0 || err != nil {
			t.Errorf("next page: %d segments, %d items left, error %v", found, len(c.Items), err)
		}
	}
}

func dueIn(t *testing.T, items []table.Item) int64 {
	t.Helper()
	sequence, _, err := table.ParseSegmentSK(table.GetString(items[0], table.AttrSK))
	if err != nil {
		t.Fatal(err)
	}
	return sequence
}

func TestDecoder_incompleteSegment_isAnError(t *testing.T) {
	t.Parallel()
	items := largeSegment(t)
	due := dueIn(t, items)
	cut := func(items []table.Item, due int64) error {
		c := decoder{Items: items, Next: due, Last: true}
		return c.decode(nil, func(provider.Segment) bool { return true })
	}
	for what, err := range map[string]error{
		"parts are missing": cut(items[:1], due), "the first part is missing": cut(items[1:], due),
		"a segment is missing before": cut(items, due-1),
		"the segment was read before": cut(items, due+1),
	} {
		if _, torn := errors.AsType[*table.TornError](err); !torn {
			t.Errorf("%s: %v", what, err)
		}
	}
	stub := table.Item{
		table.AttrPK: items[0][table.AttrPK], table.AttrSK: items[0][table.AttrSK], table.AttrStub: table.Str("now"),
	}
	if err := cut([]table.Item{stub}, due); !errors.Is(err, table.ErrDeleted) {
		t.Errorf("stub: %v", err)
	}
}
