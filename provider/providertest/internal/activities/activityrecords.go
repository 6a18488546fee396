package activities

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/providertest/internal/kit"
)

// ActivityRecords tests the outcomes of cancelled activities and the details of heartbeats in activity records.
func ActivityRecords() kit.Group {
	return kit.Group{Name: "activity records", Cases: []kit.Case{
		{Name: "RecordIsReadAsWritten", Run: recordFields},
		{Name: "UnsetFieldsAreUnchanged", Run: partialRecords},
		{Name: "EmptyRecordStoresNothing", Run: emptyRecord},
		{Name: "UnknownRecordIsZero", Run: unknownRecord},
		{Name: "RecordsAreSortedByID", Run: recordOrder},
		{Name: "RecordsArePerExecution", Run: recordsPerExecution},
		{Name: "ReaderOfRecordsMayStopEarly", Run: fewRecords},
		{Name: "NeverStartedDoesNotReplaceLaterOutcome", Run: neverStarted},
		{Name: "EarlierHeartbeatDoesNotReplaceLaterRecord", Run: earlierHeartbeat},
		{Name: "DetailsAreTheSameJSON", Run: detailsJSON},
		{Name: "LargeDetails", Run: largeDetails},
		{Name: "RecordsAreNotInHistory", Run: recordsNotInHistory},
		{Name: "RecordsAreReadConsistently", Run: strongRecords, Needs: []kit.Capability{kit.StaleReads}},
		{Name: "RejectedRecordsAreAnError", Run: refusedRecords, Needs: []kit.Capability{kit.Faults}},
		{Name: "UnreachableRecordIsAnError", Run: unreadableRecords, Needs: []kit.Capability{kit.Faults}},
	}}
}

// putRecords writes activity records of an execution.
func putRecords(f *kit.Fixture, executionID string, records ...provider.ActivityRecord) {
	f.T.Helper()
	f.Must(f.Provider.PutActivityRecords(f.Ctx(), executionID, records...))
}

// wantRecord fails if one of the two read methods does not return this record of an activity.
func wantRecord(f *kit.Fixture, executionID string, want provider.ActivityRecord) {
	f.T.Helper()
	got, err := f.Provider.ReadActivityRecord(f.Ctx(), executionID, want.ActivityID)
	f.Must(err)
	f.WantEqual("record", got, want)
	for _, r := range recordsOf(f, executionID) {
		if r.ActivityID == want.ActivityID {
			f.WantEqual("record among all", r, want)
		}
	}
}

func recordsOf(f *kit.Fixture, executionID string) (all []provider.ActivityRecord) {
	f.T.Helper()
	for r, err := range f.Provider.ReadActivityRecords(f.Ctx(), executionID) {
		f.Must(err)
		all = append(all, r)
	}
	return all
}

func recordFields(f *kit.Fixture) {
	now := f.StoredNow()
	r := provider.ActivityRecord{
		ActivityID: 3, SeenAt: now, EndedAt: now.Add(time.Second), CancelOutcome: provider.OutcomeStopped,
		Details: json.RawMessage(`{"page":7}`), LastHeartbeatAt: now.Add(-time.Minute),
		UnknownAt: now.Add(-2 * time.Minute), UnknownBuild: "b-1", BegunAt: now.Add(-90 * time.Second),
		InvocationTimeoutAttempt: 2, InvocationTimeouts: 1,
	}
	putRecords(f, "x", r)
	wantRecord(f, "x", r)
}

func partialRecords(f *kit.Fixture) {
	now := f.StoredNow()
	putRecords(f, "x", provider.ActivityRecord{ActivityID: 3, InvocationTimeoutAttempt: 1, InvocationTimeouts: 2})
	putRecords(f, "x", kit.Beat(3, now, `1`))
	putRecords(f, "x", provider.ActivityRecord{
		ActivityID: 3, SeenAt: now.Add(time.Second), EndedAt: now.Add(2 * time.Second),
		CancelOutcome: provider.OutcomeAbandoned,
	})
	putRecords(f, "x", kit.Beat(3, now.Add(3*time.Second), `2`))
	putRecords(f, "x", provider.ActivityRecord{
		ActivityID: 3, EndedAt: now.Add(4 * time.Second), CancelOutcome: provider.OutcomeCompleted,
	})
	putRecords(f, "x", provider.ActivityRecord{ActivityID: 3, UnknownAt: now, UnknownBuild: "b-1"})
	putRecords(f, "x", provider.ActivityRecord{ActivityID: 3, BegunAt: now.Add(time.Second)})
	putRecords(f, "x", provider.ActivityRecord{ActivityID: 3, UnknownAt: now.Add(time.Minute), UnknownBuild: "b-2"})
	wantRecord(f, "x", provider.ActivityRecord{
		ActivityID: 3, SeenAt: now.Add(time.Second), EndedAt: now.Add(4 * time.Second),
		CancelOutcome: provider.OutcomeCompleted,
		Details:       json.RawMessage(`2`), LastHeartbeatAt: now.Add(3 * time.Second), InvocationTimeoutAttempt: 1,
		InvocationTimeouts: 2,
		UnknownAt:          now.Add(time.Minute), UnknownBuild: "b-2", BegunAt: now.Add(time.Second),
	})
}

