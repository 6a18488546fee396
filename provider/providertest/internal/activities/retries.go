package activities

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/providertest/internal/kit"
)

// Retries tests that the store has one current attempt per activity, and that only a caller with the current head
// advances it (R14).
func Retries() kit.Group {
	return kit.Group{Name: "retries", Cases: []kit.Case{
		{Name: "FailureCausesNextAttempt", Run: nextAttempt},
		{Name: "OnlyOneFailureOfAnAttemptCounts", Run: oneOfTwoFailures},
		{Name: "RepeatedFailureSendsTheSameAttempt", Run: failureReportedAgain},
		{Name: "LastFailureCountsIfAttemptIsCurrent", Run: lastFailure},
		{Name: "UnknownHeadRetriesNothing", Run: retriesFenced},
		{Name: "NothingIsRetriedAfterADeletion", Run: retriesAfterDeletion},
		{Name: "DistantAttemptUsesTimer", Run: farAttempt, Needs: []kit.Capability{kit.VirtualTime}},
		{Name: "DueAttemptIsSentIfCurrent", Run: dueAttempt},
		{Name: "AttemptForUnknownQueueIsRejected", Run: refusedAttempt},
		{Name: "ManyActivitiesAreRetriedAtOnce", Run: manyRetries},
		{
			Name: "UnsentAttemptIsSentByRepeatedFailure", Run: attemptNotSent,
			Needs: []kit.Capability{kit.Faults},
		},
		{Name: "RetriesArePerExecutionAndInOrder", Run: retriesInOrder},
		{Name: "FailedAttemptsHaveSeparateMessage", Run: attemptsBundled},
		{Name: "SettledActivitiesEqualHistory", Run: settledSince},
		{Name: "DeletedInstanceHasNoRetries", Run: settledOfDeleted},
		{Name: "SettledActivitiesAreReadConsistently", Run: settledStrongly, Needs: []kit.Capability{kit.StaleReads}},
	}}
}

// attempted returns a failure of an attempt that is retried after the given time. 0 means no retry.
func attempted(e *kit.Execution, id int64, attempt int, run string, after time.Duration) provider.ActivityOutcome {
	o := provider.ActivityOutcome{
		ActivityID: id, Attempt: attempt, Run: run, Segment: 1,
		Error: &history.Failure{Type: "StockError", Message: run},
	}
	if after > 0 {
		at := e.F.StoredNow().Add(after)
		o.RetryAt = &at
	}
	return o
}

// retry calls RetryActivities with failures and the execution's head.
func retry(e *kit.Execution, failed ...provider.ActivityOutcome) provider.RetryResult {
	e.F.T.Helper()
	done, err := e.F.Provider.RetryActivities(e.F.Ctx(), &provider.RetryRequest{
		InstanceID: e.Instance.InstanceID, Head: e.Head, Failed: failed,
	})
	e.F.Must(err)
	return done
}

func wantVerdicts(e *kit.Execution, done provider.RetryResult, want ...provider.RetryVerdict) {
	e.F.T.Helper()
	e.F.WantEqual("verdicts", done.Failed, want)
}

// wantAttempts fails if the queue does not have exactly these attempts, written as activity.attempt.
func wantAttempts(f *kit.Fixture, want ...string) {
	f.T.Helper()
	got := []string{}
	for _, w := range f.Work(kit.Queue) {
		got = append(got, fmt.Sprintf("%d.%d", w.ActivityID, w.Attempt))
	}
	f.WantEqual("attempts", got, append([]string{}, want...))
}

// trying returns an execution that has scheduled n activities with a retry policy, starting with #3.
func trying(f *kit.Fixture, id string, n int) *kit.Execution {
	f.T.Helper()
	e := f.StartWithoutWake(id)
	a := kit.Activity(kit.Queue)
	a.Retry = &history.RetryPolicy{InitialIntervalMs: 1000}
	e.Commit(append([]history.Event{kit.TurnStarted()}, kit.Repeat(n, a)...)...)
	f.Work(kit.Queue)
	return e
}

