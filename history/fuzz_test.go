package history_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/perdure/perdure/history"
)

// FuzzDecodeDocument checks that an exported history is rejected with an error of this package, or is encoded and
// decoded to the same document. The functions that read accepted histories must end.
func FuzzDecodeDocument(f *testing.F) {
	for _, s := range samples() {
		doc := history.Document{
			Format: history.DocumentFormat, InstanceID: "order/1", Name: "fulfil",
			Executions: []history.DocumentExecution{{ExecutionID: "x1", Number: 1, Events: []history.Event{
				{ID: 1, Kind: history.OrchestrationStarted, Time: noon, Name: "fulfil", Number: 1, Input: in},
				{ID: 2, Kind: history.InputsParked, Time: noon, Inputs: []history.Event{s.event}},
			}}},
		}
		b, err := json.Marshal(doc)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	for _, s := range []string{
		``, `{}`, `{"format":"perdure.history/1","executions":[{}]}`,
		`{"format":"perdure.history/1","executions":[{"events":[{"id":1,"kind":"OrchestrationStarted",` +
			`"time":"2026-01-02T12:00:00Z","inputs":[{"id":0,"kind":"TimerFired","time":"2026-01-02T12:00:00Z",` +
			`"sourceEventIds":[[1,9223372036854775807]]}]}]}]}`, // a range of parked inputs has no event as its limit
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		doc, err := history.DecodeDocument(b)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "history: ") {
				t.Errorf("error without its package: %v", err)
			}
			return
		}
		first, err := json.Marshal(doc)
		if err != nil {
			t.Fatalf("%q decodes but does not encode: %v", b, err)
		}
		again, err := history.DecodeDocument(first)
		if err != nil {
			t.Fatalf("%q does not decode: %v", first, err)
		}
		if second, err := json.Marshal(again); err != nil || !bytes.Equal(first, second) {
			t.Errorf("first %q, then %q, error %v", first, second, err)
		}
		for _, x := range doc.Executions {
			useHistory(t, &doc, x)
		}
	})
}

// useHistory calls the functions that read histories.
func useHistory(t *testing.T, doc *history.Document, x history.DocumentExecution) {
	t.Helper()
	const all = history.TrackTimers | history.TrackOpen | history.TrackSettled
	whole, steps := history.NewState(all, x.Events...), history.NewState(all)
	for i := range x.Events {
		steps.Apply(x.Events[i])
		x.Events[i].EachExternalData(func(_ string, _ int, data *history.Payload) {
			if ref, refers := data.Reference(); refers {
				_, _ = doc.Find(ref) // must not panic
			}
		})
	}
	if whole.Status() != steps.Status() || whole.OpenCount() != steps.OpenCount() ||
		len(whole.SettledSet()) != len(steps.SettledSet()) {
		t.Errorf("the state depends on how the events are applied: %s", x.ExecutionID)
	}
	if whole.Status() == "" {
		t.Errorf("no status after %s", whole.Last)
	}
	whole.CancelOutstanding("requested")

	last := x.Events[len(x.Events)-1].ID
	if history.CheckRestartPoint(x.Events, last) != nil {
		return
	}
	from := history.ExecutionRef{InstanceID: doc.InstanceID, ExecutionID: x.ExecutionID}
	to := history.ExecutionRef{InstanceID: doc.InstanceID + "-2", ExecutionID: "x-2"}
	restarted := (&history.Restart{From: from, To: to, StartID: "s", At: later}).History(x.Events)
	if _, err := history.Encode(restarted); err != nil {
		t.Errorf("the history of a restart is not valid: %v", err)
	}
}

// FuzzPayload checks that each JSON document is an inline payload that returns it, and that each other payload is an
// encoding of its reference.
func FuzzPayload(f *testing.F) {
	for _, s := range []string{
		`1`, `null`, `{"ref":"x#a/0/1","sha256":"0","bytes":1}`, `{"inline":{"ref":"x"}}`, ` {"sha256" : null}`,
		`{"ref":"data:zstd;AAAA","sha256":"0","bytes":9}`, `{"ref":"object:x/00/a/b;zstd;AAAA","sha256":"0","bytes":9}`,
		`{"REF":"x","Sha256":"y","bytes":0}`, `{"ref":"object:k","sha256":"y"}`,
		`{"ref":"a&b"}`, `{"ref":"object:;zstd;AAAA","sha256":"0"}`, `{"ref":"object:","sha256":"0"}`,
		`{"ref":"object:k;","sha256":"0"}`, `{"ref":"object:k;zstd;A","sha256":"0"}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if !json.Valid(b) {
			return
		}
		if doc, inline := history.NewInlinePayload(b).Document(); !inline || canonical(t, doc) != canonical(t, b) {
			t.Errorf("document %q became %q, inline %v", b, doc, inline)
		}
		p := history.Payload(b)
		ref, refers := p.Reference()
		if _, inline := p.Document(); inline == refers {
			t.Errorf("%q: inline %v, reference %v", b, inline, refers)
		}
		if again, ok := history.NewReferencePayload(ref).Reference(); refers && (!ok || again != ref) {
			t.Errorf("%q: reference %+v, then %+v", b, ref, again)
		}
		s, encoded := p.Encoded()
		if encoded != p.IsEncoded() || encoded && !refers {
			t.Errorf("%q: encoded %v, %v, reference %v", b, encoded, p.IsEncoded(), refers)
		}
		if key := p.StorageKey(); !encoded && (key != "" || !reflect.DeepEqual(s, history.EncodedPayload{})) {
			t.Errorf("%q: not encoded, but has the storage key %q and is %+v", b, key, s)
		}
		if again, ok := s.Payload().Encoded(); encoded && (!ok || again.Codec != s.Codec || again.Key != s.Key ||
			!bytes.Equal(again.Data, s.Data) || !bytes.Equal(again.Digest, s.Digest)) {
			t.Errorf("%q: payload %+v, then %+v", b, s, again)
		}
	})
}

// FuzzParseDataLocation checks that an accepted location is written and parsed unchanged.
func FuzzParseDataLocation(f *testing.F) {
	for _, s := range []string{
		"x#01JX/0/7", "x#01JX/0/7/inputs/0", "x#01JX/12/7/carriedEvents/3/sealed", "x#a/0/1/sealed", "x#", "x#a/-1/1",
		"x#a/1/2/inputs",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		at, err := history.ParseDataLocation(s)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "history: ") || at != (history.DataLocation{}) {
				t.Errorf("%q: %+v, %v", s, at, err)
			}
			return
		}
		if again, err := history.ParseDataLocation(at.String()); err != nil || again != at {
			t.Errorf("%q: %+v, then %+v, error %v", s, at, again, err)
		}
		_, _ = at.DocumentIn([]history.Event{{ID: at.EventID}}) // must not panic
	})
}

// FuzzParseTraceParent checks that the result is empty or the valid trace context of the same trace.
func FuzzParseTraceParent(f *testing.F) {
	for _, s := range []string{traced, "cc-" + traced[3:] + "-later", "", "00-0-0-0"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := history.ParseTraceParent(s)
		if got == "" {
			return
		}
		if history.ParseTraceParent(string(got)) != got || !strings.HasPrefix(string(got), "00-") || len(got) != 55 ||
			s[3:55] != string(got[3:]) {
			t.Errorf("%q was parsed as %q", s, got)
		}
	})
}
