package activities

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/providertest/internal/kit"
	"github.com/perdure/perdure/provider/worktoken"
)

// Pending tests asynchronous completion (R26). A token cannot be forged, only one message at a time advances the stored
// time, and each heartbeat is stored or rejected.
func Pending() kit.Group {
	return kit.Group{Name: "pending", Cases: []kit.Case{
		{Name: "TokenDecodesToSignedContents", Run: completionTokens},
		{Name: "InvalidTokenIsRejected", Run: noCompletionTokens},
		{Name: "FirstWriteOfAnAttemptSetsItsTime", Run: firstWriteSetsTime},
		{Name: "OneMessageAtATimeAdvancesAttempt", Run: laterMessageAdvances},
		{Name: "UnknownHeadStoresNothing", Run: unknownHeadStoresNothing},
		{Name: "DueAttemptIsReturnedIfPending", Run: duePending},
		{Name: "NextAttemptIsNotPending", Run: pendingNoMore},
		{Name: "RepeatedMessageSendsNextAttemptAgain", Run: limitReportedAgain},
		{Name: "HeartbeatCountsUnlessAttemptHasEnded", Run: pendingHeartbeats},
		{Name: "HeartbeatDuringEndIsStored", Run: heartbeatDuringEnd},
		{Name: "PendingAttemptIsStored", Run: pendingAttemptStored},
		{Name: "PendingAttemptsHaveSeparateMessage", Run: pendingBundled},
		{Name: "WorkItemIsReadFromItsSegment", Run: readWorkItem},
		{Name: "GracePeriodOfCancelledAttemptUsesTimer", Run: graceOfPending},
	}}
}

// holding is an execution with an activity #3 that waits for asynchronous completion.
type holding struct{ *kit.Execution }

// held returns an execution that has scheduled activity #3 with a retry policy.
func held(f *kit.Fixture, id string) holding {
	f.T.Helper()
	return holding{trying(f, id, 1)}
}

// waiting returns a pending attempt of an activity of segment 1.
func (e holding) waiting() provider.PendingAttempt {
	now := e.F.StoredNow()
	closeAt := now.Add(time.Hour)
	return provider.PendingAttempt{
		Name: kit.Pack, Since: now, Segment: 1, StartToCloseDeadline: &closeAt, HeartbeatMs: 5000,
		LastHeartbeatAt: &now, GraceMs: 1000,
	}
}

// keep stores the first attempt of activity #3 as pending, if the stored value is was. by is the ID of the message.
func (e holding) keep(was provider.ActivityRetry, by string, inspectInstance time.Time) error {
	return e.F.Provider.PutPendingAttempts(e.F.Ctx(), e.Instance.InstanceID, e.Head, provider.PendingAttemptUpdate{
		ActivityID: 3, Attempt: 1, Was: was, Pending: e.waiting(), NextCheckAt: inspectInstance, NextCheckID: by,
	})
}

// retryOf returns the current attempt of activity #3.
func (e holding) retryOf() provider.ActivityRetry {
	e.F.T.Helper()
	r, err := e.F.Provider.ReadRetry(e.F.Ctx(), e.Instance.ExecutionID, 3)
	e.F.Must(err)
	return r
}

func completionTokens(f *kit.Fixture) {
	want := provider.WorkItem{
		V: provider.WireVersion, InstanceID: "a/é", ExecutionID: "01JEXECUTION", Segment: 7, ActivityID: 3, Attempt: 2,
		Queue: kit.Queue,
	}
	token := signed(f, &want)
	f.WantEqual("signed again", signed(f, &want), token)
	got, err := f.Provider.VerifyCompletionToken(f.Ctx(), token)
	f.Must(err)
	got.Hub = ""
	f.WantEqual("contents of the token", got, want)
	next := want
	next.Attempt++
	if signed(f, &next) == token {
		f.T.Error("two attempts have the same token")
	}
	_, err = f.Provider.VerifyWorkItemToken(f.Ctx(), token)
	f.WantErrorIs(err, provider.ErrInvalidToken)
}

// signed returns the token of an attempt.
func signed(f *kit.Fixture, w *provider.WorkItem) string {
	f.T.Helper()
	tokens, err := f.Provider.CompletionTokens(f.Ctx())
	f.Must(err)
	return tokens.SignCompletion(w)
}

