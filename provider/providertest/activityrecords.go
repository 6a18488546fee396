package providertest

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// Activity records: how a cancelled activity ended, and the details of heartbeats.
func activityRecords() group {
	return group{"activity records", []testCase{
		{name: "ARecordIsWhatWasLeft", run: recordFields},
		{name: "WhatIsNotSetIsKept", run: partialRecords},
		{name: "AnEmptyRecordLeavesNothing", run: emptyRecord},
		{name: "UnknownIsZero", run: unknownRecord},
		{name: "RecordsAreInOrderOfTheirIDs", run: recordOrder},
		{name: "RecordsArePerExecution", run: recordsPerExecution},
		{name: "AReaderOfRecordsMayStopEarly", run: fewRecords},
		{name: "NeverStartedIsNoLaterWord", run: neverStarted},
		{name: "EarlierHeartbeatsAreNoLaterWord", run: earlierHeartbeat},
		{name: "DetailsAreTheSameJSON", run: detailsJSON},
		{name: "LargeDetails", run: largeDetails},
		{name: "RecordsAreNoHistory", run: recordsBesideHistory},
		{name: "RecordsAreReadStrongly", run: strongRecords, needs: []Capability{StaleReads}},
		{name: "RefusedRecordsAreAnError", run: refusedRecords, needs: []Capability{Faults}},
		{name: "AnUnreachableRecordIsAnError", run: unreadableRecords, needs: []Capability{Faults}},
	}}
}

// left writes activity records of an execution.
func (f *fixture) left(executionID string, records ...provider.ActivityRecord) {
	f.t.Helper()
	f.must(f.p.PutActivityRecords(f.ctx(), executionID, records...))
}

// wantRecord fails unless both read methods return this record of an activity.
func (f *fixture) wantRecord(executionID string, want provider.ActivityRecord) {
	f.t.Helper()
	got, err := f.p.ReadActivityRecord(f.ctx(), executionID, want.ActivityID)
	f.must(err)
	f.wantEqual("record", got, want)
	for _, r := range f.recordsOf(executionID) {
		if r.ActivityID == want.ActivityID {
			f.wantEqual("record among all", r, want)
		}
	}
}

func (f *fixture) recordsOf(executionID string) (all []provider.ActivityRecord) {
	f.t.Helper()
	for r, err := range f.p.ReadActivityRecords(f.ctx(), executionID) {
		f.must(err)
		all = append(all, r)
	}
	return all
}

func beat(id int64, at time.Time, details string) provider.ActivityRecord {
	return provider.ActivityRecord{ActivityID: id, LastHeartbeatAt: at, Details: json.RawMessage(details)}
}

func recordFields(f *fixture) {
	now := f.now()
	r := provider.ActivityRecord{
		ActivityID: 3, SeenAt: now, EndedAt: now.Add(time.Second), CancelOutcome: provider.OutcomeStopped,
		Details: json.RawMessage(`{"page":7}`), LastHeartbeatAt: now.Add(-time.Minute),
		UnknownAt: now.Add(-2 * time.Minute), UnknownBuild: "b-1", BegunAt: now.Add(-90 * time.Second), InvocationTimeoutAttempt: 2, InvocationTimeouts: 1,
	}
	f.left("x", r)
	f.wantRecord("x", r)
}