func nextAttempt(f *kit.Fixture) {
	e := trying(f, "a", 2)
	o := attempted(e, 3, 1, "m.1", time.Millisecond)
	done := retry(e, o)
	if wantVerdicts(e, done, provider.RetryNext); !done.Verified || len(done.RejectedOutputs) > 0 {
		f.T.Errorf("got %+v", done)
	}
	items := f.Work(kit.Queue)
	if len(items) != 1 {
		f.T.Fatalf("got %d work items", len(items))
	}
	w := unsigned(f, items[0].WorkItem)
	f.WantEqual("work item", w, provider.WorkItem{
		V: provider.WireVersion, InstanceID: "a", ExecutionID: e.Instance.ExecutionID, Segment: 1, ActivityID: 3,
		Name: kit.Pack, Queue: kit.Queue, Attempt: 2,
		Input: history.Payload(`"box"`), Retry: &history.RetryPolicy{
			InitialIntervalMs: 1000,
		}, NotBefore: o.RetryAt, PossibleDuplicate: true,
	})
	r, err := f.Provider.ReadRetry(f.Ctx(), e.Instance.ExecutionID, 3)
	f.Must(err)
	if r.FailedAt.IsZero() || r.FailedAt.After(f.Now()) {
		f.T.Errorf("failed at %v", r.FailedAt)
	}
	r.FailedAt = time.Time{}
	f.WantEqual("retry", r, provider.ActivityRetry{
		ActivityID: 3, Attempt: 2, Run: "m.1", At: *o.RetryAt, Error: o.Error,
	})
	r, err = f.Provider.ReadRetry(f.Ctx(), e.Instance.ExecutionID, 4)
	f.Must(err)
	f.WantEqual("retry", r, provider.ActivityRetry{ActivityID: 4})
	e.WantSegments(&provider.Turn{Head: provider.Head{}, Watermark: kit.At(1), Events: e.Read().Segments[1].Events})
}

func oneOfTwoFailures(f *kit.Fixture) {
	e := trying(f, "a", 1)
	wantVerdicts(e, retry(e, attempted(e, 3, 1, "m.1", time.Millisecond), attempted(e, 3, 1, "n.1", time.Millisecond)),
		provider.RetryNext, provider.RetryStale)
	wantAttempts(f, "3.2")
	wantVerdicts(e, retry(e, attempted(e, 3, 1, "n.1", time.Millisecond)), provider.RetryStale)
	wantAttempts(f)
	wantVerdicts(e, retry(e, attempted(e, 3, 2, "o.1", time.Millisecond)), provider.RetryNext)
	wantAttempts(f, "3.3")
}

func failureReportedAgain(f *kit.Fixture) {
	e := trying(f, "a", 1)
	o := attempted(e, 3, 1, "m.1", time.Millisecond)
	retry(e, o)
	first, err := f.Provider.ReadRetry(f.Ctx(), e.Instance.ExecutionID, 3)
	f.Must(err)
	later := o.RetryAt.Add(time.Hour)
	o.RetryAt = &later
	wantVerdicts(e, retry(e, o), provider.RetryNext)
	again, err := f.Provider.ReadRetry(f.Ctx(), e.Instance.ExecutionID, 3)
	f.Must(err)
	f.WantEqual("sent again", again, first)
	for _, w := range f.Work(kit.Queue) { // the dispatch may omit items that have arrived
		if w.Attempt != 2 || !w.NotBefore.Equal(first.At) {
			f.T.Errorf("sent: got %s", kit.Text(w))
		}
	}
}

func lastFailure(f *kit.Fixture) {
	e := trying(f, "a", 2)
	wantVerdicts(e, retry(e, attempted(e, 3, 1, "m.1", 0)), provider.RetryExhausted)
	retry(e, attempted(e, 3, 1, "m.2", time.Millisecond))
	wantVerdicts(e, retry(e, attempted(e, 3, 1, "m.3", 0), attempted(e, 3, 2, "n.1", 0),
		attempted(e, 3, 2, "n.2", time.Millisecond), attempted(e, 4, 1, "o.1", 0)),
		provider.RetryStale, provider.RetryExhausted, provider.RetryStale, provider.RetryExhausted)
	wantAttempts(f, "3.2")
}