func noCompletionTokens(f *kit.Fixture) {
	f.Start("a").Commit(kit.TurnStarted(), kit.Activity(kit.Queue))
	ofWork := f.Work(kit.Queue)[0].Token
	good := signed(f, &provider.WorkItem{
		InstanceID: "a", ExecutionID: "x", Segment: 1, ActivityID: 3, Attempt: 1, Queue: kit.Queue,
	})
	const at = 8 // one of the last characters, which belong to the signature
	other := good[:len(good)-at] + map[bool]string{
		true:  "B",
		false: "A",
	}[good[len(good)-at] == 'A'] + good[len(good)-at+1:]
	for _, token := range []string{
		"", ".", "c1", "c1..", ofWork, strings.Replace(ofWork, "w1.", "c1.", 1), good[:len(good)-1], good + "A", other,
		strings.Replace(good, "c1.", "c2.", 1), strings.Repeat(good, 500), "\x00", " " + good,
	} {
		w, err := f.Provider.VerifyCompletionToken(f.Ctx(), token)
		f.WantErrorIs(err, provider.ErrInvalidToken)
		f.WantEqual("contents of an invalid token", w, provider.WorkItem{})
	}
	foreign := worktoken.NewSigner("another-hub", worktoken.NewKey("1",
		make([]byte, 32))).SignCompletion(&provider.WorkItem{InstanceID: "a"})
	_, err := f.Provider.VerifyCompletionToken(f.Ctx(), foreign)
	f.WantErrorIs(err, provider.ErrInvalidToken)
	var of *provider.ForeignTokenError
	if !errors.As(err, &of) || of.Hub != "another-hub" {
		f.T.Errorf("got error %v, want one that names the hub of the token", err)
	}
}

func firstWriteSetsTime(f *kit.Fixture) {
	e := held(f, "a")
	due := f.StoredNow().Add(10 * time.Millisecond)
	f.Must(e.keep(provider.ActivityRetry{}, "m-1", due))
	first := e.retryOf()
	if first.Attempt != 1 || first.Pending == nil || !first.NextCheckAt.Equal(due) || first.NextCheckID != "m-1" ||
		first.Pending.Name != kit.Pack || first.Pending.HeartbeatMs != 5000 {
		f.T.Fatalf("got %+v", first)
	}
	f.WantErrorIs(e.keep(provider.ActivityRetry{}, "m-2", due.Add(time.Hour)), provider.ErrConflict)
	f.WantEqual("stored by another process", e.retryOf(), first)
	timers := f.DueTimers()
	if len(timers) != 1 || timers[0].TimerID != 3 || timers[0].Attempt != 1 || !timers[0].FireAt.Equal(due) ||
		timers[0].Segment != 1 {
		f.T.Errorf("got %+v", timers)
	}
}

func laterMessageAdvances(f *kit.Fixture) {
	e := held(f, "a")
	f.Must(e.keep(provider.ActivityRetry{}, "m-1", time.Time{}))
	first := e.retryOf()
	next := f.StoredNow().Add(10 * time.Millisecond)
	f.Must(e.keep(first, "m-3", next))
	f.WantErrorIs(e.keep(first, "m-4", next), provider.ErrConflict) // first is stale
	if r := e.retryOf(); !r.NextCheckAt.Equal(next) || r.NextCheckID != "m-3" {
		f.T.Errorf("got %+v", r)
	}
	f.DueTimers()
	sent := e.retryOf()
	f.Must(f.Provider.PutPendingAttempts(f.Ctx(), "a", e.Head, provider.PendingAttemptUpdate{
		ActivityID: 3, Attempt: 1, Was: sent, Pending: *sent.Pending, NextCheckAt: sent.NextCheckAt, NextCheckID: "m-3",
		Sent: true,
	}))
	if again := f.DueTimers(); len(again) != 1 || !again[0].FireAt.Equal(next) {
		f.T.Errorf("sent again: got %+v", again)
	}
	f.Must(e.keep(sent, "m-5", time.Time{}))
	if r := e.retryOf(); !r.NextCheckAt.IsZero() || r.Pending == nil {
		f.T.Errorf("without a limit: got %+v", r)
	}
}

