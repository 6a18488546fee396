package hubstore

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

// FuzzDecodeJob checks that a job is rejected, in particular for an unknown field, or is encoded and decoded unchanged.
func FuzzDecodeJob(f *testing.F) {
	doc, err := encodeJob(&provider.Job{
		ID: "01", Operation: "purge", State: provider.JobRunning, CreatedAt: time.Unix(1, 0).UTC(),
		Filter: provider.Filter{Tags: map[string]string{"a": "b"}}, Batch: []provider.Target{{InstanceID: "<a>"}},
	})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(doc))
	f.Add(`{"id":"01","filter":{"later":1}}`)
	f.Add("")
	f.Add("{}0")
	f.Fuzz(func(t *testing.T, doc string) {
		j, err := decodeJob(table.Item{attrJob: table.Str(doc), attrRevision: table.Num(7)})
		if err != nil {
			if !strings.HasPrefix(err.Error(), "dynamo: item ") {
				t.Errorf("error without the item: %v", err)
			}
			return
		}
		first, err := encodeJob(&j)
		if err != nil {
			t.Fatal(err)
		}
		again, err := decodeJob(table.Item{attrJob: table.Str(string(first)), attrRevision: table.Num(7)})
		if err != nil {
			t.Fatalf("%s: %v", first, err)
		}
		if second, err := encodeJob(&again); err != nil || !bytes.Equal(first, second) || !json.Valid([]byte(doc)) {
			t.Errorf("%q: first %s, then %s, error %v", doc, first, second, err)
		}
	})
}
