package dynamo

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// largeSegment has several parts.
func largeSegment(t *testing.T) []item {
	t.Helper()
	noise := make([]byte, 500<<10)
	if _, err := rand.Read(noise); err != nil {
		t.Fatal(err)
	}
	e := history.Event{ID: 2, Kind: history.ExternalEventRaised, Time: time.Unix(0, 0), Name: "n", EventID: "e", Data: history.Payload(`"` + hex.EncodeToString(noise) + `"`)}
	items, err := encodeSegment("x", "nonce", provider.Segment{Sequence: 3, Events: []history.Event{e}})
	if err != nil || len(items) < 2 {
		t.Fatalf("%d items, %v", len(items), err)
	}
	return items
}

// Only what can settle something is looked at, and all of that.
func TestWhatMaySettleATimer(t *testing.T) {
	t.Parallel()
	for _, kind := range history.Kinds() {
		e := history.Event{ID: 2, Kind: kind, Time: time.Unix(0, 0), FireAt: &time.Time{}}
		if kind.Sourced() {
			e.SourceEventID = 1
		}
		doc, err := json.Marshal([]history.Event{{ID: 1, Kind: history.TurnStarted}, e})
		if err != nil {
			t.Fatal(err)
		}
		spans := provider.TimerSpans{1: {TimerID: 1}}
		spans.Apply([]history.Event{e})
		if settles := len(spans) == 0 || kind.Terminal(); settles && !maySettle(doc) || maySettle(doc) != (kind.Sourced() || kind.Terminal()) {
			t.Errorf("%s: %v", kind, maySettle(doc))
		}
	}
}

// A page of a query may end within a segment.
func TestASegmentThatAPageEndsIsReadWithTheNext(t *testing.T) {
	t.Parallel()
	items := largeSegment(t)
	for cut := range items[1:] {
		first := items[:cut+1]
		segments, rest, err := wholeSegments(first, false, nil)
		if len(segments) != 0 || len(rest) != len(first) || err != nil {
			t.Errorf("%d of %d items: %d segments, %d items left, %v", cut+1, len(items), len(segments), len(rest), err)
		}
		segments, rest, err = wholeSegments(append(rest, items[cut+1:]...), true, nil)
		if len(segments) != 1 || len(rest) != 0 || err != nil {
			t.Errorf("then: %d segments, %d items left, %v", len(segments), len(rest), err)
		}
	}
}

func TestWhatIsNoWholeSegmentIsAnError(t *testing.T) {
	t.Parallel()
	items := largeSegment(t)
	if _, _, err := wholeSegments(items[:1], true, nil); err == nil {
		t.Error("parts are missing, and that is no error")
	}
	if _, _, err := wholeSegments(items[1:], true, nil); err == nil {
		t.Error("the first part is missing, and that is no error")
	}
	stub := item{attrPK: items[0][attrPK], attrSK: items[0][attrSK], attrStub: str("now")}
	if _, _, err := wholeSegments([]item{stub}, true, nil); !errors.Is(err, errStub) {
		t.Errorf("a stub: %v", err)
	}
}
