package errdetails_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/errdetails"
)

// FuzzDetails checks that the failure of an error has the details of the first cause with details, as a document or as
// the reason why there is none.
func FuzzDetails(f *testing.F) {
	for _, s := range []string{
		`{"type":"t","details":{"code":5}}`, `{"type":"t","cause":{"details":[1],"cause":{"details":2}}}`,
		`{"detailsOmitted":"too large"}`, `{"details":{"ref":"data:zstd;AAAA","sha256":"0","bytes":9}}`,
		`{"details":{"ref":"x#a/0/1","sha256":"0","bytes":9}}`, `{"details":{"inline":{"ref":"x"}}}`,
		`{"details":null}`, `{"details":{"ref":"0","&":0}}`, `{"details":{"ref": 0}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var failure history.Failure
		if json.Unmarshal(b, &failure) != nil {
			return
		}
		d := errdetails.In(&failure)
		if d == nil {
			return
		}
		if (len(d.Doc) > 0) == (d.Omitted != "") {
			t.Fatalf("%s: document %q, omitted %q", b, d.Doc, d.Omitted)
		}
		v, problem, err := errdetails.Decode[any](d)
		if (problem == "") != (d.Omitted == "" && err == nil) || err != nil {
			t.Errorf("%s: %v, problem %q, error %v", b, v, problem, err)
		}
		if _, problem, err := errdetails.Decode[chan int](d); problem == "" && err == nil && string(d.Doc) != "null" {
			t.Errorf("%s was decoded as a channel", b)
		}
		var again history.Failure
		d.AddTo(&again)
		if same := errdetails.Own(&again); same.Omitted != d.Omitted || !sameJSON(same.Doc, d.Doc) {
			t.Errorf("%s: details %s, then %s", b, d.Doc, same.Doc)
		}
	})
}

// sameJSON reports whether two documents have the same value. A payload that looks like a reference has another form of
// its document.
func sameJSON(a, b json.RawMessage) bool {
	var x, y any
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return len(a) == 0 && len(b) == 0
	}
	return reflect.DeepEqual(x, y)
}
