package providertest

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// Asynchronous completion (R26): a token that cannot be forged, a stored time that only one message at a time advances,
// and heartbeats that count or are reported as rejected.
func pendingGroup() group {
	return group{"pending", []testCase{
		{name: "ATokenOpensWhatItWasSignedFor", run: completionTokens},
		{name: "WhatIsNoTokenOpensNothing", run: noCompletionTokens},
		{name: "TheFirstToKeepAnAttemptHasItsTime", run: keptOnce},
		{name: "OneMessageAtATimeMovesAnAttemptOn", run: keptOn},
		{name: "AHeadThatIsNoneKeepsNothing", run: keptFenced},
		{name: "WhatIsDueIsReturnedWhereItIsPending", run: duePending},
		{name: "TheNextAttemptIsNotPending", run: pendingNoMore},
		{name: "AMessageThatEndedAnAttemptSendsTheNextAgain", run: limitToldAgain},
		{name: "AHeartbeatCountsUnlessTheAttemptHasEnded", run: pendingBeats},
		{name: "AHeartbeatBesideTheEndIsNotForgotten", run: beatBesideEnd},
		{name: "WhatAWorkerHandsOverIsKept", run: handoverKept},
		{name: "AttemptsThatArePendingAreAMessageOfTheirOwn", run: pendingBundled},
		{name: "AWorkItemIsReadFromItsSegment", run: readWorkItem},
		{name: "TheGraceOfACancelledOneIsATimer", run: graceOfPending},
	}}
}

// holding is an execution with an activity #3 that waits for asynchronous completion.
type holding struct{ *execution }

// held returns an execution that has scheduled such an activity with a retry policy.
func (f *fixture) held(id string) holding {
	f.t.Helper()
	return holding{f.trying(id, 1)}
}

// waiting returns a pending attempt of an activity of segment 1.
func (e holding) waiting() provider.PendingAttempt {
	now := e.f.now()
	closeAt := now.Add(time.Hour)
	return provider.PendingAttempt{Name: pack, Since: now, Segment: 1, StartToCloseDeadline: &closeAt, HeartbeatMs: 5000, LastHeartbeatAt: &now, GraceMs: 1000}
}

// keep stores the first attempt of activity #3 as pending, in place of was, for a message with the ID by.
func (e holding) keep(was provider.ActivityRetry, by string, lookAt time.Time) error {
	return e.f.p.PutPendingAttempts(e.f.ctx(), e.instance.InstanceID, e.head, provider.PendingAttemptUpdate{
		ActivityID: 3, Attempt: 1, Was: was, Pending: e.waiting(), NextCheckAt: lookAt, NextCheckID: by,
	})
}

// retryOf returns the current attempt of activity #3.
func (e holding) retryOf() provider.ActivityRetry {
	e.f.t.Helper()
	r, err := e.f.p.ReadRetry(e.f.ctx(), e.instance.ExecutionID, 3)
	e.f.must(err)
	return r
}

func completionTokens(f *fixture) {
	want := provider.WorkItem{
		V: provider.WireVersion, InstanceID: "a/é", ExecutionID: "01JEXECUTION", Segment: 7, ActivityID: 3, Attempt: 2, Queue: Queue,
	}
	token := f.signed(&want)
	f.wantEqual("signed again", f.signed(&want), token)
	got, err := f.p.VerifyCompletionToken(f.ctx(), token)
	f.must(err)
	got.Hub = ""
	f.wantEqual("contents of the token", got, want)
	next := want
	next.Attempt++
	if f.signed(&next) == token {
		f.t.Error("two attempts have the same token")
	}
	_, err = f.p.VerifyWorkItemToken(f.ctx(), token)
	f.wantIs(err, provider.ErrInvalidToken)
}

// signed returns the token of an attempt.
func (f *fixture) signed(w *provider.WorkItem) string {
	f.t.Helper()
	tokens, err := f.p.CompletionTokens(f.ctx())
	f.must(err)
	return tokens.SignCompletion(w)
}

func noCompletionTokens(f *fixture) {
	f.start("a").commit(turnStarted(), activity(Queue))
	ofWork := f.work(Queue)[0].Token
	good := f.signed(&provider.WorkItem{InstanceID: "a", ExecutionID: "x", Segment: 1, ActivityID: 3, Attempt: 1, Queue: Queue})
	const at = 8 // one of the last characters, which belong to the signature
	other := good[:len(good)-at] + map[bool]string{true: "B", false: "A"}[good[len(good)-at] == 'A'] + good[len(good)-at+1:]
	for _, token := range []string{
		"", ".", "c1", "c1..", ofWork, strings.Replace(ofWork, "w1.", "c1.", 1), good[:len(good)-1], good + "A", other,
		strings.Replace(good, "c1.", "c2.", 1), strings.Repeat(good, 500), "\x00", " " + good,
	} {
		w, err := f.p.VerifyCompletionToken(f.ctx(), token)
		f.wantIs(err, provider.ErrInvalidToken)
		f.wantEqual("contents of an invalid token", w, provider.WorkItem{})
	}
	foreign := provider.NewTokens("another-hub", provider.NewTokenKey("1", make([]byte, 32))).SignCompletion(&provider.WorkItem{InstanceID: "a"})
	_, err := f.p.VerifyCompletionToken(f.ctx(), foreign)
	f.wantIs(err, provider.ErrInvalidToken)
	var of *provider.ForeignTokenError
	if !errors.As(err, &of) || of.Hub != "another-hub" {
		f.t.Errorf("error %v does not name the hub of the token", err)
	}
}