func retriesFenced(f *kit.Fixture) {
	e := trying(f, "a", 1)
	behind := e.Head
	e.Commit(kit.Completed(3))
	for _, r := range []provider.RetryRequest{
		{
			Failed: []provider.ActivityOutcome{attempted(e, 3, 1, "m.1", time.Millisecond)},
		}, {Due: []provider.DueAttempt{{ActivityID: 3, Attempt: 2, Segment: 1}}},
	} {
		r.InstanceID, r.Head = "a", behind
		_, err := f.Provider.RetryActivities(f.Ctx(), &r)
		f.WantErrorIs(err, provider.ErrConflict)
	}
	wantAttempts(f)
	if r, err := f.Provider.ReadRetry(f.Ctx(), e.Instance.ExecutionID, 3); err != nil || r.Attempt != 0 {
		f.T.Errorf("got %+v, error %v", r, err)
	}
}

func retriesAfterDeletion(f *kit.Fixture) {
	e := trying(f, "a", 2)
	retry(e, attempted(e, 4, 1, "m.1", time.Millisecond))
	f.Must(f.Provider.DeleteInstance(f.Ctx(), "a", true))
	r := provider.RetryRequest{
		InstanceID: "a", Head: e.Head, Failed: []provider.ActivityOutcome{attempted(e, 3, 1, "m.1", time.Millisecond)},
	}
	_, err := f.Provider.RetryActivities(f.Ctx(), &r)
	f.WantErrorIs(err, provider.ErrConflict)
	for r, err := range f.Provider.ReadRetries(f.Ctx(), e.Instance.ExecutionID) {
		f.T.Errorf("left: got %+v, error %v", r, err)
	}
}

func farAttempt(f *kit.Fixture) {
	e := trying(f, "a", 1)
	o := attempted(e, 3, 1, "m.1", 10*time.Hour)
	retry(e, o)
	wantAttempts(f)
	f.Advance(15 * time.Minute)
	timers := f.Timers()
	if len(timers) != 1 || timers[0].TimerID != 3 || timers[0].Attempt != 2 || timers[0].Activity ||
		timers[0].Segment != 1 || !timers[0].FireAt.Equal(*o.RetryAt) {
		f.T.Errorf("got timers %s", kit.Text(timers))
	}
}

func dueAttempt(f *kit.Fixture) {
	e := trying(f, "a", 2)
	retry(e, attempted(e, 3, 1, "m.1", time.Millisecond), attempted(e, 4, 1, "n.1", time.Millisecond))
	retry(e, attempted(e, 4, 2, "n.2", time.Millisecond))
	f.Work(kit.Queue)
	r := provider.RetryRequest{
		InstanceID: "a", Head: e.Head,
		Due: []provider.DueAttempt{
			{ActivityID: 3, Attempt: 2, Segment: 1},
			{ActivityID: 4, Attempt: 2, Segment: 1},
			{ActivityID: 9, Attempt: 2, Segment: 1},
		},
	}
	done, err := f.Provider.RetryActivities(f.Ctx(), &r)
	f.Must(err)
	if !done.Verified {
		f.T.Error("not verified")
	}
	wantAttempts(f, "3.2")
	r.Due = []provider.DueAttempt{{ActivityID: 4, Segment: 1}}
	_, err = f.Provider.RetryActivities(f.Ctx(), &r)
	f.Must(err)
	wantAttempts(f, "4.3")
}

