package history_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure/history"
)

// Golden files have events of earlier releases. -update adds missing files and changes none.
var update = flag.Bool("update", false, "write golden files that are missing")

func TestGoldenFiles_eachKind_isDecodedAndEncoded(t *testing.T) {
	t.Parallel()
	var kinds []history.Kind
	for _, s := range samples() {
		kinds = append(kinds, s.event.Kind)
		t.Run(string(s.event.Kind), func(t *testing.T) {
			t.Parallel()
			testGolden(t, string(s.event.Kind), s)
		})
	}
	for name, s := range grown() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testGolden(t, name, s)
		})
	}
	if !slices.Equal(kinds, history.Kinds()) {
		t.Errorf("got samples of %q, want %q", kinds, history.Kinds())
	}
}

func testGolden(t *testing.T, name string, s sample) {
	t.Helper()
	written, err := history.Encode([]history.Event{s.event})
	if err != nil {
		t.Fatal(err)
	}
	golden := golden(t, name, written)
	read, err := history.Decode(golden)
	if err != nil {
		t.Fatal(err)
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, golden); err != nil {
		t.Fatal(err)
	}
	if got := compact.String(); got != string(written) {
		t.Errorf("got\n%s\nwant\n%s", written, got)
	}
	if again, err := history.Encode(read); err != nil || !bytes.Equal(again, written) || len(read) != 1 ||
		!read[0].Time.Equal(s.event.Time) {
		t.Errorf("decoded golden file: got %+v, error %v", read, err)
	}
	wantFields(t, written, s.fields)
}

// golden returns the content of the golden file of a sample.
func golden(t *testing.T, name string, written []byte) []byte {
	t.Helper()
	name = filepath.Join("testdata", name+".json")
	golden, err := os.ReadFile(name)
	if *update && errors.Is(err, fs.ErrNotExist) {
		var b bytes.Buffer
		if err := json.Indent(&b, written, "", "  "); err != nil {
			t.Fatal(err)
		}
		b.WriteByte('\n')
		golden, err = b.Bytes(), os.WriteFile(name, b.Bytes(), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return golden
}

func wantFields(t *testing.T, doc []byte, fields string) {
	t.Helper()
	var events []map[string]json.RawMessage
	if err := json.Unmarshal(doc, &events); err != nil {
		t.Fatal(err)
	}
	got := slices.Sorted(maps.Keys(events[0]))
	want := slices.Sorted(slices.Values(append(strings.Fields(fields), "id", "kind", "time")))
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got fields %q, want %q", got, want)
	}
}
