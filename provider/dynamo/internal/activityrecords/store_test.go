package activityrecords

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

// The item of a retry is written for each attempt, so it holds no more of the failure than is displayed.
func TestEncodeFailure_largeNestedFailure_isTruncated(t *testing.T) {
	t.Parallel()
	deep := &history.Failure{Type: "Outer", Message: strings.Repeat("é", 4<<10), Cause: &history.Failure{
		Type: "Middle", Message: "m", Cause: &history.Failure{
			Type: "Inner", Message: "i", Cause: &history.Failure{Type: "Deepest", Message: "d"},
		},
	}}
	doc, err := EncodeFailure(deep)
	if err != nil || len(doc) > 3*RetryMessageBytes {
		t.Fatalf("%d bytes, %v", len(doc), err)
	}
	at := time.Date(2026, 1, 2, 12, 0, 0, 5e6, time.UTC)
	it := table.AttemptKey("X", 7)
	it[AttrAttempt], it[AttrRun], it[AttrAt], it[AttrFailedAt], it[AttrError] = table.Num(3), table.Str("m.1"),
		table.Str(table.FormatTime(at.Add(time.Minute))), table.Str(table.FormatTime(at)), table.Str(doc)
	got, err := Decode(it)
	if err != nil {
		t.Fatal(err)
	}
	want := provider.ActivityRetry{
		ActivityID: 7, Attempt: 3, Run: "m.1", At: at.Add(time.Minute), FailedAt: at,
		Error: &history.Failure{
			Type: "Outer", Message: strings.Repeat("é", RetryMessageBytes/2) + "…",
			Cause: &history.Failure{Type: "Middle", Message: "m", Cause: &history.Failure{Type: "Inner", Message: "i"}},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	it[AttrAt] = table.Str("soon")
	if _, err := Decode(it); !errors.Is(err, provider.ErrCorrupt) {
		t.Errorf("damaged item: %v", err)
	}
}
