package wire_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/wire"
)

// FuzzDecode checks each decoder of records: it returns the value of encoding/json, which it also returns for the
// encoding of this value, or an error that names the field. The encoders return the encoding of encoding/json.
func FuzzDecode(f *testing.F) {
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) == 0 {
		f.Fatal(files, err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(b))
	}
	for _, body := range plainBodies() {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		sameAgain(t, body, wire.DecodeMessage)
		sameAgain(t, body, wire.DecodeWorkItem)
		sameAgain(t, body, wire.DecodeTimer)
		if m, err := wire.DecodeMessage(body); err == nil {
			encodesMessage(t)(&m)
			if s := wire.SubjectOf(body); s.Kind != m.Kind || s.InstanceID != m.InstanceID {
				t.Errorf("%q: the subject of %+v is %+v", body, m, s)
			}
		}
		if w, err := wire.DecodeWorkItem(body); err == nil {
			encodesWorkItem(t)(&w)
		}
	})
}

func sameAgain[T any](t *testing.T, body string, decode func(string) (T, error)) {
	t.Helper()
	same(t, body, decode)
	v, err := decode(body)
	if err != nil {
		_, wrongField := errors.AsType[*provider.FieldError](err)
		_, unknownKind := errors.AsType[*provider.UnknownKindError](err)
		if isJSON := json.Unmarshal([]byte(body), new(T)) == nil; isJSON && !wrongField && !unknownKind {
			t.Errorf("%q: error without a field: %v", body, err)
		}
		return
	}
	first := written(v)
	again, err := decode(first)
	if err != nil || written(again) != first {
		t.Errorf("%q is encoded as %q and decoded as %+v, error %v", body, first, again, err)
	}
	if !reflect.DeepEqual(again, v) && body == first {
		t.Errorf("%q is decoded as %+v, then as %+v", body, v, again)
	}
}
