package loading

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/perdure/perdure/history"
)

func TestLoader_readDocuments_areReleased(t *testing.T) {
	t.Parallel()
	large := json.RawMessage(`"` + string(make([]byte, CopyLimit)) + `"`)
	var l Loader
	l.Init(&Options{
		ExecutionRef: &history.ExecutionRef{ExecutionID: "x"}, SegmentOf: func(int64) int64 { return 1 },
	})
	in := history.Event{Kind: history.ExternalEventRaised, Data: history.NewInlinePayload(large)}
	l.ReferParked(history.DataLocation{EventID: 4, Field: history.LocationInputs}, &in)
	if _, ok := in.Data.Reference(); !ok || l.ParkedBytes() != len(large) {
		t.Fatalf("got reference %v, %d bytes", ok, l.ParkedBytes())
	}
	if doc, _, err := l.Find(in.Data); err != nil || len(doc) != len(large) {
		t.Errorf("got %d bytes, %v", len(doc), err)
	}

	l.DropParked()
	if _, _, err := l.Find(in.Data); !errors.Is(err, errNoFetch) || l.ParkedBytes() != 0 {
		t.Errorf("got error %v, %d bytes", err, l.ParkedBytes())
	}
}
