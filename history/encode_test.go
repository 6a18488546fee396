package history_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/history"
	"pgregory.net/rapid"
)

func TestEncode_anyEvents_areDecodedUnchanged(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		events := rapid.SliceOfN(rapid.Custom(drawEvent), 0, 5).Draw(t, "events")
		b, err := history.Encode(events)
		if err != nil {
			t.Fatal(err)
		}
		got, err := history.Decode(b)
		if err != nil {
			t.Fatal(err)
		}
		if len(got) != len(events) {
			t.Fatalf("got %d events, want %d", len(got), len(events))
		}
		for i := range events {
			if !reflect.DeepEqual(got[i], events[i]) {
				t.Fatalf("\n got %+v\nwant %+v", got[i], events[i])
			}
		}
		last, found, err := history.DecodeLast(b)
		if n := len(events); err != nil || found != (n > 0) || n > 0 && !reflect.DeepEqual(last, events[n-1]) {
			t.Fatalf("last event: got %+v, %v, error %v", last, found, err)
		}
	})
}

// DecodeLast finds the last event even if the other events have unusual texts or are invalid. It returns an error for
// anything but an array of events.
func TestDecodeLast_returnsLastEventOrError(t *testing.T) {
	t.Parallel()
	const end = `{"id":3,"kind":"OrchestrationCompleted","time":"2026-01-01T00:00:00Z","output":[{"a":"]}"}]}`
	for _, before := range []string{
		`{"id":1,"input":"\\\"}{["}`, `{"id":1,"input":{"a":[{},{"b":"\\\\"}]}}`,
		`{"id":1},{"id":2,"kind":"nobody knows"}`,
	} {
		last, found, err := history.DecodeLast([]byte(" [" + before + ", " + end + "\n] "))
		if err != nil || !found || last.ID != 3 || string(last.Output) != `[{"a":"]}"}]` {
			t.Errorf("after %s: got %+v, %v, error %v", before, last, found, err)
		}
	}
	for _, b := range []string{
		``, `{}`, `[1]`, `[null]`, `[` + end[:40], `[{"id":0}]`,
		`[` + end, `[` + end + `,`, `[` + end + `,null]`, `[` + end + `]]`, `{"a":` + end + `}`, `[` + end + `]}`,
		`[{"id":1},` + end + `,{"id":4,"ki`,
	} {
		if last, _, err := history.DecodeLast([]byte(b)); err == nil {
			t.Errorf("%s: got %+v", b, last)
		}
	}
}

// drawEvent fills every field with an arbitrary valid value.
func drawEvent(t *rapid.T) history.Event {
	id := rapid.Int64Range(2, 1<<62).Draw(t, "id")
	e := history.Event{
		ID: id, Kind: rapid.SampledFrom(history.Kinds()).Draw(t, "kind"), Time: drawTime(t),
		Name: drawString(t), Version: drawString(t), BuildID: drawString(t), Queue: drawString(t),
		ChangeID:   drawString(t),
		InstanceID: drawString(t), ExecutionID: drawString(t), StartID: drawString(t), EventID: drawString(t),
		Number: rapid.Int64().Draw(t, "number"), Attempt: rapid.Int().Draw(t, "attempt"),
		StartToCloseMs: rapid.Int64().Draw(t, "ms"),
		Input:          drawPayload(t), Result: drawPayload(t), Output: drawPayload(t), Data: drawPayload(t),
		Value: drawPayload(t), CustomStatus: drawPayload(t),
		Reason: drawString(t), Message: drawString(t), RequestedBy: drawString(t), Error: drawFailure(t, 3),
		TraceParent: rapid.SampledFrom([]history.TraceParent{"", traced}).Draw(t, "traced"),
	}
	if rapid.Bool().Draw(t, "timed") {
		at := drawTime(t)
		e.StartAt, e.FireAt = &at, &at
	}
	source := rapid.Int64Range(1, id-1)
	if rapid.Bool().Draw(t, "several") {
		first := source.Draw(t, "first")
		e.SourceEventIDs = []history.Range{{First: first, Last: rapid.Int64Range(first, id-1).Draw(t, "last")}}
	} else {
		e.SourceEventID = source.Draw(t, "source")
	}
	if rapid.Bool().Draw(t, "start") {
		e.Tags = map[string]string{drawString(t): drawString(t)}
		e.Parent = &history.Parent{InstanceID: drawString(t), EventID: rapid.Int64().Draw(t, "eventId")}
		e.CarriedEvents = []history.CarriedEvent{{Name: drawString(t), EventID: drawString(t), Data: drawPayload(t)}}
		e.Retry = &history.RetryPolicy{
			MaxAttempts:        rapid.Int().Draw(t, "max"),
			BackoffCoefficient: rapid.Float64Range(-1e9, 1e9).Draw(t, "backoff"), NonRetryable: []string{drawString(t)},
			Jitter: rapid.Float64Range(0, 1).Draw(t, "jitter"),
		}
	}
	return e
}

