package providertest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// The store has one current attempt per activity, and only the holder of the head advances it (R14).
func retries() group {
	return group{"retries", []testCase{
		{name: "AFailureLeadsToTheNextAttempt", run: nextAttempt},
		{name: "OneOfTwoFailuresOfAnAttemptCounts", run: oneOfTwoFailures},
		{name: "AFailureThatIsToldAgainSendsTheSameAttempt", run: failureToldAgain},
		{name: "TheLastFailureCountsIfItsAttemptIsCurrent", run: lastFailure},
		{name: "AHeadThatIsNoneRetriesNothing", run: retriesFenced},
		{name: "NothingIsRetriedAfterADeletion", run: retriesAfterDeletion},
		{name: "AnAttemptThatIsFarAwayIsATimer", run: farAttempt, needs: []Capability{VirtualTime}},
		{name: "WhatIsDueIsSentIfItIsCurrent", run: dueAttempt},
		{name: "AnAttemptForAnUnknownQueueIsRefused", run: refusedAttempt},
		{name: "ManyActivitiesAreRetriedAtOnce", run: manyRetries},
		{name: "AnAttemptThatWasNotSentIsSentByTheNextTelling", run: attemptNotSent, needs: []Capability{Faults}},
		{name: "RetriesArePerExecutionAndInOrder", run: retriesInOrder},
		{name: "FailedAttemptsAreAMessageOfTheirOwn", run: attemptsBundled},
		{name: "SettledIsWhatHistorySays", run: settledSince},
		{name: "NothingIsThereOfWhatIsDeleted", run: settledOfDeleted},
		{name: "SettledIsReadStrongly", run: settledStrongly, needs: []Capability{StaleReads}},
	}}
}

// attempted returns a failure of an attempt that is retried after the given time, or not retried if it is 0.
func (e *execution) attempted(id int64, attempt int, run string, after time.Duration) provider.ActivityOutcome {
	o := provider.ActivityOutcome{ActivityID: id, Attempt: attempt, Run: run, Segment: 1, Error: &history.Failure{Type: "StockError", Message: run}}
	if after > 0 {
		at := e.f.now().Add(after)
		o.RetryAt = &at
	}
	return o
}

// retry handles failures with the execution's head.
func (e *execution) retry(failed ...provider.ActivityOutcome) provider.RetryResult {
	e.f.t.Helper()
	done, err := e.f.p.RetryActivities(e.f.ctx(), &provider.RetryRequest{InstanceID: e.instance.InstanceID, Head: e.head, Failed: failed})
	e.f.must(err)
	return done
}

func (e *execution) wantVerdicts(done provider.RetryResult, want ...provider.RetryVerdict) {
	e.f.t.Helper()
	e.f.wantEqual("verdicts", done.Failed, want)
}

// wantAttempts fails unless a queue has these attempts, written as activity.attempt.
func (f *fixture) wantAttempts(want ...string) {
	f.t.Helper()
	got := []string{}
	for _, w := range f.work(Queue) {
		got = append(got, fmt.Sprintf("%d.%d", w.ActivityID, w.Attempt))
	}
	f.wantEqual("attempts", got, append([]string{}, want...))
}

// trying returns an execution that has scheduled n activities with a retry policy, from #3 on.
func (f *fixture) trying(id string, n int) *execution {
	f.t.Helper()
	e := f.quiet(id)
	a := activity(Queue)
	a.Retry = &history.RetryPolicy{InitialIntervalMs: 1000}
	e.commit(append([]history.Event{turnStarted()}, repeat(n, a)...)...)
	f.work(Queue)
	return e
}

func nextAttempt(f *fixture) {
	e := f.trying("a", 2)
	o := e.attempted(3, 1, "m.1", time.Millisecond)
	done := e.retry(o)
	if e.wantVerdicts(done, provider.RetryNext); !done.Verified || len(done.RejectedOutputs) > 0 {
		f.t.Errorf("%+v", done)
	}
	items := f.work(Queue)
	if len(items) != 1 {
		f.t.Fatalf("%d work items", len(items))
	}
	w := f.unsigned(items[0].WorkItem)
	f.wantEqual("work item", w, provider.WorkItem{
		V: provider.WireVersion, InstanceID: "a", ExecutionID: e.instance.ExecutionID, Segment: 1, ActivityID: 3, Name: pack, Queue: Queue, Attempt: 2,
		Input: history.Payload(`"box"`), Retry: &history.RetryPolicy{InitialIntervalMs: 1000}, NotBefore: o.RetryAt, PossibleDuplicate: true,
	})
	r, err := f.p.ReadRetry(f.ctx(), e.instance.ExecutionID, 3)
	f.must(err)
	if r.FailedAt.IsZero() || r.FailedAt.After(f.Now()) {
		f.t.Errorf("failed at %v", r.FailedAt)
	}
	r.FailedAt = time.Time{}
	f.wantEqual("retry", r, provider.ActivityRetry{ActivityID: 3, Attempt: 2, Run: "m.1", At: *o.RetryAt, Error: o.Error})
	r, err = f.p.ReadRetry(f.ctx(), e.instance.ExecutionID, 4)
	f.must(err)
	f.wantEqual("retry", r, provider.ActivityRetry{ActivityID: 4})
	e.wantSegments(&provider.Turn{Head: provider.Head{}, Watermark: at(1), Events: e.read().Segments[1].Events})
}

