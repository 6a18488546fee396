package history_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/perdure/perdure/history"
)

func TestInlinePayload_anyDocument_isReadUnchanged(t *testing.T) {
	t.Parallel()
	for _, doc := range []string{
		`null`, `1`, `"s"`, `""`, `[]`, `{}`, `{ }`, ` { "a" : 1 } `, `{"a":{"ref":"x"}}`,
		`[{"ref":"x","sha256":"y","bytes":1}]`,
		`{"ref":"x","sha256":"y","bytes":1}`, `{"bytes":1,"sha256":"y","ref":"x"}`,
		` {` + "\n\t" + `"sha256":"y","ref":"x","bytes":1}`,
		`{"ref":"x"}`, `{"ref":1}`, `{"ref":"x","sha256":"y","bytes":1,"more":true}`, `{"reference":"x"}`,
		`{"inline":1}`, `{"inline":null}`, `{"inline":{"inline":{"ref":"x","sha256":"y","bytes":1}}}`,
		`{"inline":1,"more":2}`,
		`{"\u0072ef":"x","sha256":"y","bytes":1}`, `{"REF":"x","SHA256":"y","BYTES":1}`, `"<&>"`,
	} {
		p := history.NewInlinePayload(json.RawMessage(doc))
		b, err := json.Marshal(p) // like a field of an event
		if err != nil {
			t.Fatalf("%s: got error %v", doc, err)
		}
		var read history.Payload
		if err := json.Unmarshal(b, &read); err != nil {
			t.Fatalf("%s: got error %v", doc, err)
		}
		for _, p := range []history.Payload{p, read} {
			if got, ok := p.Document(); !ok || canonical(t, got) != canonical(t, []byte(doc)) {
				t.Errorf("%s: got document %s, %v", doc, got, ok)
			}
			if r, ok := p.Reference(); ok {
				t.Errorf("%s: got reference %+v", doc, r)
			}
		}
	}
}

// canonical returns the document without white space and unnecessary escapes.
func canonical(t *testing.T, doc []byte) string {
	t.Helper()
	var v any
	d := json.NewDecoder(bytes.NewReader(doc))
	d.UseNumber() // some numbers are no float64
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%s: got error %v", doc, err)
	}
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestReferencePayload_returnsItsReference(t *testing.T) {
	t.Parallel()
	want := history.Reference{Ref: "s3://bucket/key", SHA256: "abc", Bytes: 1 << 20}
	p := history.NewReferencePayload(want)
	if got, ok := p.Reference(); !ok || got != want {
		t.Errorf("got %+v, %v", got, ok)
	}
	if doc, ok := p.Document(); ok || doc != nil {
		t.Errorf("reference: got document %s", doc)
	}
}

func TestPayload_emptyOrInvalid_isNullOrError(t *testing.T) {
	t.Parallel()
	var none history.Payload
	if doc, ok := none.Document(); !ok || doc != nil {
		t.Errorf("got %s, %v", doc, ok)
	}
	if b, err := json.Marshal(none); err != nil || string(b) != "null" {
		t.Errorf("got %s, error %v", b, err)
	}
	if _, err := json.Marshal(history.NewInlinePayload(json.RawMessage(`{"ref":`))); err == nil {
		t.Error("invalid JSON: got no error")
	}
	if err := (*history.Payload)(nil).UnmarshalJSON([]byte("1")); err == nil ||
		!strings.Contains(err.Error(), "nil Payload") {
		t.Error(err)
	}
}