func drawString(t *rapid.T) string {
	return strings.ToValidUTF8(rapid.String().Draw(t, "string"), "")
}

func drawTime(t *rapid.T) time.Time {
	return time.Unix(rapid.Int64Range(0, 1<<37).Draw(t, "s"), rapid.Int64Range(0, 999_999_999).Draw(t, "ns")).UTC()
}

// drawPayload generates documents in the format of encoding/json, because decoded documents have this format.
func drawPayload(t *rapid.T) history.Payload {
	v := rapid.SampledFrom([]any{
		nil, 1, "<&>",
		map[string]any{"ref": "r", "sha256": "s", "bytes": 1},
		map[string]any{"inline": nil},
		[]any{},
		drawString(t),
	}).Draw(t, "value")
	if v == nil {
		return nil
	}
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return history.NewInlinePayload(b)
}

func drawFailure(t *rapid.T, depth int) *history.Failure {
	if depth == 0 || rapid.Bool().Draw(t, "no error") {
		return nil
	}
	return &history.Failure{
		Type: drawString(t), Message: drawString(t), Reason: drawString(t),
		NonRetryable: rapid.Bool().Draw(t, "nonRetryable"), Cause: drawFailure(t, depth-1),
		Expected: drawString(t), Got: drawString(t), EventID: rapid.Int64().Draw(t, "eventId"),
	}
}

func FuzzDecode(f *testing.F) {
	for _, s := range samples() {
		b, err := history.Encode([]history.Event{s.event})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	for _, s := range []string{
		``, `null`, `[null]`, `{}`, `[{"id":1e3}]`,
		`[{"id":1,"kind":"TurnStarted","time":"2026-01-01T00:00:00+01:00","input":null}]`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		events, err := history.Decode(b)
		if err != nil {
			return
		}
		first, err := history.Encode(events)
		if err != nil {
			t.Fatalf("%q decodes but does not encode: %v", b, err)
		}
		again, err := history.Decode(first)
		if err != nil {
			t.Fatalf("%q does not decode: %v", first, err)
		}
		if second, err := history.Encode(again); err != nil || !bytes.Equal(first, second) {
			t.Errorf("first %q, then %q, error %v", first, second, err)
		}
	})
}

func TestDecode_fieldsOfLaterReleases_areIgnored(t *testing.T) {
	t.Parallel()
	events, err := history.Decode(
		[]byte(`[{"id":1,"kind":"TurnStarted","time":"2026-01-02T12:00:00Z","colour":"blue"}]`),
	)
	if err != nil || len(events) != 1 || events[0].Kind != history.TurnStarted {
		t.Errorf("got %+v, error %v", events, err)
	}
}