func partialRecords(f *fixture) {
	now := f.now()
	f.left("x", provider.ActivityRecord{ActivityID: 3, InvocationTimeoutAttempt: 1, InvocationTimeouts: 2})
	f.left("x", beat(3, now, `1`))
	f.left("x", provider.ActivityRecord{ActivityID: 3, SeenAt: now.Add(time.Second), EndedAt: now.Add(2 * time.Second), CancelOutcome: provider.OutcomeAbandoned})
	f.left("x", beat(3, now.Add(3*time.Second), `2`))
	f.left("x", provider.ActivityRecord{ActivityID: 3, EndedAt: now.Add(4 * time.Second), CancelOutcome: provider.OutcomeCompleted})
	f.left("x", provider.ActivityRecord{ActivityID: 3, UnknownAt: now, UnknownBuild: "b-1"})
	f.left("x", provider.ActivityRecord{ActivityID: 3, BegunAt: now.Add(time.Second)})
	f.left("x", provider.ActivityRecord{ActivityID: 3, UnknownAt: now.Add(time.Minute), UnknownBuild: "b-2"})
	f.wantRecord("x", provider.ActivityRecord{
		ActivityID: 3, SeenAt: now.Add(time.Second), EndedAt: now.Add(4 * time.Second), CancelOutcome: provider.OutcomeCompleted,
		Details: json.RawMessage(`2`), LastHeartbeatAt: now.Add(3 * time.Second), InvocationTimeoutAttempt: 1, InvocationTimeouts: 2,
		UnknownAt: now.Add(time.Minute), UnknownBuild: "b-2", BegunAt: now.Add(time.Second),
	})
}

func emptyRecord(f *fixture) {
	f.left("x")
	f.left("x", provider.ActivityRecord{ActivityID: 3})
	if all := f.recordsOf("x"); len(all) > 0 {
		f.t.Errorf("unexpected activity records: %s", text(all))
	}
}

func unknownRecord(f *fixture) {
	e := f.start("a")
	e.commit(turnStarted(), activity(Queue))
	for _, executionID := range []string{e.instance.ExecutionID, "nobody's"} {
		f.wantRecord(executionID, provider.ActivityRecord{ActivityID: 3})
		if all := f.recordsOf(executionID); len(all) > 0 {
			f.t.Errorf("unexpected activity records: %s", text(all))
		}
	}
}

func recordOrder(f *fixture) {
	ids := []int64{1_000_000_007, 4, 40, 3, 399, 12, 5, 100_000}
	var records []provider.ActivityRecord
	for _, id := range ids {
		records = append(records, beat(id, f.now(), strconv.FormatInt(id, 10)))
	}
	f.left("x", records...)
	var got []int64
	for _, r := range f.recordsOf("x") {
		got = append(got, r.ActivityID)
		f.wantEqual("details", string(r.Details), strconv.FormatInt(r.ActivityID, 10))
	}
	f.wantEqual("ids", got, []int64{3, 4, 5, 12, 40, 399, 100_000, 1_000_000_007})
}

func recordsPerExecution(f *fixture) {
	now := f.now()
	f.left("x", beat(3, now, `"of x"`))
	f.left("y", beat(3, now, `"of y"`), beat(4, now, `"of y"`))
	f.wantRecord("x", beat(3, now, `"of x"`))
	f.wantRecord("x", provider.ActivityRecord{ActivityID: 4})
	if all := f.recordsOf("y"); len(all) != 2 || string(all[0].Details) != `"of y"` {
		f.t.Errorf("unexpected activity records: %s", text(all))
	}
}

func fewRecords(f *fixture) {
	f.left("x", beat(3, f.now(), `1`), beat(4, f.now(), `1`), beat(5, f.now(), `1`))
	all := f.p.ReadActivityRecords(f.ctx(), "x")
	for range 2 { // a second time, from the beginning
		for r, err := range all {
			f.must(err)
			if r.ActivityID != 3 {
				f.t.Errorf("first record is of activity %d, want 3", r.ActivityID)
			}
			break
		}
	}
}

// A work item can be redelivered after its activity was stopped. The worker then finds the activity cancelled.
func neverStarted(f *fixture) {
	now := f.now()
	never := provider.ActivityRecord{ActivityID: 3, SeenAt: now.Add(time.Hour), EndedAt: now.Add(time.Hour), CancelOutcome: provider.OutcomeNeverStarted}
	stopped := provider.ActivityRecord{ActivityID: 3, SeenAt: now, EndedAt: now.Add(time.Second), CancelOutcome: provider.OutcomeStopped}
	f.left("x", stopped)
	f.left("x", never)
	f.wantRecord("x", stopped)
	f.left("y", beat(3, now, `1`)) // of an attempt that did not end
	f.left("y", never)
	never.Details, never.LastHeartbeatAt = json.RawMessage(`1`), now
	f.wantRecord("y", never)
}