func emptyRecord(f *kit.Fixture) {
	putRecords(f, "x")
	putRecords(f, "x", provider.ActivityRecord{ActivityID: 3})
	if all := recordsOf(f, "x"); len(all) > 0 {
		f.T.Errorf("got unexpected activity records %s", kit.Text(all))
	}
}

func unknownRecord(f *kit.Fixture) {
	e := f.Start("a")
	e.Commit(kit.TurnStarted(), kit.Activity(kit.Queue))
	for _, executionID := range []string{e.Instance.ExecutionID, "unknown"} {
		wantRecord(f, executionID, provider.ActivityRecord{ActivityID: 3})
		if all := recordsOf(f, executionID); len(all) > 0 {
			f.T.Errorf("got unexpected activity records %s", kit.Text(all))
		}
	}
}

func recordOrder(f *kit.Fixture) {
	ids := []int64{1_000_000_007, 4, 40, 3, 399, 12, 5, 100_000}
	var records []provider.ActivityRecord
	for _, id := range ids {
		records = append(records, kit.Beat(id, f.StoredNow(), strconv.FormatInt(id, 10)))
	}
	putRecords(f, "x", records...)
	var got []int64
	for _, r := range recordsOf(f, "x") {
		got = append(got, r.ActivityID)
		f.WantEqual("details", string(r.Details), strconv.FormatInt(r.ActivityID, 10))
	}
	f.WantEqual("ids", got, []int64{3, 4, 5, 12, 40, 399, 100_000, 1_000_000_007})
}

func recordsPerExecution(f *kit.Fixture) {
	now := f.StoredNow()
	putRecords(f, "x", kit.Beat(3, now, `"of x"`))
	putRecords(f, "y", kit.Beat(3, now, `"of y"`), kit.Beat(4, now, `"of y"`))
	wantRecord(f, "x", kit.Beat(3, now, `"of x"`))
	wantRecord(f, "x", provider.ActivityRecord{ActivityID: 4})
	if all := recordsOf(f, "y"); len(all) != 2 || string(all[0].Details) != `"of y"` {
		f.T.Errorf("got unexpected activity records %s", kit.Text(all))
	}
}

func fewRecords(f *kit.Fixture) {
	putRecords(f, "x", kit.Beat(3, f.StoredNow(), `1`), kit.Beat(4, f.StoredNow(), `1`),
		kit.Beat(5, f.StoredNow(), `1`))
	all := f.Provider.ReadActivityRecords(f.Ctx(), "x")
	for range 2 { // a second time, from the beginning
		for r, err := range all {
			f.Must(err)
			if r.ActivityID != 3 {
				f.T.Errorf("first record is of activity %d, want 3", r.ActivityID)
			}
			break
		}
	}
}

// A work item can be redelivered after its activity was stopped. The worker then finds the activity cancelled.
func neverStarted(f *kit.Fixture) {
	now := f.StoredNow()
	never := provider.ActivityRecord{
		ActivityID: 3, SeenAt: now.Add(time.Hour), EndedAt: now.Add(time.Hour),
		CancelOutcome: provider.OutcomeNeverStarted,
	}
	stopped := provider.ActivityRecord{
		ActivityID: 3, SeenAt: now, EndedAt: now.Add(time.Second), CancelOutcome: provider.OutcomeStopped,
	}
	putRecords(f, "x", stopped)
	putRecords(f, "x", never)
	wantRecord(f, "x", stopped)
	putRecords(f, "y", kit.Beat(3, now, `1`)) // heartbeat of an attempt that did not end
	putRecords(f, "y", never)
	never.Details, never.LastHeartbeatAt = json.RawMessage(`1`), now
	wantRecord(f, "y", never)
}

