package wire_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/wire"
)

// Each field is written like in encoding/json, alone and with all others. A new field of a record must be added to the
// encoder.
func TestEncode_eachField_isWrittenLikeJSON(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"a", "a b/~\x7f", `"\`, "<>&", "\x00\n", "é\u2028\uFFFE\U0001F600", "\xff"} {
		eachField(text, encodesWorkItem(t))
		eachField(text, encodesMessage(t))
		eachField(text, func(o *provider.ActivityOutcome) {
			encodesMessage(t)(&provider.Message{Outcomes: []provider.ActivityOutcome{*o}})
			encodesMessage(t)(&provider.Message{Outcomes: []provider.ActivityOutcome{{}, *o, *o}})
		})
	}
}

// Payloads are written like in encoding/json: without white space, and with escapes of some characters.
func TestEncode_anyPayload_isWrittenLikeJSON(t *testing.T) {
	t.Parallel()
	for _, p := range []string{
		`1`, `null`, ` { "a b" : [ 1 ,` + "\t2\r\n" + `] } `, `"<>&"`, `"` + "\u2027\u2028\u2029\u202A" + `"`,
		`"é` + "\xe2\x80" + `"`, `"\u003c\/\""`, "\"\xff\"", ``, `{`, `1 2`, "\"\x00\"",
		strings.Repeat("[", 9_000) + strings.Repeat("]", 9_000), strings.Repeat("[", 10_001) + strings.Repeat("]", 10_001),
	} {
		payload := history.Payload(p)
		encodesWorkItem(t)(&provider.WorkItem{Input: payload})
		encodesMessage(t)(&provider.Message{
			Outcomes: []provider.ActivityOutcome{{Result: payload}}, Data: payload, Input: payload, Result: payload,
		})
	}
}

func encodesWorkItem(t *testing.T) func(*provider.WorkItem) {
	t.Helper()
	return encodesLikeJSON(t, wire.EncodeWorkItem)
}

func encodesMessage(t *testing.T) func(*provider.Message) {
	t.Helper()
	return encodesLikeJSON(t, wire.EncodeMessage)
}

// encodesLikeJSON returns a function that fails the test unless encode returns the result of encoding/json.
func encodesLikeJSON[T any](t *testing.T, encode func(*T) (string, error)) func(*T) {
	t.Helper()
	return func(v *T) {
		t.Helper()
		want, wrong := json.Marshal(v)
		got, err := encode(v)
		if (wrong == nil) != (err == nil) || err == nil && got != string(want) {
			t.Errorf("%+v\nis encoded as\n%s, error %v\nwant\n%s, error %v", v, got, err, want, wrong)
		}
	}
}

// eachField calls f with a value for each field of a struct, which has only this field, and with one that has all
// fields. All texts are text.
func eachField[T any](text string, f func(*T)) {
	var all T
	f(&all)
	for i := range reflect.TypeFor[T]().NumField() {
		var alone T
		fill(reflect.ValueOf(&alone).Elem().Field(i), text, 3)
		fill(reflect.ValueOf(&all).Elem().Field(i), text, 3)
		f(&alone)
	}
	f(&all)
}

// fill sets a value and what it contains, to a depth.
func fill(v reflect.Value, text string, depth int) {
	if depth == 0 {
		return
	}
	switch value := v.Addr().Interface().(type) {
	case *time.Time:
		*value = time.Date(2026, 1, 2, 13, 0, 0, 123_000_000, time.UTC)
		return
	case *history.Payload:
		*value = history.Payload(`{"a": ["<b>", 1.50]}`)
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Int, reflect.Int64:
		v.SetInt(-7)
	case reflect.Float64:
		v.SetFloat(1.5)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), text, depth-1)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(1), text, depth-1)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf(text), reflect.ValueOf(text))
	case reflect.Struct:
		for _, field := range v.Fields() {
			fill(field, text, depth)
		}
	default:
		panic("field of type " + v.Type().String())
	}
}

func BenchmarkEncodeWorkItem(b *testing.B) {
	w, err := wire.DecodeWorkItem(plainBodies()[0])
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := wire.EncodeWorkItem(&w); err != nil {
			b.Fatal(err)
		}
	}
}
