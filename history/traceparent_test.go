package history_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/perdure/perdure/history"
)

const traced = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

// A trace context of any version is stored as version 00. Any other text becomes empty.
func TestParseTraceParent_anyVersion_isVersion00OrEmpty(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]history.TraceParent{
		traced:                                   traced,
		strings.Replace(traced, "-01", "-00", 1): history.TraceParent(strings.Replace(traced, "-01", "-00", 1)),
		"cc" + traced[2:]:                        traced,
		"cc" + traced[2:] + "-what-comes":        traced,
		"":                                       "",
		traced + "-more":                         "", // version 00 has no more
		"cc" + traced[2:] + "more":               "",
		"ff" + traced[2:]:                        "",
		"0g" + traced[2:]:                        "",
		strings.ToUpper(traced):                  "",
		traced[:54]:                              "",
		strings.Replace(traced, "-", "_", 1):     "",
		strings.Replace(traced, "4bf92f3577b34da6a3ce929d0e0e4736", strings.Repeat("0", 32), 1): "",
		strings.Replace(traced, "00f067aa0ba902b7", strings.Repeat("0", 16), 1):                 "",
		strings.Replace(traced, "00f067aa0ba902b7", "00f067aa0ba902bé"[:16], 1):                 "",
		strings.Repeat("a", 1<<20): "",
		strings.Repeat("é", 40):    "",
	} {
		if got := history.ParseTraceParent(s); got != want {
			t.Errorf("%.80q: got %q, want %q", s, got, want)
		}
	}
}

func TestDecode_invalidTraceParent_isDropped(t *testing.T) {
	t.Parallel()
	for doc, want := range map[string]history.TraceParent{
		`"` + traced + `"`: traced, `"none"`: "", `7`: "", `{"a":[]}`: "", `null`: "",
		`"` + strings.Repeat("x", 1<<16) + `"`: "",
	} {
		var e history.Event
		if err := json.Unmarshal([]byte(`{"id":1,"kind":"TurnStarted","traceparent":`+doc+`,"buildId":"b"}`),
			&e); err != nil || e.TraceParent != want || e.BuildID != "b" {
			t.Errorf("%.40s: got %+v, error %v", doc, e, err)
		}
	}
}