func unknownHeadStoresNothing(f *kit.Fixture) {
	e := held(f, "a")
	behind := *e.Execution
	e.Commit(kit.TurnStarted(), kit.Activity(kit.Queue))
	f.WantErrorIs(holding{&behind}.keep(provider.ActivityRetry{}, "m-1", f.StoredNow()), provider.ErrConflict)
	f.WantEqual("kept", e.retryOf(), provider.ActivityRetry{ActivityID: 3})
}

func duePending(f *kit.Fixture) {
	e := held(f, "a")
	f.Must(e.keep(provider.ActivityRetry{}, "m-1", time.Time{}))
	done, err := f.Provider.RetryActivities(f.Ctx(), &provider.RetryRequest{
		InstanceID: "a", Head: e.Head, Due: []provider.DueAttempt{
			{ActivityID: 3, Attempt: 2, Segment: 1}, {ActivityID: 3, Attempt: 1, Segment: 1},
		},
	})
	f.Must(err)
	if len(done.Waiting) != 2 || done.Waiting[0].Pending != nil || done.Waiting[1].Pending == nil {
		f.T.Errorf("got %+v", done)
	}
	wantAttempts(f)
}

func pendingNoMore(f *kit.Fixture) {
	e := held(f, "a")
	f.Must(e.keep(provider.ActivityRetry{}, "m-1", time.Time{}))
	wantVerdicts(e.Execution, retry(e.Execution, attempted(e.Execution, 3, 1, "r.1", time.Millisecond)),
		provider.RetryNext)
	wantAttempts(f, "3.2")
	r := e.retryOf()
	if r.Attempt != 2 || r.Pending != nil || !r.NextCheckAt.IsZero() {
		f.T.Errorf("got %+v", r)
	}
	f.WantErrorIs(e.keep(provider.ActivityRetry{}, "m-2", f.StoredNow()), provider.ErrConflict)
	second := provider.PendingAttemptUpdate{ActivityID: 3, Attempt: 2, Was: r, Pending: e.waiting(), NextCheckID: "m-3"}
	f.Must(f.Provider.PutPendingAttempts(f.Ctx(), "a", e.Head, second))
	if r = e.retryOf(); r.Pending == nil || r.Attempt != 2 || r.Error.Message != "r.1" || r.Run != "r.1" {
		f.T.Errorf("got %+v", r)
	}
	wantVerdicts(e.Execution, retry(e.Execution, attempted(e.Execution, 3, 2, "r.2", 0)), provider.RetryExhausted)

	other := held(f, "b") // the first attempt has failed in its worker
	retry(other.Execution, attempted(other.Execution, 3, 1, "r.1", time.Millisecond))
	wantAttempts(f, "3.2")
	was := other.retryOf()
	for by, want := range []error{nil, provider.ErrConflict} { // two callers have read the same value
		k := provider.PendingAttemptUpdate{
			ActivityID: 3, Attempt: 2, Was: was, Pending: other.waiting(), NextCheckID: fmt.Sprint("m-", by),
		}
		f.WantErrorIs(f.Provider.PutPendingAttempts(f.Ctx(), "b", other.Head, k), want)
	}
	f.WantEqual("owner of the second attempt", other.retryOf().NextCheckID, "m-0")
}

func limitReportedAgain(f *kit.Fixture) {
	e := held(f, "a")
	f.Must(e.keep(provider.ActivityRetry{}, "m-1", time.Time{}))
	retry(e.Execution, attempted(e.Execution, 3, 1, provider.TimeoutRunID(1, "t-1"), time.Millisecond))
	wantAttempts(f, "3.2")
	due := func(by string) provider.RetryRequest {
		return provider.RetryRequest{
			InstanceID: "a", Head: e.Head,
			Due: []provider.DueAttempt{{ActivityID: 3, Attempt: 1, MessageID: by, Segment: 1}},
		}
	}
	another := due("t-2")
	_, err := f.Provider.RetryActivities(f.Ctx(), &another)
	f.Must(err)
	wantAttempts(f)
	same := due("t-1")
	_, err = f.Provider.RetryActivities(f.Ctx(), &same)
	f.Must(err)
	for _, w := range f.Work(kit.Queue) { // the dispatch may omit items that have arrived
		f.WantEqual("attempt", w.Attempt, 2)
	}
}