// Two workers both assume that they hold the activity. The record of the later worker is kept.
func earlierHeartbeat(f *kit.Fixture) {
	now := f.StoredNow()
	putRecords(f, "x", kit.Beat(3, now, `"the later"`))
	putRecords(f, "x", kit.Beat(3, now.Add(-time.Millisecond), `"the earlier"`))
	wantRecord(f, "x", kit.Beat(3, now, `"the later"`))
	putRecords(f, "x", kit.Beat(3, now, `"the same moment"`))
	wantRecord(f, "x", kit.Beat(3, now, `"the same moment"`))
}

func detailsJSON(f *kit.Fixture) {
	docs := []string{
		`null`, `""`, `0`, `12345678901234567890.5e-3`, `{"ref":"r","sha256":"s","bytes":1}`,
		"\"<\\u0000\\ud800\\uffff\u00e9\U0001f600\"", `[1, {"a" : []}]`,
	}
	for i, doc := range docs {
		putRecords(f, "x", kit.Beat(int64(i+3), f.StoredNow(), doc))
	}
	for i, r := range recordsOf(f, "x") {
		f.WantEqual("details", string(r.Details), docs[i])
	}
}

func largeDetails(f *kit.Fixture) {
	doc := `"` + strings.Repeat("x", 200<<10-2) + `"` // the maximum size of a payload
	for id := int64(3); id < 10; id++ {
		putRecords(f, "x", kit.Beat(id, f.StoredNow(), doc))
	}
	all := recordsOf(f, "x") // more than a page of some stores
	if len(all) != 7 {
		f.T.Fatalf("got %d records, want 7", len(all))
	}
	for _, r := range all {
		if string(r.Details) != doc {
			f.T.Errorf("details of %d bytes, want %d", len(r.Details), len(doc))
		}
	}
}

// Activity records are stored outside the history.
func recordsNotInHistory(f *kit.Fixture) {
	e := f.Start("a")
	t1 := e.Commit(kit.TurnStarted(), kit.Activity(kit.Queue))
	putRecords(f, e.Instance.ExecutionID, kit.Beat(3, f.StoredNow(), `1`))
	t2 := e.Commit(kit.TurnStarted(), history.Event{
		Kind: history.ActivityCompleted, SourceEventID: 3, Attempt: 1, Result: history.Payload(`1`),
	})
	e.WantSegments(t1, t2)
	f.WantEqual("cancels", f.Cancels(e.Instance.ExecutionID), provider.Cancels(nil))
	wantRecord(f, e.Instance.ExecutionID, kit.Beat(3, recordsOf(f, e.Instance.ExecutionID)[0].LastHeartbeatAt, `1`))
}

func strongRecords(f *kit.Fixture) {
	now := f.StoredNow()
	putRecords(f, "x", kit.Beat(3, now, `1`))
	f.Lag(1)
	putRecords(f, "x", kit.Beat(3, now, `2`), kit.Beat(4, now, `3`))
	wantRecord(f, "x", kit.Beat(3, now, `2`))
	if all := recordsOf(f, "x"); len(all) != 2 {
		f.T.Errorf("got unexpected activity records %s", kit.Text(all))
	}
}

func refusedRecords(f *kit.Fixture) {
	f.Fail(kit.Fault{Operation: kit.Update, Failure: kit.Rejected})
	f.WantPermanent(f.Provider.PutActivityRecords(f.Ctx(), "x", kit.Beat(3, f.StoredNow(), `1`),
		kit.Beat(4, f.StoredNow(), `1`)))
	f.Fail(kit.Fault{})
	if all := recordsOf(f, "x"); len(all) > 0 {
		f.T.Errorf("got unexpected activity records %s", kit.Text(all))
	}
	hits := f.Fail(kit.Fault{Operation: kit.Update, Failure: kit.Throttled, Times: 1})
	putRecords(f, "x", kit.Beat(3, f.StoredNow(), `1`))
	if wantRecord(f, "x", kit.Beat(3, recordsOf(f, "x")[0].LastHeartbeatAt, `1`)); hits() != 1 {
		f.T.Errorf("%d calls were throttled", hits())
	}
}

func unreadableRecords(f *kit.Fixture) {
	putRecords(f, "x", kit.Beat(3, f.StoredNow(), `1`))
	f.Fail(kit.Fault{Operation: kit.Read, Failure: kit.Rejected})
	_, err := f.Provider.ReadActivityRecord(f.Ctx(), "x", 3)
	f.WantPermanent(err)
	failed := 0
	for _, err := range f.Provider.ReadActivityRecords(f.Ctx(), "x") {
		f.WantPermanent(err)
		failed++
	}
	if failed != 1 {
		f.T.Errorf("got %d errors, want 1", failed)
	}
}
