package activityrecords

import (
	"errors"
	"testing"

	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

const (
	fuzzedTime    = "2026-01-02T12:00:00.005Z"
	fuzzedPending = `{"expiresAt":"2026-01-02T12:00:00Z"}`
)

// FuzzDecode checks that an attempt record and an activity record are decoded or rejected as corrupt.
func FuzzDecode(f *testing.F) {
	f.Add(table.AttemptSK(7), int64(3), int64(3), fuzzedTime, fuzzedTime, `{"type":"t"}`, fuzzedPending,
		`{"activityId":7,"attempt":3,"result":1}`)
	f.Add(table.ActivitySK(7), int64(3), int64(0), fuzzedTime, "", "", fuzzedPending, `{}`)
	f.Add("r#", int64(-1), int64(-1), "", "soon", `[]`, "null", "1")
	f.Fuzz(func(t *testing.T, sk string, attempt, of int64, at, other, failure, pending, outcome string) {
		it := table.Item{
			table.AttrSK: table.Str(sk), AttrAttempt: table.Num(attempt), AttrPendingOf: table.Num(of),
			AttrAt: table.Str(at), AttrFailedAt: table.Str(other), AttrNextCheckAt: table.Str(other),
			AttrError: table.Str(failure), AttrPending: table.Str(pending), attrRunOutcome: table.Str(outcome),
			attrRunToken: table.Str("token"), attrRunAttempt: table.Num(attempt), attrRunUntil: table.Str(at),
			attrEndedAt: table.Str(other), attrHeartbeatAt: table.Str(at), attrDetails: table.Str(failure),
		}
		retry, err := Decode(it)
		wantCorrupt(t, err)
		if err == nil && (int64(retry.Attempt) != attempt || (retry.Pending != nil) != (attempt == of)) {
			t.Errorf("attempt %d of %d: %+v", attempt, of, retry)
		}
		record, err := decodeActivityRecord(it)
		wantCorrupt(t, err)
		if err == nil && pending != "" && record.Pending == nil {
			t.Errorf("pending %q: %+v", pending, record)
		}
		run := provider.Run{ExecutionID: "X", ActivityID: 7, Attempt: 3, Token: "mine"}
		claim, before, err := (&Store{}).decodeClaim(it, &run)
		wantCorrupt(t, err)
		if err == nil && (before == nil || claim.PreviousRun == nil || claim.Outcome != nil && before.Attempt != 3) {
			t.Errorf("claim %+v, before %+v", claim, before)
		}
	})
}

func wantCorrupt(t *testing.T, err error) {
	t.Helper()
	if err != nil && !errors.Is(err, provider.ErrCorrupt) {
		t.Errorf("error is not ErrCorrupt: %v", err)
	}
}