func keptOnce(f *fixture) {
	e := f.held("a")
	due := f.now().Add(10 * time.Millisecond)
	f.must(e.keep(provider.ActivityRetry{}, "m-1", due))
	first := e.retryOf()
	if first.Attempt != 1 || first.Pending == nil || !first.NextCheckAt.Equal(due) || first.NextCheckID != "m-1" || first.Pending.Name != pack || first.Pending.HeartbeatMs != 5000 {
		f.t.Fatalf("%+v", first)
	}
	f.wantIs(e.keep(provider.ActivityRetry{}, "m-2", due.Add(time.Hour)), provider.ErrConflict)
	f.wantEqual("stored by another process", e.retryOf(), first)
	timers := f.dueTimers()
	if len(timers) != 1 || timers[0].TimerID != 3 || timers[0].Attempt != 1 || !timers[0].FireAt.Equal(due) || timers[0].Segment != 1 {
		f.t.Errorf("%+v", timers)
	}
}

func keptOn(f *fixture) {
	e := f.held("a")
	f.must(e.keep(provider.ActivityRetry{}, "m-1", time.Time{}))
	first := e.retryOf()
	next := f.now().Add(10 * time.Millisecond)
	f.must(e.keep(first, "m-3", next))
	f.wantIs(e.keep(first, "m-4", next), provider.ErrConflict) // the read is stale
	if r := e.retryOf(); !r.NextCheckAt.Equal(next) || r.NextCheckID != "m-3" {
		f.t.Errorf("%+v", r)
	}
	f.dueTimers()
	sent := e.retryOf()
	f.must(f.p.PutPendingAttempts(f.ctx(), "a", e.head, provider.PendingAttemptUpdate{ActivityID: 3, Attempt: 1, Was: sent, Pending: *sent.Pending, NextCheckAt: sent.NextCheckAt, NextCheckID: "m-3", Sent: true}))
	if again := f.dueTimers(); len(again) != 1 || !again[0].FireAt.Equal(next) {
		f.t.Errorf("sent again: %+v", again)
	}
	f.must(e.keep(sent, "m-5", time.Time{}))
	if r := e.retryOf(); !r.NextCheckAt.IsZero() || r.Pending == nil {
		f.t.Errorf("without a limit: %+v", r)
	}
}

func keptFenced(f *fixture) {
	e := f.held("a")
	behind := *e.execution
	e.commit(turnStarted(), activity(Queue))
	f.wantIs(holding{&behind}.keep(provider.ActivityRetry{}, "m-1", f.now()), provider.ErrConflict)
	f.wantEqual("kept", e.retryOf(), provider.ActivityRetry{ActivityID: 3})
}

func duePending(f *fixture) {
	e := f.held("a")
	f.must(e.keep(provider.ActivityRetry{}, "m-1", time.Time{}))
	done, err := f.p.RetryActivities(f.ctx(), &provider.RetryRequest{
		InstanceID: "a", Head: e.head, Due: []provider.DueAttempt{{ActivityID: 3, Attempt: 2, Segment: 1}, {ActivityID: 3, Attempt: 1, Segment: 1}},
	})
	f.must(err)
	if len(done.Waiting) != 2 || done.Waiting[0].Pending != nil || done.Waiting[1].Pending == nil {
		f.t.Errorf("%+v", done)
	}
	f.wantAttempts()
}