// heartbeat sends a heartbeat of an attempt of activity #3.
func (e holding) heartbeat(attempt int, at time.Time, details string) bool {
	e.F.T.Helper()
	counted, err := e.F.Provider.HeartbeatPending(e.F.Ctx(), e.Instance.ExecutionID, provider.PendingHeartbeat{
		ActivityID: 3, Attempt: attempt, At: at, Details: json.RawMessage(details),
	})
	e.F.Must(err)
	return counted
}

// endAttempt ends attempt 1 of activity #3.
func (e holding) endAttempt(heartbeatAt time.Time) bool {
	e.F.T.Helper()
	ended, err := e.F.Provider.EndPending(e.F.Ctx(), e.Instance.ExecutionID, 3, 1, heartbeatAt)
	e.F.Must(err)
	return ended
}

func pendingHeartbeats(f *kit.Fixture) {
	e := held(f, "a")
	first := f.StoredNow()
	f.WantEqual("first heartbeat recorded", e.heartbeat(1, first, `{"page":1}`), true)
	f.WantEqual("older heartbeat recorded", e.heartbeat(1, first.Add(-time.Second), `{"page":0}`), false)
	second := first.Add(time.Second)
	f.WantEqual("heartbeat without details recorded", e.heartbeat(1, second, ""), true)
	wantRecord(f, e.Instance.ExecutionID, provider.ActivityRecord{
		ActivityID: 3, LastHeartbeatAt: second, Details: json.RawMessage(`{"page":1}`), HeartbeatAttempt: 1,
	})

	f.WantEqual("attempt ended with its last heartbeat", e.endAttempt(second), true)
	f.WantEqual("attempt ended again", e.endAttempt(first), true)
	f.WantEqual("heartbeat recorded after the end", e.heartbeat(1, second.Add(time.Second), ""), false)
	f.WantEqual("heartbeat of the next attempt recorded, slow clock", e.heartbeat(2, first.Add(-time.Hour), ""), true)
	f.WantEqual("heartbeat of the next attempt recorded", e.heartbeat(2, second.Add(time.Second), ""), true)
	f.WantEqual("heartbeat of the previous attempt recorded", e.heartbeat(1, second.Add(time.Hour), ""), false)
	seen, err := f.Provider.HeartbeatPending(f.Ctx(), e.Instance.ExecutionID, provider.PendingHeartbeat{
		ActivityID: 3, Attempt: 2, At: second.Add(2 * time.Second), Cancelled: true,
	})
	f.Must(err)
	again, err := f.Provider.HeartbeatPending(f.Ctx(), e.Instance.ExecutionID, provider.PendingHeartbeat{
		ActivityID: 3, Attempt: 2, At: second.Add(3 * time.Second), Cancelled: true,
	})
	f.Must(err)
	f.WantEqual("cancelled", []bool{seen, again}, []bool{true, true})
	wantRecord(f, e.Instance.ExecutionID, provider.ActivityRecord{
		ActivityID: 3, LastHeartbeatAt: second.Add(3 * time.Second), SeenAt: second.Add(2 * time.Second),
		Details: json.RawMessage(`{"page":1}`), HeartbeatAttempt: 2, EndedAttempt: 1,
	})
}

func heartbeatDuringEnd(f *kit.Fixture) {
	e := held(f, "a")
	first := f.StoredNow()
	e.heartbeat(1, first, "")
	f.WantEqual("attempt with a heartbeat ended without one", e.endAttempt(time.Time{}), false)
	e.heartbeat(1, first.Add(time.Second), "")
	f.WantEqual("attempt ended with an outdated heartbeat", e.endAttempt(first), false)
	f.WantEqual("heartbeat recorded after the rejected end", e.heartbeat(1, first.Add(2*time.Second), ""), true)
	other := held(f, "b")
	f.WantEqual("attempt without heartbeats ended", other.endAttempt(time.Time{}), true)
	f.WantEqual("heartbeat recorded after this end", other.heartbeat(1, first, ""), false)
	failed := held(f, "c") // the first attempt has not ended
	f.WantEqual("heartbeat of the second attempt recorded", failed.heartbeat(2, first, ""), true)
	f.WantEqual("later heartbeat of the first attempt recorded", failed.heartbeat(1, first.Add(time.Hour), ""), false)
}

