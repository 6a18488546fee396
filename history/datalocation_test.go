package history_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/history"
)

func TestDataLocation_written_isParsedUnchanged(t *testing.T) {
	t.Parallel()
	for text, p := range map[string]history.DataLocation{
		"x#01JX/12/345":       {ExecutionID: "01JX", Segment: 12, EventID: 345},
		"x#01JX/3/9/inputs/0": {ExecutionID: "01JX", Segment: 3, EventID: 9, Field: history.LocationInputs},
		"x#01JX/0/1/carriedEvents/17": {
			ExecutionID: "01JX", EventID: 1, Field: history.LocationCarriedEvents, Index: 17,
		},
	} {
		if p.String() != text {
			t.Errorf("String: got %q, want %q", p.String(), text)
		}
		if got, err := history.ParseDataLocation(text); err != nil || got != p {
			t.Errorf("ParseDataLocation(%q): got %+v, error %v", text, got, err)
		}
	}
}

func TestParseDataLocation_invalidText_returnsError(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "x#", "x#a", "x#a/1", "a/1/2", "s3://a/1/2", "x#/1/2", "x#a/1/b", "x#a/-1/2", "x#a/1/2/inputs",
		"x#a/1/2/later/3", "x#a/1/2/inputs/x", "x#a/1/2/inputs/3/4",
		"x#a/1/99999999999999999999",
	} {
		if p, err := history.ParseDataLocation(text); err == nil {
			t.Errorf("ParseDataLocation(%q): got %+v, want an error", text, p)
		}
	}
}

// Find returns a document in any form at its location after it was encoded and decoded.
func TestDataLocationFind_anyDocument_isReturned(t *testing.T) {
	t.Parallel()
	docs := []json.RawMessage{
		json.RawMessage(`{ "a": [1, 2],	"b": "<&> \u2028 é" }`), json.RawMessage(`"x"`), json.RawMessage(`null`),
		json.RawMessage(`{"ref":"x#a/1/2","sha256":"b","bytes":1}`), json.RawMessage(`1e400`),
	}
	e := history.Event{ID: 1, Kind: history.OrchestrationStarted, Time: noon, Name: "n", StartID: "s", Number: 2}
	for _, doc := range docs {
		e.CarriedEvents = append(e.CarriedEvents, history.CarriedEvent{Name: "n", Data: history.NewInlinePayload(doc)})
		e.Inputs = append(e.Inputs, history.Event{
			ID: 0, Kind: history.ExternalEventRaised, Time: noon, Name: "n", Data: history.NewInlinePayload(doc),
		})
	}
	events := []history.Event{e}
	for i, doc := range docs {
		events = append(events, history.Event{
			ID: int64(i) + 2, Kind: history.ExternalEventRaised, Time: noon, Name: "n",
			Data: history.NewInlinePayload(doc),
		})
	}
	written, err := history.Encode(events)
	if err != nil {
		t.Fatal(err)
	}
	read, err := history.Decode(written)
	if err != nil {
		t.Fatal(err)
	}
	locations := 0
	for i := range events {
		events[i].EachExternalData(func(field string, index int, data *history.Payload) {
			locations++
			doc, _ := data.Document()
			at := history.DataLocation{ExecutionID: "x", EventID: events[i].ID, Field: field, Index: index}
			ref, ok := at.Refer(doc).Reference()
			if !ok || ref.Ref != at.String() {
				t.Fatalf("got reference %+v", ref)
			}
			found, ok := at.Find(read)
			stored, inline := found.Document()
			if err := ref.Check(stored); !ok || !inline || err != nil {
				t.Errorf("%s: got %s, error %v", at, found, err)
			}
		})
	}
	if locations != 3*len(docs) {
		t.Errorf("got %d locations", locations)
	}
	for _, p := range []history.DataLocation{
		{EventID: 99},
		{EventID: 1, Field: history.LocationInputs, Index: 99},
		{EventID: 1, Field: history.LocationCarriedEvents, Index: 99},
	} {
		if data, ok := p.Find(read); ok {
			t.Errorf("%s: got %s, want nothing", p, data)
		}
	}
}

func TestReferenceCheck_otherDocument_returnsError(t *testing.T) {
	t.Parallel()
	ref, _ := history.DataLocation{ExecutionID: "x", EventID: 2}.Refer(json.RawMessage(`"a"`)).Reference()
	want := history.Reference{
		Ref: "x#x/0/2", SHA256: "ac8d8342bbb2362d13f0a559a3621bb407011368895164b628a54f7fc33fc43c", Bytes: 3,
	}
	if diff := cmp.Diff(want, ref); diff != "" {
		t.Error(diff)
	}
	if ref.Check(json.RawMessage(`"b"`)) == nil || ref.Check(nil) == nil || ref.Check(json.RawMessage(`"a"`)) != nil {
		t.Error("Check: got the wrong result for another document or the same one")
	}
}