func refusedAttempt(f *kit.Fixture) {
	e := f.StartWithoutWake("a")
	_, err := f.Provider.AckOrchestrationItem(f.Ctx(), e.Turn(kit.TurnStarted(), kit.Activity("nowhere")))
	f.Must(err)
	e.Head.Segment, e.Head.Watermark = 1, kit.At(1)
	done := retry(e, attempted(e, 3, 1, "m.1", time.Millisecond))
	if wantVerdicts(e, done, provider.RetryNext); len(done.RejectedOutputs) != 1 ||
		done.RejectedOutputs[0].EventID != 3 || !strings.Contains(done.RejectedOutputs[0].Failure.Message, "nowhere") {
		f.T.Errorf("rejected outputs: got %s", kit.Text(done.RejectedOutputs))
	}
	again := retry(e, attempted(e, 3, 1, "m.1", time.Millisecond))
	f.WantEqual("rejected again", again.RejectedOutputs, done.RejectedOutputs)
}

func manyRetries(f *kit.Fixture) {
	const n = 230
	e := trying(f, "a", n)
	var failed []provider.ActivityOutcome
	for i := range int64(n) {
		failed = append(failed, attempted(e, 3+i, 1, fmt.Sprint("m", i), time.Millisecond))
	}
	retry(e, failed[7], failed[150])
	f.Work(kit.Queue)
	failed[7].Run = "another"
	done := retry(e, failed...)
	stale := slices.Index(done.Failed, provider.RetryStale)
	if stale != 7 || slices.Contains(done.Failed[8:], provider.RetryStale) {
		f.T.Errorf("got verdicts %v", done.Failed)
	}
	if items := f.Work(kit.Queue); len(items) < n-2 || len(items) > n-1 { // the dispatch may omit one of the two
		f.T.Errorf("got %d work items sent", len(items))
	}
}

func attemptNotSent(f *kit.Fixture) {
	e := trying(f, "a", 1)
	f.Fail(kit.Fault{Operation: kit.Send, Failure: kit.Rejected, Times: 1})
	r := provider.RetryRequest{
		InstanceID: "a", Head: e.Head, Failed: []provider.ActivityOutcome{attempted(e, 3, 1, "m.1", time.Millisecond)},
	}
	if _, err := f.Provider.RetryActivities(f.Ctx(), &r); err == nil {
		f.T.Error("no error although a work item was not sent")
	}
	wantAttempts(f)
	wantVerdicts(e, retry(e, r.Failed...), provider.RetryNext)
	wantAttempts(f, "3.2")
}

func retriesInOrder(f *kit.Fixture) {
	a, b := trying(f, "a", 12), trying(f, "b", 1)
	retry(b, attempted(b, 3, 1, "m.1", time.Millisecond))
	for _, id := range []int64{14, 3, 10, 5} {
		retry(a, attempted(a, id, 1, "m.1", time.Millisecond))
	}
	var ids []int64
	for r, err := range f.Provider.ReadRetries(f.Ctx(), a.Instance.ExecutionID) {
		f.Must(err)
		ids = append(ids, r.ActivityID)
		if r.Attempt != 2 || r.Error == nil {
			f.T.Errorf("got %+v", r)
		}
	}
	f.WantEqual("ids", ids, []int64{3, 5, 10, 14})
	for _, err := range f.Provider.ReadRetries(f.Ctx(), a.Instance.ExecutionID) {
		f.Must(err)
		break // a reader may stop early
	}
}

func attemptsBundled(f *kit.Fixture) {
	e := trying(f, "a", 0)
	e.Commit(kit.Activity(kit.Queue), kit.Activity(kit.Queue), kit.Activity(kit.Queue))
	var done []provider.CompletedWorkItem
	for i, it := range f.Locked(kit.Queue) {
		o := provider.ActivityOutcome{ActivityID: it.ActivityID, Attempt: 1, Result: history.Payload("1")}
		if i > 0 {
			o = attempted(e, it.ActivityID, 1, fmt.Sprint("m.", i), time.Second)
		}
		done = append(done, provider.CompletedWorkItem{LockedWorkItem: &it, Outcome: &o})
	}
	_, err := f.Provider.AckWorkItems(f.Ctx(), kit.Queue, done)
	f.Must(err)
	got := map[provider.MessageKind]int{}
	for _, m := range f.Messages() {
		got[m.Kind] += len(m.Outcomes)
		for _, o := range m.Outcomes {
			if (o.Run != "") != (m.Kind == provider.MessageActivityAttempts) || o.Run != "" && o.RetryAt == nil {
				f.T.Errorf("%s: got %s", m.Kind, kit.Text(o))
			}
		}
	}
	f.WantEqual("outcomes", got, map[provider.MessageKind]int{
		provider.MessageActivityOutcomes: 1, provider.MessageActivityAttempts: 2,
	})
}

