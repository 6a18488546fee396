package payloads_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/codec"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/payloads"
	"github.com/perdure/perdure/provider"
)

// oneObject is a payload store with the same object under all keys.
type oneObject struct {
	provider.PayloadStore

	data []byte
}

func (s *oneObject) GetPayload(context.Context, string) ([]byte, error) { return s.data, nil }

func (s *oneObject) PutPayload(_ context.Context, _ string, data []byte) error {
	s.data = data
	return nil
}

// FuzzDecode checks that a payload is decoded to a valid document, or rejected with a *perdure.PayloadError. object is
// the data in the payload store.
func FuzzDecode(f *testing.F) {
	info := perdure.PayloadInfo{Kind: perdure.PayloadActivityResult, ExecutionID: "X", Name: "resize"}
	large := make([]byte, perdure.MaxPayloadBytes)
	for i := range large {
		large[i] = '0' + byte(i*i%10)
	}
	for _, doc := range [][]byte{[]byte(`{"a":1}`), large[:2<<10], large} {
		store := &oneObject{}
		e, err := payloads.New([]perdure.Codec{codec.Zstd()}, store)
		if err != nil {
			f.Fatal(err)
		}
		doc, err := json.Marshal(string(doc))
		if err != nil {
			f.Fatal(err)
		}
		p, err := e.Encode(context.Background(), info, doc)
		if err != nil {
			f.Fatal(err)
		}
		f.Add([]byte(p), store.data)
	}
	f.Add([]byte(`{"ref":"object:x/00/a/b","sha256":"0","bytes":1}`), []byte("1"))
	f.Add([]byte(`{"ref":"data:later;AAAA","sha256":"0","bytes":9}`), []byte(nil))
	f.Add([]byte(`{"ref":"x#a/0/1","sha256":"0","bytes":9}`), []byte(nil))
	f.Add([]byte(`{"ref":"","a&b":0}`), []byte(nil))
	f.Fuzz(func(t *testing.T, payload, object []byte) {
		e, err := payloads.New([]perdure.Codec{codec.Zstd()}, &oneObject{data: object})
		if err != nil {
			t.Fatal(err)
		}
		p := history.Payload(payload)
		doc, err := e.Decode(t.Context(), info, p)
		if _, typed := errors.AsType[*perdure.PayloadError](err); err != nil && !typed {
			t.Errorf("%q: error is not a PayloadError: %v", payload, err)
		}
		if err != nil || !json.Valid(payload) {
			return
		}
		if !json.Valid(doc) {
			t.Fatalf("%q was decoded to %q", payload, doc)
		}
		if doc, err = json.Marshal(doc); err != nil { // with the escapes of documents from code
			t.Fatal(err)
		}
		again, err := e.Encode(t.Context(), info, doc)
		if err != nil {
			t.Fatal(err)
		}
		if same, err := e.Same(t.Context(), info, again, doc); err != nil || !same {
			t.Errorf("%q was encoded as %q: same %v, error %v", doc, again, same, err)
		}
	})
}