func oneOfTwoFailures(f *fixture) {
	e := f.trying("a", 1)
	e.wantVerdicts(e.retry(e.attempted(3, 1, "m.1", time.Millisecond), e.attempted(3, 1, "n.1", time.Millisecond)), provider.RetryNext, provider.RetryStale)
	f.wantAttempts("3.2")
	e.wantVerdicts(e.retry(e.attempted(3, 1, "n.1", time.Millisecond)), provider.RetryStale)
	f.wantAttempts()
	e.wantVerdicts(e.retry(e.attempted(3, 2, "o.1", time.Millisecond)), provider.RetryNext)
	f.wantAttempts("3.3")
}

func failureToldAgain(f *fixture) {
	e := f.trying("a", 1)
	o := e.attempted(3, 1, "m.1", time.Millisecond)
	e.retry(o)
	first, err := f.p.ReadRetry(f.ctx(), e.instance.ExecutionID, 3)
	f.must(err)
	later := o.RetryAt.Add(time.Hour)
	o.RetryAt = &later
	e.wantVerdicts(e.retry(o), provider.RetryNext)
	again, err := f.p.ReadRetry(f.ctx(), e.instance.ExecutionID, 3)
	f.must(err)
	f.wantEqual("sent again", again, first)
	for _, w := range f.work(Queue) { // the second one may be known to have arrived
		if w.Attempt != 2 || !w.NotBefore.Equal(first.At) {
			f.t.Errorf("sent: %s", text(w))
		}
	}
}

func lastFailure(f *fixture) {
	e := f.trying("a", 2)
	e.wantVerdicts(e.retry(e.attempted(3, 1, "m.1", 0)), provider.RetryExhausted)
	e.retry(e.attempted(3, 1, "m.2", time.Millisecond))
	e.wantVerdicts(e.retry(e.attempted(3, 1, "m.3", 0), e.attempted(3, 2, "n.1", 0), e.attempted(3, 2, "n.2", time.Millisecond), e.attempted(4, 1, "o.1", 0)),
		provider.RetryStale, provider.RetryExhausted, provider.RetryStale, provider.RetryExhausted)
	f.wantAttempts("3.2")
}

func retriesFenced(f *fixture) {
	e := f.trying("a", 1)
	behind := e.head
	e.commit(completed(3))
	for _, r := range []provider.RetryRequest{
		{Failed: []provider.ActivityOutcome{e.attempted(3, 1, "m.1", time.Millisecond)}}, {Due: []provider.DueAttempt{{ActivityID: 3, Attempt: 2, Segment: 1}}},
	} {
		r.InstanceID, r.Head = "a", behind
		_, err := f.p.RetryActivities(f.ctx(), &r)
		f.wantIs(err, provider.ErrConflict)
	}
	f.wantAttempts()
	if r, err := f.p.ReadRetry(f.ctx(), e.instance.ExecutionID, 3); err != nil || r.Attempt != 0 {
		f.t.Errorf("%+v, %v", r, err)
	}
}

func retriesAfterDeletion(f *fixture) {
	e := f.trying("a", 2)
	e.retry(e.attempted(4, 1, "m.1", time.Millisecond))
	f.must(f.p.DeleteInstance(f.ctx(), "a", true))
	r := provider.RetryRequest{InstanceID: "a", Head: e.head, Failed: []provider.ActivityOutcome{e.attempted(3, 1, "m.1", time.Millisecond)}}
	_, err := f.p.RetryActivities(f.ctx(), &r)
	f.wantIs(err, provider.ErrConflict)
	for r, err := range f.p.ReadRetries(f.ctx(), e.instance.ExecutionID) {
		f.t.Errorf("left: %+v, %v", r, err)
	}
}