func pendingNoMore(f *fixture) {
	e := f.held("a")
	f.must(e.keep(provider.ActivityRetry{}, "m-1", time.Time{}))
	e.wantVerdicts(e.retry(e.attempted(3, 1, "r.1", time.Millisecond)), provider.RetryNext)
	f.wantAttempts("3.2")
	r := e.retryOf()
	if r.Attempt != 2 || r.Pending != nil || !r.NextCheckAt.IsZero() {
		f.t.Errorf("%+v", r)
	}
	f.wantIs(e.keep(provider.ActivityRetry{}, "m-2", f.now()), provider.ErrConflict)
	second := provider.PendingAttemptUpdate{ActivityID: 3, Attempt: 2, Was: r, Pending: e.waiting(), NextCheckID: "m-3"}
	f.must(f.p.PutPendingAttempts(f.ctx(), "a", e.head, second))
	if r = e.retryOf(); r.Pending == nil || r.Attempt != 2 || r.Error.Message != "r.1" || r.Run != "r.1" {
		f.t.Errorf("%+v", r)
	}
	e.wantVerdicts(e.retry(e.attempted(3, 2, "r.2", 0)), provider.RetryExhausted)

	other := f.held("b") // its first attempt has failed in its worker
	other.retry(other.attempted(3, 1, "r.1", time.Millisecond))
	f.wantAttempts("3.2")
	was := other.retryOf()
	for by, want := range []error{nil, provider.ErrConflict} { // two callers have read the same value
		k := provider.PendingAttemptUpdate{ActivityID: 3, Attempt: 2, Was: was, Pending: other.waiting(), NextCheckID: fmt.Sprint("m-", by)}
		f.wantIs(f.p.PutPendingAttempts(f.ctx(), "b", other.head, k), want)
	}
	f.wantEqual("owner of the second attempt", other.retryOf().NextCheckID, "m-0")
}

func limitToldAgain(f *fixture) {
	e := f.held("a")
	f.must(e.keep(provider.ActivityRetry{}, "m-1", time.Time{}))
	e.retry(e.attempted(3, 1, provider.TimeoutRunID(1, "t-1"), time.Millisecond))
	f.wantAttempts("3.2")
	due := func(by string) provider.RetryRequest {
		return provider.RetryRequest{InstanceID: "a", Head: e.head, Due: []provider.DueAttempt{{ActivityID: 3, Attempt: 1, MessageID: by, Segment: 1}}}
	}
	another := due("t-2")
	_, err := f.p.RetryActivities(f.ctx(), &another)
	f.must(err)
	f.wantAttempts()
	same := due("t-1")
	_, err = f.p.RetryActivities(f.ctx(), &same)
	f.must(err)
	for _, w := range f.work(Queue) { // it may be known to have arrived
		f.wantEqual("attempt", w.Attempt, 2)
	}
}

// beat sends a heartbeat of an attempt of activity #3.
func (e holding) beat(attempt int, at time.Time, details string) bool {
	e.f.t.Helper()
	counted, err := e.f.p.HeartbeatPending(e.f.ctx(), e.instance.ExecutionID, provider.PendingHeartbeat{ActivityID: 3, Attempt: attempt, At: at, Details: json.RawMessage(details)})
	e.f.must(err)
	return counted
}

// endAttempt ends attempt 1 of activity #3.
func (e holding) endAttempt(beatenAt time.Time) bool {
	e.f.t.Helper()
	ended, err := e.f.p.TimeOutPending(e.f.ctx(), e.instance.ExecutionID, 3, 1, beatenAt)
	e.f.must(err)
	return ended
}

func pendingBeats(f *fixture) {
	e := f.held("a")
	first := f.now()
	f.wantEqual("first", e.beat(1, first, `{"page":1}`), true)
	f.wantEqual("an older one", e.beat(1, first.Add(-time.Second), `{"page":0}`), false)
	second := first.Add(time.Second)
	f.wantEqual("one without details", e.beat(1, second, ""), true)
	f.wantRecord(e.instance.ExecutionID, provider.ActivityRecord{ActivityID: 3, LastHeartbeatAt: second, Details: json.RawMessage(`{"page":1}`), HeartbeatAttempt: 1})

	f.wantEqual("ended by the last", e.endAttempt(second), true)
	f.wantEqual("ended again", e.endAttempt(first), true)
	f.wantEqual("after the end", e.beat(1, second.Add(time.Second), ""), false)
	f.wantEqual("of the next attempt, by a clock that is behind", e.beat(2, first.Add(-time.Hour), ""), true)
	f.wantEqual("of the next attempt", e.beat(2, second.Add(time.Second), ""), true)
	f.wantEqual("of the one before", e.beat(1, second.Add(time.Hour), ""), false)
	seen, err := f.p.HeartbeatPending(f.ctx(), e.instance.ExecutionID, provider.PendingHeartbeat{ActivityID: 3, Attempt: 2, At: second.Add(2 * time.Second), Cancelled: true})
	f.must(err)
	again, err := f.p.HeartbeatPending(f.ctx(), e.instance.ExecutionID, provider.PendingHeartbeat{ActivityID: 3, Attempt: 2, At: second.Add(3 * time.Second), Cancelled: true})
	f.must(err)
	f.wantEqual("cancelled", []bool{seen, again}, []bool{true, true})
	f.wantRecord(e.instance.ExecutionID, provider.ActivityRecord{
		ActivityID: 3, LastHeartbeatAt: second.Add(3 * time.Second), SeenAt: second.Add(2 * time.Second), Details: json.RawMessage(`{"page":1}`), HeartbeatAttempt: 2, TimedOutAttempt: 1,
	})
}

