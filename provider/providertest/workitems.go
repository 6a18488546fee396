package providertest

import (
	"strconv"
	"strings"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// Work items reach their queue, and their outcomes reach the inbox before the records are deleted (R9, R14).
func workItems() group {
	return group{"workitems", []testCase{
		{name: "AnActivityGoesToItsQueue", run: routed},
		{name: "AWorkItemIsWhatWasScheduled", run: workItemFields},
		{name: "AWorkItemIsOpenedByItsToken", run: tokensOfWorkItems},
		{name: "WhatIsNoTokenOpensNothing", run: noTokens},
		{name: "AnActivityThatMustEndHasATimer", run: limitedActivity},
		{name: "AnUnknownQueueIsARefusedOutput", run: unknownQueue},
		{name: "OfAnExclusiveKeyOneBatchIsUnderWay", run: exclusiveKey},
		{name: "WhatIsNeededOnceMoreOfAnExclusiveKeyIsDelivered", run: exclusiveAgain},
		{name: "AnExclusiveKeyWithoutItsQueueIsARefusedOutput", run: exclusiveRefused},
		{name: "AnInputThatNoMessageHoldsIsARefusedOutput", run: oversizedInput},
		{name: "OutcomesOfAnExecutionAreOneMessage", run: bundled},
		{name: "ARecordThatIsLeftIsNotDeleted", run: left},
		{name: "LargeResultsAreBundledAsFarAsTheyFit", run: func(f *fixture) { bundledAsFit(f, largeResult) }},
		{name: "LargeFailuresAreBundledAsFarAsTheyFit", run: func(f *fixture) { bundledAsFit(f, largeFailure) }},
		{name: "ResultsThatGrowWhenEncodedAreBundledAsFarAsTheyFit", run: func(f *fixture) { bundledAsFit(f, growingResult) }},
		{name: "AcknowledgedRecordsAreGone", run: acknowledged, visibility: 2 * time.Second},
		{name: "WithoutOutcomeNothingIsSent", run: withoutOutcome},
		{name: "WhenTheSendFailsTheRecordsStay", run: unsentOutcome, needs: []Capability{Faults}, visibility: 2 * time.Second},
		{name: "WhenTheDeleteFailsTheOutcomeIsSent", run: undeletedRecords, needs: []Capability{Faults}},
		{name: "RoundTripThroughAbandon", run: abandonedWork},
	}}
}

func routed(f *fixture) {
	f.start("a").commit(activity(Queue), activity(OtherQueue), activity(Queue), activity(OtherQueue))
	f.wantWork(Queue, 2, 4)
	f.wantWork(OtherQueue, 3, 5)
}

func workItemFields(f *fixture) {
	e := f.start("a")
	scheduled := activity(OtherQueue)
	scheduled.Input, scheduled.StartToCloseMs = history.Payload(`{"z":1,"a":[1.50,"x"]}`), 1500
	scheduled.Retry = &history.RetryPolicy{MaxAttempts: 3, InitialIntervalMs: 100, MaxIntervalMs: 5000, BackoffCoefficient: 2.5, NonRetryable: []string{"T"}}
	e.commit(turnStarted())
	e.commit(scheduled)
	items := f.work(OtherQueue)
	if len(items) != 1 {
		f.t.Fatalf("%d work items, want 1", len(items))
	}
	f.wantEqual("work item", f.unsigned(items[0].WorkItem), provider.WorkItem{
		V: provider.WireVersion, InstanceID: "a", ExecutionID: e.instance.ExecutionID, Segment: 2, ActivityID: 3, Name: pack,
		Queue: OtherQueue, Attempt: 1, Input: scheduled.Input, StartToCloseMs: 1500, Retry: scheduled.Retry,
	})
}

// unsigned returns a work item without its token, which it verifies.
func (f *fixture) unsigned(w provider.WorkItem) provider.WorkItem {
	f.t.Helper()
	opened, err := f.p.VerifyWorkItemToken(f.ctx(), w.Token)
	f.must(err)
	want := provider.WorkItem{V: provider.WireVersion, Queue: w.Queue, ExecutionID: w.ExecutionID, Segment: w.Segment, ActivityID: w.ActivityID, Attempt: w.Attempt}
	f.wantEqual("contents of the token", opened, want)
	w.Token = ""
	return w
}

// tokensOfWorkItems: a work item has a valid token however it is sent, and whatever token it had before.
func tokensOfWorkItems(f *fixture) {
	e := f.start("a")
	e.commit(turnStarted(), activity(Queue), activity(OtherQueue), activity(Queue))
	items := append(f.work(Queue), f.work(OtherQueue)...)
	if len(items) != 3 {
		f.t.Fatalf("%d work items, want 3", len(items))
	}
	tokens := map[string]bool{}
	for i := range items {
		tokens[items[i].Token] = true
		f.unsigned(items[i].WorkItem)
	}
	f.wantEqual("tokens", len(tokens), 3)
	for _, before := range []string{"", "w1.1.nobody's", items[1].Token} {
		anew := items[0].WorkItem
		anew.Token, anew.Attempt, anew.ResendCount = before, 4, 1
		f.must(f.p.PutWorkItems(f.ctx(), anew))
		sent := f.work(Queue)
		if len(sent) != 1 {
			f.t.Fatalf("%d work items, want the one that was sent again", len(sent))
		}
		f.unsigned(sent[0].WorkItem)
	}
	f.redispatch(e, at(1))
	for _, it := range append(f.work(Queue), f.work(OtherQueue)...) {
		f.unsigned(it.WorkItem)
		if !tokens[it.Token] {
			f.t.Errorf("activity %d: resent work item has another token", it.ActivityID)
		}
	}
}

func noTokens(f *fixture) {
	f.start("a").commit(turnStarted(), activity(Queue))
	good := f.work(Queue)[0].Token
	for _, token := range []string{"", ".", "w1", "w1..", good[:len(good)-1], good + "A", good[:len(good)-2] + "AA", strings.Replace(good, "w1.", "w2.", 1), strings.Repeat(good, 5000), "\x00", " " + good} {
		w, err := f.p.VerifyWorkItemToken(f.ctx(), token)
		f.wantIs(err, provider.ErrInvalidToken)
		f.wantEqual("contents of an invalid token", w, provider.WorkItem{})
	}
	_, err := f.p.VerifyWorkItemToken(f.ctx(), good)
	f.must(err)
}

// limitedActivity has a schedule-to-close timeout. A timer ends it a second after the timeout if it has not ended by
// then.
func limitedActivity(f *fixture) {
	e := f.start("a")
	scheduled := activity(Queue)
	scheduled.HeartbeatMs, scheduled.ScheduleToCloseMs = 5000, 500
	scheduled.FairnessKey = "tenant-7"
	t := e.commit(turnStarted(), scheduled)
	by := t.Events[1].Time.Add(500 * time.Millisecond)
	items := f.work(Queue)
	if len(items) != 1 {
		f.t.Fatalf("%d work items, want 1", len(items))
	}
	f.wantEqual("work item", f.unsigned(items[0].WorkItem), provider.WorkItem{
		V: provider.WireVersion, InstanceID: "a", ExecutionID: e.instance.ExecutionID, Segment: 1, ActivityID: 3, Name: pack,
		Queue: Queue, Attempt: 1, Input: scheduled.Input, HeartbeatMs: 5000, ScheduleToCloseDeadline: &by, FairnessKey: "tenant-7",
	})
	f.Advance(2 * time.Second)
	timers := f.timers()
	if len(timers) != 1 {
		f.t.Fatalf("%d timers, want 1", len(timers))
	}
	f.wantEqual("timer", timers[0].Timer, provider.Timer{
		V: provider.WireVersion, InstanceID: "a", ExecutionID: e.instance.ExecutionID, Segment: 1, TimerID: 3, FireAt: by.Add(time.Second), Activity: true,
	})
}

// wantRefused fails unless exactly the output of event 3 is rejected permanently.
func (f *fixture) wantRefused(refused []provider.OutputFailure) {
	f.t.Helper()
	if len(refused) != 1 || refused[0].EventID != 3 || !refused[0].Failure.NonRetryable || refused[0].Failure.Type == "" || refused[0].Failure.Message == "" {
		f.t.Errorf("rejected outputs %s, want the output of event 3 with its reason", shorten(text(refused)))
	}
}

func unknownQueue(f *fixture) {
	e := f.start("a")
	t := e.turn(turnStarted(), activity("nowhere"), activity(Queue))
	refused, err := f.p.AckOrchestrationItem(f.ctx(), t)
	f.must(err)
	f.wantRefused(refused)
	if len(refused) == 1 && !strings.Contains(refused[0].Failure.Message, "nowhere") {
		f.t.Errorf("reason does not name the queue: %s", refused[0].Failure.Message)
	}
	f.wantWork(Queue, 4)
	e.wantSegments(t)
}

func oversizedInput(f *fixture) {
	e := f.start("a")
	large := activity(Queue)
	large.Input = history.Payload(`"` + strings.Repeat("x", 1<<20) + `"`)
	t := e.turn(turnStarted(), large, activity(Queue))
	refused, err := f.p.AckOrchestrationItem(f.ctx(), t)
	f.must(err)
	f.wantRefused(refused)
	f.wantWork(Queue, 4)
}

// done completes work items with the given outcomes.
func done(items []provider.LockedWorkItem, outcome func(n int) provider.ActivityOutcome) []provider.CompletedWorkItem {
	all := make([]provider.CompletedWorkItem, len(items))
	for i, it := range items {
		o := outcome(i)
		o.ActivityID, o.Attempt = it.ActivityID, it.Attempt
		all[i] = provider.CompletedWorkItem{LockedWorkItem: &it, Outcome: &o}
	}
	return all
}

func smallResult(n int) provider.ActivityOutcome {
	return provider.ActivityOutcome{Result: history.Payload(strconv.Itoa(n))}
}

func largeResult(int) provider.ActivityOutcome {
	return provider.ActivityOutcome{Result: noise(200 << 10)}
}

func growingResult(int) provider.ActivityOutcome {
	return provider.ActivityOutcome{Result: history.Payload(`"` + strings.Repeat("<", 36<<10) + `"`)}
}

func largeFailure(int) provider.ActivityOutcome {
	var failure *history.Failure
	for range 10 {
		failure = &history.Failure{Type: "T", Message: strings.Repeat("m", 16<<10), Cause: failure}
	}
	return provider.ActivityOutcome{Error: failure}
}

func (f *fixture) acknowledge(queue string, items []provider.CompletedWorkItem) {
	f.t.Helper()
	if failed, err := f.p.AckWorkItems(f.ctx(), queue, items); err != nil || len(failed) > 0 {
		f.t.Fatalf("acknowledge: failed %v, error %v", failed, err)
	}
}

func bundled(f *fixture) {
	a, b := f.quiet("a"), f.quiet("b")
	a.commit(turnStarted(), activity(Queue), activity(Queue))
	a.commit(activity(Queue))
	b.commit(turnStarted(), activity(Queue))
	f.acknowledge(Queue, done(f.locked(Queue), smallResult))
	got := map[string][]provider.Message{}
	for _, m := range f.messages() {
		got[m.InstanceID] = append(got[m.InstanceID], m.Message)
	}
	if len(got["a"]) != 1 || len(got["b"]) != 1 || len(got["a"][0].Outcomes) != 3 || len(got["b"][0].Outcomes) != 1 {
		f.t.Fatalf("messages %s", text(got))
	}
	if m := got["a"][0]; m.Segment != 2 || m.ExecutionID != a.instance.ExecutionID || m.Kind != provider.MessageActivityOutcomes {
		f.t.Errorf("message %s, want one of the latest segment", text(m))
	}
}

// left: all outcomes are sent, and all records are deleted except the one with KeepRecord.
func left(f *fixture) {
	f.quiet("a").commit(turnStarted(), activity(Queue), activity(Queue))
	all := done(f.locked(Queue), smallResult)
	all[1].KeepRecord = true
	f.acknowledge(Queue, all)
	if ms := f.messages(); len(ms) != 1 || len(ms[0].Outcomes) != 2 {
		f.t.Errorf("messages %s, want one of two outcomes", text(ms))
	}
	f.must(f.p.AbandonRecords(f.ctx(), Queue, 0, all[1].Record))
	if again := f.fetch(Queue, 1); len(again) != 1 || again[0].ID != all[1].Record.ID {
		f.t.Errorf("received %s again, want %s", text(again), all[1].Record.ID)
	}
}

func bundledAsFit(f *fixture, outcome func(int) provider.ActivityOutcome) {
	const n = 9
	f.quiet("a").commit(repeat(n, activity(Queue))...)
	items := f.locked(Queue)
	if len(items) != n {
		f.t.Fatalf("%d work items, want %d", len(items), n)
	}
	all := done(items, outcome)
	f.acknowledge(Queue, all)
	want := map[int64]string{}
	for _, d := range all {
		want[d.ActivityID] = string(canonical([]byte(text(d.Outcome))))
	}
	ms := f.messages()
	got := map[int64]string{}
	for _, m := range ms {
		for _, o := range m.Outcomes {
			got[o.ActivityID] = string(canonical([]byte(text(o))))
		}
	}
	f.wantEqual("outcomes", got, want)
	if len(ms) >= n {
		f.t.Errorf("%d messages of %d outcomes", len(ms), n)
	}
}

func acknowledged(f *fixture) {
	f.quiet("a").commit(repeat(3, activity(Queue))...)
	f.acknowledge(Queue, done(f.locked(Queue), smallResult))
	f.Advance(3 * time.Second)
	if again := f.locked(Queue); len(again) > 0 {
		f.t.Errorf("redelivered work items: %s", text(again))
	}
	if ms := f.messages(); len(ms) != 1 || len(ms[0].Outcomes) != 3 {
		f.t.Errorf("inbox messages: %s", text(ms))
	}
}

func withoutOutcome(f *fixture) {
	f.quiet("a").commit(activity(Queue), activity(Queue))
	all := done(f.locked(Queue), smallResult)
	all[0].Outcome = nil
	f.acknowledge(Queue, all)
	if ms := f.messages(); len(ms) != 1 || len(ms[0].Outcomes) != 1 || ms[0].Outcomes[0].ActivityID != all[1].ActivityID {
		f.t.Errorf("inbox messages: %s", text(ms))
	}
	f.wantNothingSent()
}

func unsentOutcome(f *fixture) {
	f.quiet("a").commit(activity(Queue), activity(Queue))
	all := done(f.locked(Queue), smallResult)
	f.Fail(Fault{Operation: Send, Failure: Rejected, Times: 1})
	failed, err := f.p.AckWorkItems(f.ctx(), Queue, all)
	f.wantPermanent(err)
	f.wantEqual("failed", failed, []provider.Record{all[0].Record, all[1].Record})
	f.Advance(3 * time.Second)
	if again := f.locked(Queue); len(again) != 2 {
		f.t.Errorf("%d records were redelivered, want 2", len(again))
	}
}

func undeletedRecords(f *fixture) {
	f.quiet("a").commit(activity(Queue))
	all := done(f.locked(Queue), smallResult)
	f.Fail(Fault{Operation: Delete, Failure: Rejected, Times: 1})
	f.acknowledge(Queue, all) // the outcome is in the inbox, and another delivery of the record sends the same
	if ms := f.messages(); len(ms) != 1 {
		f.t.Errorf("inbox messages: %s", text(ms))
	}
}

func abandonedWork(f *fixture) {
	f.quiet("a").commit(activity(OtherQueue))
	first := f.locked(OtherQueue)
	f.must(f.p.AbandonRecords(f.ctx(), OtherQueue, 0, first[0].Record))
	again := f.locked(OtherQueue)
	if len(again) != 1 {
		f.t.Fatalf("%d work items, want 1", len(again))
	}
	f.wantEqual("work item", again[0].WorkItem, first[0].WorkItem)
	f.acknowledge(OtherQueue, done(again, smallResult))
	if ms := f.messages(); len(ms) != 1 {
		f.t.Errorf("inbox messages: %s", text(ms))
	}
}