func farAttempt(f *fixture) {
	e := f.trying("a", 1)
	o := e.attempted(3, 1, "m.1", 10*time.Hour)
	e.retry(o)
	f.wantAttempts()
	f.Advance(15 * time.Minute)
	timers := f.timers()
	if len(timers) != 1 || timers[0].TimerID != 3 || timers[0].Attempt != 2 || timers[0].Activity || timers[0].Segment != 1 || !timers[0].FireAt.Equal(*o.RetryAt) {
		f.t.Errorf("timers %s", text(timers))
	}
}

func dueAttempt(f *fixture) {
	e := f.trying("a", 2)
	e.retry(e.attempted(3, 1, "m.1", time.Millisecond), e.attempted(4, 1, "n.1", time.Millisecond))
	e.retry(e.attempted(4, 2, "n.2", time.Millisecond))
	f.work(Queue)
	r := provider.RetryRequest{InstanceID: "a", Head: e.head, Due: []provider.DueAttempt{{ActivityID: 3, Attempt: 2, Segment: 1}, {ActivityID: 4, Attempt: 2, Segment: 1}, {ActivityID: 9, Attempt: 2, Segment: 1}}}
	done, err := f.p.RetryActivities(f.ctx(), &r)
	f.must(err)
	if !done.Verified {
		f.t.Error("not verified")
	}
	f.wantAttempts("3.2")
	r.Due = []provider.DueAttempt{{ActivityID: 4, Segment: 1}}
	_, err = f.p.RetryActivities(f.ctx(), &r)
	f.must(err)
	f.wantAttempts("4.3")
}

func refusedAttempt(f *fixture) {
	e := f.quiet("a")
	_, err := f.p.AckOrchestrationItem(f.ctx(), e.turn(turnStarted(), activity("nowhere")))
	f.must(err)
	e.head.Segment, e.head.Watermark = 1, at(1)
	done := e.retry(e.attempted(3, 1, "m.1", time.Millisecond))
	if e.wantVerdicts(done, provider.RetryNext); len(done.RejectedOutputs) != 1 || done.RejectedOutputs[0].EventID != 3 || !strings.Contains(done.RejectedOutputs[0].Failure.Message, "nowhere") {
		f.t.Errorf("rejected outputs: %s", text(done.RejectedOutputs))
	}
	again := e.retry(e.attempted(3, 1, "m.1", time.Millisecond))
	f.wantEqual("rejected again", again.RejectedOutputs, done.RejectedOutputs)
}

func manyRetries(f *fixture) {
	const n = 230
	e := f.trying("a", n)
	var failed []provider.ActivityOutcome
	for i := range int64(n) {
		failed = append(failed, e.attempted(3+i, 1, fmt.Sprint("m", i), time.Millisecond))
	}
	e.retry(failed[7], failed[150])
	f.work(Queue)
	failed[7].Run = "another"
	done := e.retry(failed...)
	stale := slices.Index(done.Failed, provider.RetryStale)
	if stale != 7 || slices.Contains(done.Failed[8:], provider.RetryStale) {
		f.t.Errorf("verdicts %v", done.Failed)
	}
	if items := f.work(Queue); len(items) < n-2 || len(items) > n-1 { // one of the two may be known to have arrived
		f.t.Errorf("%d work items sent", len(items))
	}
}

func attemptNotSent(f *fixture) {
	e := f.trying("a", 1)
	f.Fail(Fault{Operation: Send, Failure: Rejected, Times: 1})
	r := provider.RetryRequest{InstanceID: "a", Head: e.head, Failed: []provider.ActivityOutcome{e.attempted(3, 1, "m.1", time.Millisecond)}}
	if _, err := f.p.RetryActivities(f.ctx(), &r); err == nil {
		f.t.Error("no error although a work item was not sent")
	}
	f.wantAttempts()
	e.wantVerdicts(e.retry(r.Failed...), provider.RetryNext)
	f.wantAttempts("3.2")
}

func retriesInOrder(f *fixture) {
	a, b := f.trying("a", 12), f.trying("b", 1)
	b.retry(b.attempted(3, 1, "m.1", time.Millisecond))
	for _, id := range []int64{14, 3, 10, 5} {
		a.retry(a.attempted(id, 1, "m.1", time.Millisecond))
	}
	var ids []int64
	for r, err := range f.p.ReadRetries(f.ctx(), a.instance.ExecutionID) {
		f.must(err)
		ids = append(ids, r.ActivityID)
		if r.Attempt != 2 || r.Error == nil {
			f.t.Errorf("%+v", r)
		}
	}
	f.wantEqual("ids", ids, []int64{3, 5, 10, 14})
	for _, err := range f.p.ReadRetries(f.ctx(), a.instance.ExecutionID) {
		f.must(err)
		break // a reader may stop early
	}
}