// Two workers both assume that they hold the activity. The record of the later one stays.
func earlierHeartbeat(f *fixture) {
	now := f.now()
	f.left("x", beat(3, now, `"the later"`))
	f.left("x", beat(3, now.Add(-time.Millisecond), `"the earlier"`))
	f.wantRecord("x", beat(3, now, `"the later"`))
	f.left("x", beat(3, now, `"the same moment"`))
	f.wantRecord("x", beat(3, now, `"the same moment"`))
}

func detailsJSON(f *fixture) {
	docs := []string{`null`, `""`, `0`, `12345678901234567890.5e-3`, `{"ref":"r","sha256":"s","bytes":1}`, "\"<\\u0000\\ud800\\uffff\u00e9\U0001f600\"", `[1, {"a" : []}]`}
	for i, doc := range docs {
		f.left("x", beat(int64(i+3), f.now(), doc))
	}
	for i, r := range f.recordsOf("x") {
		f.wantEqual("details", string(r.Details), docs[i])
	}
}

func largeDetails(f *fixture) {
	doc := `"` + strings.Repeat("x", 200<<10-2) + `"` // the maximum size of a payload
	for id := int64(3); id < 10; id++ {
		f.left("x", beat(id, f.now(), doc))
	}
	all := f.recordsOf("x") // more than a page of some stores
	if len(all) != 7 {
		f.t.Fatalf("%d records, want 7", len(all))
	}
	for _, r := range all {
		if string(r.Details) != doc {
			f.t.Errorf("details of %d bytes, want %d", len(r.Details), len(doc))
		}
	}
}

// Activity records are stored next to the history, but are not part of it.
func recordsBesideHistory(f *fixture) {
	e := f.start("a")
	t1 := e.commit(turnStarted(), activity(Queue))
	f.left(e.instance.ExecutionID, beat(3, f.now(), `1`))
	t2 := e.commit(turnStarted(), history.Event{Kind: history.ActivityCompleted, SourceEventID: 3, Attempt: 1, Result: history.Payload(`1`)})
	e.wantSegments(t1, t2)
	f.wantEqual("cancels", f.cancels(e.instance.ExecutionID), provider.Cancels(nil))
	f.wantRecord(e.instance.ExecutionID, beat(3, f.recordsOf(e.instance.ExecutionID)[0].LastHeartbeatAt, `1`))
}

func strongRecords(f *fixture) {
	now := f.now()
	f.left("x", beat(3, now, `1`))
	f.Lag(1)
	f.left("x", beat(3, now, `2`), beat(4, now, `3`))
	f.wantRecord("x", beat(3, now, `2`))
	if all := f.recordsOf("x"); len(all) != 2 {
		f.t.Errorf("unexpected activity records: %s", text(all))
	}
}

func refusedRecords(f *fixture) {
	f.Fail(Fault{Operation: Update, Failure: Rejected})
	f.wantPermanent(f.p.PutActivityRecords(f.ctx(), "x", beat(3, f.now(), `1`), beat(4, f.now(), `1`)))
	f.Fail(Fault{})
	if all := f.recordsOf("x"); len(all) > 0 {
		f.t.Errorf("unexpected activity records: %s", text(all))
	}
	hits := f.Fail(Fault{Operation: Update, Failure: Throttled, Times: 1})
	f.left("x", beat(3, f.now(), `1`))
	if f.wantRecord("x", beat(3, f.recordsOf("x")[0].LastHeartbeatAt, `1`)); hits() != 1 {
		f.t.Errorf("%d calls were throttled", hits())
	}
}

func unreadableRecords(f *fixture) {
	f.left("x", beat(3, f.now(), `1`))
	f.Fail(Fault{Operation: Read, Failure: Rejected})
	_, err := f.p.ReadActivityRecord(f.ctx(), "x", 3)
	f.wantPermanent(err)
	failed := 0
	for _, err := range f.p.ReadActivityRecords(f.ctx(), "x") {
		f.wantPermanent(err)
		failed++
	}
	if failed != 1 {
		f.t.Errorf("%d errors, want 1", failed)
	}
}