func beatBesideEnd(f *fixture) {
	e := f.held("a")
	first := f.now()
	e.beat(1, first, "")
	f.wantEqual("ended by one that is not there", e.endAttempt(time.Time{}), false)
	e.beat(1, first.Add(time.Second), "")
	f.wantEqual("ended beside a heartbeat", e.endAttempt(first), false)
	f.wantEqual("it goes on", e.beat(1, first.Add(2*time.Second), ""), true)
	other := f.held("b")
	f.wantEqual("without any", other.endAttempt(time.Time{}), true)
	f.wantEqual("and after", other.beat(1, first, ""), false)
	failed := f.held("c") // its first attempt, which has not been ended
	f.wantEqual("of the second attempt", failed.beat(2, first, ""), true)
	f.wantEqual("of the first, behind it", failed.beat(1, first.Add(time.Hour), ""), false)
}

func handoverKept(f *fixture) {
	e := f.held("a")
	p := e.waiting()
	f.must(f.p.PutActivityRecords(f.ctx(), e.instance.ExecutionID, provider.ActivityRecord{ActivityID: 3, Pending: &p, PendingAttempt: 2}))
	f.wantRecord(e.instance.ExecutionID, provider.ActivityRecord{ActivityID: 3, Pending: &p, PendingAttempt: 2})
	taken, err := f.p.ClaimRun(f.ctx(), provider.Run{ExecutionID: e.instance.ExecutionID, ActivityID: 3, Segment: 1, Attempt: 2, Token: "t", Until: f.now().Add(time.Minute)})
	f.must(err)
	if taken.PreviousRecord.Pending == nil || taken.PreviousRecord.PendingAttempt != 2 {
		f.t.Errorf("%+v", taken)
	}
}

func pendingBundled(f *fixture) {
	e := holding{f.start("a")}
	e.commit(turnStarted(), activity(Queue), activity(Queue))
	f.messages()
	p := e.waiting()
	var done []provider.CompletedWorkItem
	for i, it := range f.work(Queue) {
		o := &provider.ActivityOutcome{ActivityID: it.ActivityID, Attempt: 1}
		if i == 0 {
			o.Pending = &p
		} else {
			o.Result = history.Payload("1")
		}
		done = append(done, provider.CompletedWorkItem{LockedWorkItem: &it, Outcome: o})
	}
	_, err := f.p.AckWorkItems(f.ctx(), Queue, done)
	f.must(err)
	kinds := map[provider.MessageKind]int{}
	for _, m := range f.messages() {
		kinds[m.Kind] += len(m.Outcomes)
		if m.Kind == provider.MessageActivityPending {
			f.wantEqual("pending", m.Outcomes[0].Pending, &p)
		}
	}
	f.wantEqual("messages", kinds, map[provider.MessageKind]int{provider.MessageActivityPending: 1, provider.MessageActivityOutcomes: 1})
}

func readWorkItem(f *fixture) {
	e := holding{f.start("a")}
	scheduled := activity(OtherQueue)
	scheduled.Retry = &history.RetryPolicy{MaxAttempts: 3, InitialIntervalMs: 100}
	e.commit(turnStarted(), scheduled)
	w, err := f.p.ReadWorkItem(f.ctx(), "a", e.instance.ExecutionID, 1, 3)
	f.must(err)
	f.wantEqual("work item", w, f.unsigned(f.work(OtherQueue)[0].WorkItem))
	for _, of := range [][2]int64{{1, 4}, {2, 3}} {
		_, err = f.p.ReadWorkItem(f.ctx(), "a", e.instance.ExecutionID, of[0], of[1])
		f.wantIs(err, provider.ErrNotFound)
	}
}

func graceOfPending(f *fixture) {
	e := holding{f.quiet("a")}
	a := activity(Queue)
	a.Cancel = &history.CancelDetails{WaitForCancellation: true}
	e.commit(turnStarted(), a)
	p := e.waiting()
	p.WaitForCancellation, p.GraceMs = true, 20
	f.must(f.p.PutPendingAttempts(f.ctx(), "a", e.head, provider.PendingAttemptUpdate{ActivityID: 3, Attempt: 1, Pending: p, NextCheckID: "m-1"}))
	if timers := f.dueTimers(); len(timers) > 0 {
		f.t.Fatalf("%+v", timers)
	}
	e.ack(e.cancelTurn(turnStarted(), e.cancels(3)))
	if timers := f.dueTimers(); len(timers) != 1 || timers[0].TimerID != 3 || timers[0].Attempt != 1 || !timers[0].WaitForCancellation {
		f.t.Errorf("%+v", timers)
	}
}