func settledSince(f *kit.Fixture) {
	e := f.StartWithoutWake("a")
	x := e.Instance.ExecutionID
	settled := func(from int64) (ids []int64, s provider.Settlements) {
		s, err := f.Provider.ReadSettled(f.Ctx(), x, from)
		f.Must(err)
		for _, r := range slices.Concat(s.IDs, s.Cancelled) {
			for id := r.First; id <= r.Last; id++ {
				ids = append(ids, id)
			}
		}
		slices.Sort(ids)
		return ids, s
	}
	e.Commit(append([]history.Event{kit.TurnStarted()}, kit.Repeat(6, kit.Activity(kit.Queue))...)...) // 3 to 8
	e.Commit(kit.Completed(3), kit.Completed(5))
	e.Commit(history.Event{
		Kind: history.ActivityCancelRequested, SourceEventIDs: []history.Range{{First: 6, Last: 7}}, Reason: "r",
		RequestedBy: history.RequestedByOrchestration,
	})
	e.Commit(history.Event{Kind: history.ActivityRetryScheduled, SourceEventID: 4, Attempt: 2})
	ids, s := settled(1)
	f.WantEqual("settled", ids, []int64{3, 5, 6, 7})
	if s.Next != 5 || s.Ended || len(s.Cancelled) != 1 || s.Cancelled[0] != (history.Range{First: 6, Last: 7}) {
		f.T.Errorf("got %+v", s)
	}
	if ids, s := settled(3); len(ids) != 2 || s.Next != 5 {
		f.T.Errorf("settled from segment 3: got %v, %+v", ids, s)
	}
	// several parts
	e.Commit(kit.Bulky(900<<10), history.Event{
		Kind: history.InputsParked, BuildID: "b", Inputs: []history.Event{kit.Completed(4)},
		Error: &history.Failure{Type: "T"},
	})
	ids, s = settled(5)
	f.WantEqual("parked", ids, []int64{4})
	if got, s := settled(s.Next); len(got) > 0 || s.Next != 6 || s.Ended {
		f.T.Errorf("settled after the last page: got %v, %+v", got, s)
	}
	e.Commit(kit.Ended(`1`))
	if _, s := settled(6); !s.Ended || s.Deleted || s.Next != 7 {
		f.T.Errorf("settled of an ended execution: got %+v", s)
	}
}

func settledOfDeleted(f *kit.Fixture) {
	e := trying(f, "a", 1)
	f.Must(f.Provider.DeleteInstance(f.Ctx(), "a", true))
	for _, from := range []int64{1, 2} {
		if s, err := f.Provider.ReadSettled(f.Ctx(), e.Instance.ExecutionID, from); err != nil || !s.Ended ||
			!s.Deleted {
			f.T.Errorf("settled of a deleted instance from segment %d: got %+v, error %v", from, s, err)
		}
	}
	if s, err := f.Provider.ReadSettled(f.Ctx(), "unknown", 1); err != nil || s.Next != 1 || s.Ended {
		f.T.Errorf("settled of an unknown execution: got %+v, error %v", s, err)
	}
}

func settledStrongly(f *kit.Fixture) {
	e := trying(f, "a", 1)
	f.Lag(100)
	e.Commit(kit.Completed(3))
	if s, err := f.Provider.ReadSettled(f.Ctx(), e.Instance.ExecutionID, 1); err != nil || len(s.IDs) != 1 ||
		s.Next != 3 {
		f.T.Errorf("got %+v, error %v", s, err)
	}
}