func TestDecode_invalidDocument_returnsError(t *testing.T) {
	t.Parallel()
	for doc, want := range map[string]string{
		``:             "decode: unexpected end",
		`{}`:           "decode:",
		`[{}]`:         "id must be at least 1",
		`[{"id":"1"}]`: "decode:",
		`[{"id":1,"kind":"Teleported","time":"2026-01-02T12:00:00Z"}]`:                                                   `unknown kind "Teleported"`,
		`[{"id":2,"kind":"TimerFired","time":"2026-01-02T12:00:00Z","sourceEventIds":[[1]]}]`:                            "range: 1 numbers instead of 2",
		`[{"id":2,"kind":"TimerFired","time":"2026-01-02T12:00:00Z","sourceEventIds":["1"]}]`:                            "range:",
		`[{"id":2,"kind":"TimerFired","time":"noon","sourceEventId":1}]`:                                                 "decode:",
		`[{"id":2,"kind":"ActivityCompleted","time":"2026-01-02T12:00:00Z","sourceEventId":1,"sourceEventIds":[[1,1]]}]`: "both sourceEventId and sourceEventIds",
	} {
		if _, err := history.Decode([]byte(doc)); err == nil || !strings.HasPrefix(err.Error(), "history: ") ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", doc, err, want)
		}
	}
}

func TestEncode_invalidEvent_returnsError(t *testing.T) {
	t.Parallel()
	for want, e := range map[string]history.Event{
		"event 0: id must be": {Kind: history.TurnStarted},
		"history: encode: TurnStarted #1: input is not JSON": {
			ID: 1, Kind: history.TurnStarted, Input: history.Payload("{"),
		},
		"event 1 (TimerFired): has no sourceEvent": {ID: 1, Kind: history.TimerFired},
	} {
		if b, err := history.Encode([]history.Event{e}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %s, %v, want %q", b, err, want)
		}
	}
}

// segment is a typical segment, of a turn with a small fan-out.
func segment() []history.Event {
	events := []history.Event{{ID: 11, Kind: history.TurnStarted, Time: noon, Version: "1.0", BuildID: "b-1"}}
	for id := int64(12); id <= 22; id++ {
		e := history.Event{
			ID: id, Kind: history.ActivityScheduled, Time: noon, Name: "resize", Queue: "default", Input: in,
		}
		if id%2 == 0 {
			e = history.Event{
				ID: id, Kind: history.ActivityCompleted, Time: noon, SourceEventID: id - 10, Result: in, Attempt: 1,
			}
		}
		events = append(events, e)
	}
	return events
}

func BenchmarkEncode(b *testing.B) {
	events := segment()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := history.Encode(events); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(events)), "ns/event")
}

func BenchmarkDecode(b *testing.B) {
	doc, err := history.Encode(segment())
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := history.Decode(doc); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(segment())), "ns/event")
}

func TestEncode_writesEveryField(t *testing.T) {
	t.Parallel()
	now := time.Now().UTC()
	one := history.Event{ID: 9, Kind: history.TurnStarted, Time: now}
	v := reflect.ValueOf(&one).Elem()
	for i := range v.NumField() {
		switch f := v.Field(i); f.Kind() {
		case reflect.String:
			if v.Type().Field(i).Name != "Kind" {
				f.SetString("x")
			}
		case reflect.Int, reflect.Int64:
			f.SetInt(3)
		case reflect.Bool:
			f.SetBool(true)
		case reflect.Pointer:
			f.Set(reflect.New(f.Type().Elem()))
		case reflect.Map:
			f.Set(reflect.ValueOf(map[string]string{"k": "v"}))
		case reflect.Slice:
			if f.Type() == reflect.TypeFor[history.Payload]() {
				f.SetBytes([]byte("1"))
			} else {
				f.Set(reflect.MakeSlice(f.Type(), 1, 1))
			}
		default:
		}
	}
	one.ID, one.SourceEventIDs = 9, nil
	several := history.Event{
		ID: 9, Kind: history.TurnStarted, Time: now, SourceEventIDs: []history.Range{{First: 1, Last: 2}},
	}
	b, err := history.Encode([]history.Event{one, several})
	if err != nil {
		t.Fatal(err)
	}
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		if !bytes.Contains(b, []byte(`"`+name+`":`)) {
			t.Errorf("%s is not written", name)
		}
	}
}