func attemptsBundled(f *fixture) {
	e := f.trying("a", 0)
	e.commit(activity(Queue), activity(Queue), activity(Queue))
	var done []provider.CompletedWorkItem
	for i, it := range f.locked(Queue) {
		o := provider.ActivityOutcome{ActivityID: it.ActivityID, Attempt: 1, Result: history.Payload("1")}
		if i > 0 {
			o = e.attempted(it.ActivityID, 1, fmt.Sprint("m.", i), time.Second)
		}
		done = append(done, provider.CompletedWorkItem{LockedWorkItem: &it, Outcome: &o})
	}
	_, err := f.p.AckWorkItems(f.ctx(), Queue, done)
	f.must(err)
	got := map[provider.MessageKind]int{}
	for _, m := range f.messages() {
		got[m.Kind] += len(m.Outcomes)
		for _, o := range m.Outcomes {
			if (o.Run != "") != (m.Kind == provider.MessageActivityAttempts) || o.Run != "" && o.RetryAt == nil {
				f.t.Errorf("%s: %s", m.Kind, text(o))
			}
		}
	}
	f.wantEqual("outcomes", got, map[provider.MessageKind]int{provider.MessageActivityOutcomes: 1, provider.MessageActivityAttempts: 2})
}

func settledSince(f *fixture) {
	e := f.quiet("a")
	x := e.instance.ExecutionID
	settled := func(from int64) (ids []int64, s provider.Settlements) {
		s, err := f.p.ReadSettled(f.ctx(), x, from)
		f.must(err)
		for _, r := range slices.Concat(s.IDs, s.Cancelled) {
			for id := r.First; id <= r.Last; id++ {
				ids = append(ids, id)
			}
		}
		slices.Sort(ids)
		return ids, s
	}
	e.commit(append([]history.Event{turnStarted()}, repeat(6, activity(Queue))...)...) // 3 to 8
	e.commit(completed(3), completed(5))
	e.commit(history.Event{Kind: history.ActivityCancelRequested, SourceEventIDs: []history.Range{{First: 6, Last: 7}}, Reason: "r", RequestedBy: history.RequestedByOrchestration})
	e.commit(history.Event{Kind: history.ActivityRetryScheduled, SourceEventID: 4, Attempt: 2})
	ids, s := settled(1)
	f.wantEqual("settled", ids, []int64{3, 5, 6, 7})
	if s.Next != 5 || s.Ended || len(s.Cancelled) != 1 || s.Cancelled[0] != (history.Range{First: 6, Last: 7}) {
		f.t.Errorf("%+v", s)
	}
	if ids, s := settled(3); len(ids) != 2 || s.Next != 5 {
		f.t.Errorf("settled from segment 3: %v, %+v", ids, s)
	}
	e.commit(bulky(900<<10), history.Event{Kind: history.InputsParked, BuildID: "b", Inputs: []history.Event{completed(4)}, Error: &history.Failure{Type: "T"}}) // several parts
	ids, s = settled(5)
	f.wantEqual("parked", ids, []int64{4})
	if got, s := settled(s.Next); len(got) > 0 || s.Next != 6 || s.Ended {
		f.t.Errorf("settled after the last page: %v, %+v", got, s)
	}
	e.commit(ended(`1`))
	if _, s := settled(6); !s.Ended || s.Deleted || s.Next != 7 {
		f.t.Errorf("settled of an ended execution: %+v", s)
	}
}

func settledOfDeleted(f *fixture) {
	e := f.trying("a", 1)
	f.must(f.p.DeleteInstance(f.ctx(), "a", true))
	for _, from := range []int64{1, 2} {
		if s, err := f.p.ReadSettled(f.ctx(), e.instance.ExecutionID, from); err != nil || !s.Ended || !s.Deleted {
			f.t.Errorf("settled of a deleted instance from segment %d: %+v, %v", from, s, err)
		}
	}
	if s, err := f.p.ReadSettled(f.ctx(), "nobody's", 1); err != nil || s.Next != 1 || s.Ended {
		f.t.Errorf("settled of an unknown execution: %+v, %v", s, err)
	}
}

func settledStrongly(f *fixture) {
	e := f.trying("a", 1)
	f.Lag(100)
	e.commit(completed(3))
	if s, err := f.p.ReadSettled(f.ctx(), e.instance.ExecutionID, 1); err != nil || len(s.IDs) != 1 || s.Next != 3 {
		f.t.Errorf("%+v, %v", s, err)
	}
}
