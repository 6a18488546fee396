package wire_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"unsafe"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/wire"
)

// The decoder of the plain form must return the same values as encoding/json for every body.
func TestPlainForm_anyBody_decodesLikeJSON(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	var bodies []string
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		bodies = append(bodies, strings.TrimSpace(string(b)))
	}
	bodies = append(bodies, plainBodies()...)

	pieces := []string{
		``, ` `, `"`, `\`, `,`, `{`, `}`, `[`, `]`, `:`, `null`, `true`, `false`, `0`, `01`, `-1`, `1.5`, `1e3`,
		`9223372036854775808`, `é`, "\x00", "\xff", `\u0041`, `""`,
		`{"a":[1,"}"]}`, `"v":1,`, `"input":2,`, `,"V":2`, `"unknown":1,`, `"attempt":0,`, `},{`, `"result":null`,
		strings.Repeat("[", 1200),
	}
	for _, body := range bodies {
		same(t, body, wire.DecodeWorkItem)
		same(t, body, wire.DecodeMessage)
	}
	for _, body := range plainBodies() {
		for at := range body {
			for _, piece := range pieces {
				for cut := range min(3, len(body)-at) {
					changed := body[:at] + piece + body[at+cut:]
					same(t, changed, wire.DecodeWorkItem)
					same(t, changed, wire.DecodeMessage)
				}
			}
		}
	}
}

// same fails the test unless decode returns the same value as encoding/json.
func same[T any](t *testing.T, body string, decode func(string) (T, error)) {
	t.Helper()
	var want T
	wrong := json.Unmarshal([]byte(body), &want)
	got, err := decode(body)
	switch {
	case wrong != nil && err == nil:
		t.Fatalf("%s\nwas decoded as %+v, but is not JSON of a %T: %v", body, got, want, wrong)
	case err == nil && !reflect.DeepEqual(got, want):
		t.Fatalf("%s\nwas decoded as\n%+v, want\n%+v", body, got, want)
	case wrong == nil && err != nil && strings.Contains(err.Error(), "not JSON"):
		t.Fatalf("%s\nis JSON, but was rejected: %v", body, err)
	}
}

// plainBodies returns work items and messages with all fields of the plain form.
func plainBodies() []string {
	item := provider.WorkItem{
		V: 1, InstanceID: "order-7", ExecutionID: "01JEXECUTION", Segment: 2, ActivityID: 5, Name: "charge",
		Queue: "payments", Attempt: 1, Input: history.Payload(`{"order":[1,"}"]}`),
		StartToCloseMs: 60_000, TraceParent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
		HeartbeatMs: 5000, Hub: "orders", PossibleDuplicate: true, WaitForCancellation: true, Token: "w1.1.xyz",
	}
	outcomes := provider.Message{
		V: 1, Kind: provider.MessageActivityOutcomes, InstanceID: "order-7", ExecutionID: "01JEXECUTION", Hub: "orders",
		Segment: 2, Outcomes: []provider.ActivityOutcome{
			{ActivityID: 5, Attempt: 1, Result: history.Payload(`"a, b"`)},
			{ActivityID: 6, Attempt: 2, Result: history.Payload(`{"a":[1,2]}`)},
			{ActivityID: 7, Attempt: 1},
		},
	}
	event := provider.Message{
		V: 1, Kind: provider.MessageEventRaised, InstanceID: "order-7", Name: "packed", EventID: "e1",
		Data: history.Payload(`[{},"\""]`),
	}
	return []string{written(item), written(outcomes), written(event)}
}

func written(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// Work items and results of a fan-out have the plain form, because encoding/json would take most of its time.
//
//nolint:paralleltest // allocations are counted
func TestPlainForm_workItemsAndResults_decodeWithoutReflection(t *testing.T) {
	for _, body := range plainBodies() {
		var err error
		allocations := testing.AllocsPerRun(100, func() {
			if strings.Contains(body, `"queue"`) {
				_, err = wire.DecodeWorkItem(body)
			} else {
				_, err = wire.DecodeMessage(body)
			}
		})
		if err != nil || allocations > 10 { // encoding/json takes 16, and the race detector adds one
			t.Errorf("%s: %v allocations, %v", body, allocations, err)
		}
	}
}

// A stored ID must not keep a large body in memory.
func TestPlainForm_largeBody_textsAreCopied(t *testing.T) {
	t.Parallel()
	for size, shares := range map[int]bool{100: true, 4 << 10: false} {
		body := written(provider.WorkItem{
			V: 1, InstanceID: "order-7", ExecutionID: "01JEXECUTION", Segment: 1, ActivityID: 3, Name: "charge",
			Queue: "default", Attempt: 1,
			Input: history.Payload(`"` + strings.Repeat("x", size) + `"`),
		})
		w, err := wire.DecodeWorkItem(body)
		if err != nil {
			t.Fatal(err)
		}
		from, id := uintptr(unsafe.Pointer(unsafe.StringData(body))),
			uintptr(unsafe.Pointer(unsafe.StringData(w.InstanceID)))
		if got := from <= id && id < from+uintptr(len(body)); got != shares {
			t.Errorf("body with an input of %d bytes: the ID shares its memory: %v, want %v", size, got, shares)
		}
	}
}

func BenchmarkDecodeWorkItem(b *testing.B) {
	body := plainBodies()[0]
	b.ReportAllocs()
	for b.Loop() {
		if _, err := wire.DecodeWorkItem(body); err != nil {
			b.Fatal(err)
		}
	}
}