func pendingAttemptStored(f *kit.Fixture) {
	e := held(f, "a")
	p := e.waiting()
	f.Must(f.Provider.PutActivityRecords(f.Ctx(), e.Instance.ExecutionID, provider.ActivityRecord{
		ActivityID: 3, Pending: &p, PendingAttempt: 2,
	}))
	wantRecord(f, e.Instance.ExecutionID, provider.ActivityRecord{ActivityID: 3, Pending: &p, PendingAttempt: 2})
	taken, err := f.Provider.ClaimRun(f.Ctx(), provider.Run{
		ExecutionID: e.Instance.ExecutionID, ActivityID: 3, Segment: 1, Attempt: 2, Token: "t",
		Until: f.StoredNow().Add(time.Minute),
	})
	f.Must(err)
	if taken.PreviousRecord.Pending == nil || taken.PreviousRecord.PendingAttempt != 2 {
		f.T.Errorf("got %+v", taken)
	}
}

func pendingBundled(f *kit.Fixture) {
	e := holding{f.Start("a")}
	e.Commit(kit.TurnStarted(), kit.Activity(kit.Queue), kit.Activity(kit.Queue))
	f.Messages()
	p := e.waiting()
	var done []provider.CompletedWorkItem
	for i, it := range f.Work(kit.Queue) {
		o := &provider.ActivityOutcome{ActivityID: it.ActivityID, Attempt: 1}
		if i == 0 {
			o.Pending = &p
		} else {
			o.Result = history.Payload("1")
		}
		done = append(done, provider.CompletedWorkItem{LockedWorkItem: &it, Outcome: o})
	}
	_, err := f.Provider.AckWorkItems(f.Ctx(), kit.Queue, done)
	f.Must(err)
	kinds := map[provider.MessageKind]int{}
	for _, m := range f.Messages() {
		kinds[m.Kind] += len(m.Outcomes)
		if m.Kind == provider.MessageActivityPending {
			f.WantEqual("pending", m.Outcomes[0].Pending, &p)
		}
	}
	f.WantEqual("messages", kinds, map[provider.MessageKind]int{
		provider.MessageActivityPending: 1, provider.MessageActivityOutcomes: 1,
	})
}

func readWorkItem(f *kit.Fixture) {
	e := holding{f.Start("a")}
	scheduled := kit.Activity(kit.OtherQueue)
	scheduled.Retry = &history.RetryPolicy{MaxAttempts: 3, InitialIntervalMs: 100}
	e.Commit(kit.TurnStarted(), scheduled)
	w, err := f.Provider.ReadWorkItem(f.Ctx(), "a", e.Instance.ExecutionID, 1, 3)
	f.Must(err)
	f.WantEqual("work item", w, unsigned(f, f.Work(kit.OtherQueue)[0].WorkItem))
	for _, of := range [][2]int64{{1, 4}, {2, 3}} {
		_, err = f.Provider.ReadWorkItem(f.Ctx(), "a", e.Instance.ExecutionID, of[0], of[1])
		f.WantErrorIs(err, provider.ErrNotFound)
	}
}

func graceOfPending(f *kit.Fixture) {
	e := holding{f.StartWithoutWake("a")}
	a := kit.Activity(kit.Queue)
	a.Cancel = &history.CancelDetails{WaitForCancellation: true}
	e.Commit(kit.TurnStarted(), a)
	p := e.waiting()
	p.WaitForCancellation, p.GraceMs = true, 20
	f.Must(f.Provider.PutPendingAttempts(f.Ctx(), "a", e.Head, provider.PendingAttemptUpdate{
		ActivityID: 3, Attempt: 1, Pending: p, NextCheckID: "m-1",
	}))
	if timers := f.DueTimers(); len(timers) > 0 {
		f.T.Fatalf("got %+v", timers)
	}
	e.Ack(cancelTurn(e.Execution, kit.TurnStarted(), cancelEvent(3)))
	if timers := f.DueTimers(); len(timers) != 1 || timers[0].TimerID != 3 || timers[0].Attempt != 1 ||
		!timers[0].WaitForCancellation {
		f.T.Errorf("got %+v", timers)
	}
}
