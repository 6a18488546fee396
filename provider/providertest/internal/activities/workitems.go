package activities

import (
	"strings"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/providertest/internal/kit"
)

// WorkItems tests that work items arrive in their queue, and that their outcomes arrive in the inbox before the records
// are deleted (R9, R14).
func WorkItems() kit.Group {
	return kit.Group{Name: "workitems", Cases: []kit.Case{
		{Name: "ActivityIsSentToItsQueue", Run: routed},
		{Name: "WorkItemIsReadAsScheduled", Run: workItemFields},
		{Name: "WorkItemTokenIsValid", Run: tokensOfWorkItems},
		{Name: "InvalidTokenIsRejected", Run: noTokens},
		{Name: "ActivityWithDeadlineHasTimer", Run: limitedActivity},
		{Name: "UnknownQueueIsRejectedOutput", Run: unknownQueue},
		{Name: "ExclusiveKeyHasOneBatchInFlight", Run: exclusiveKey},
		{Name: "ResentItemOfExclusiveKeyIsDelivered", Run: exclusiveResent},
		{Name: "ExclusiveKeyWithoutQueueIsRejectedOutput", Run: exclusiveRefused},
		{Name: "TooLargeInputIsRejectedOutput", Run: oversizedInput},
		{Name: "OutcomesOfAnExecutionShareAMessage", Run: bundled},
		{Name: "UnacknowledgedRecordIsNotDeleted", Run: left, Needs: []kit.Capability{kit.Polling}},
		{Name: "LargeResultsShareMessagesUpToTheLimit", Run: func(f *kit.Fixture) { bundledAsFit(f, largeResult) }},
		{Name: "LargeFailuresShareMessagesUpToTheLimit", Run: func(f *kit.Fixture) { bundledAsFit(f, largeFailure) }},
		{
			Name: "EncodedResultsShareMessagesUpToTheLimit",
			Run:  func(f *kit.Fixture) { bundledAsFit(f, growingResult) },
		},
		{Name: "AcknowledgedRecordsAreDeleted", Run: acknowledged, Visibility: 2 * time.Second},
		{Name: "NothingIsSentWithoutOutcome", Run: withoutOutcome},
		{
			Name: "FailedSendDeletesNoRecords", Run: unsentOutcome, Needs: []kit.Capability{kit.Faults},
			Visibility: 2 * time.Second,
		},
		{Name: "FailedDeleteStillSendsOutcome", Run: undeletedRecords, Needs: []kit.Capability{kit.Faults}},
		{Name: "RoundTripThroughAbandon", Run: abandonedWork},
	}}
}

func routed(f *kit.Fixture) {
	f.Start("a").Commit(kit.Activity(kit.Queue), kit.Activity(kit.OtherQueue), kit.Activity(kit.Queue),
		kit.Activity(kit.OtherQueue))
	f.WantWork(kit.Queue, 2, 4)
	f.WantWork(kit.OtherQueue, 3, 5)
}

func workItemFields(f *kit.Fixture) {
	e := f.Start("a")
	scheduled := kit.Activity(kit.OtherQueue)
	scheduled.Input, scheduled.StartToCloseMs = history.Payload(`{"z":1,"a":[1.50,"x"]}`), 1500
	scheduled.Retry = &history.RetryPolicy{
		MaxAttempts: 3, InitialIntervalMs: 100, MaxIntervalMs: 5000, BackoffCoefficient: 2.5,
		NonRetryable: []string{"T"},
	}
	e.Commit(kit.TurnStarted())
	e.Commit(scheduled)
	items := f.Work(kit.OtherQueue)
	if len(items) != 1 {
		f.T.Fatalf("got %d work items, want 1", len(items))
	}
	f.WantEqual("work item", unsigned(f, items[0].WorkItem), provider.WorkItem{
		V: provider.WireVersion, InstanceID: "a", ExecutionID: e.Instance.ExecutionID, Segment: 2, ActivityID: 3,
		Name:  kit.Pack,
		Queue: kit.OtherQueue, Attempt: 1, Input: scheduled.Input, StartToCloseMs: 1500, Retry: scheduled.Retry,
	})
}

// unsigned verifies the token of a work item and returns the work item without it.
func unsigned(f *kit.Fixture, w provider.WorkItem) provider.WorkItem {
	f.T.Helper()
	opened, err := f.Provider.VerifyWorkItemToken(f.Ctx(), w.Token)
	f.Must(err)
	want := provider.WorkItem{
		V: provider.WireVersion, Queue: w.Queue, ExecutionID: w.ExecutionID, Segment: w.Segment,
		ActivityID: w.ActivityID, Attempt: w.Attempt,
	}
	f.WantEqual("contents of the token", opened, want)
	w.Token = ""
	return w
}

// tokensOfWorkItems checks that every way of sending a work item signs it with a valid token, and replaces an existing
// token.
func tokensOfWorkItems(f *kit.Fixture) {
	e := f.Start("a")
	e.Commit(kit.TurnStarted(), kit.Activity(kit.Queue), kit.Activity(kit.OtherQueue), kit.Activity(kit.Queue))
	items := append(f.Work(kit.Queue), f.Work(kit.OtherQueue)...)
	if len(items) != 3 {
		f.T.Fatalf("got %d work items, want 3", len(items))
	}
	tokens := map[string]bool{}
	for i := range items {
		tokens[items[i].Token] = true
		unsigned(f, items[i].WorkItem)
	}
	f.WantEqual("tokens", len(tokens), 3)
	for _, before := range []string{"", "w1.1.unknown", items[1].Token} {
		anew := items[0].WorkItem
		anew.Token, anew.Attempt, anew.ResendCount = before, 4, 1
		f.Must(f.Provider.PutWorkItems(f.Ctx(), anew))
		sent := f.Work(kit.Queue)
		if len(sent) != 1 {
			f.T.Fatalf("got %d work items, want the resent one", len(sent))
		}
		unsigned(f, sent[0].WorkItem)
	}
	f.Redispatch(e, kit.At(1))
	for _, it := range append(f.Work(kit.Queue), f.Work(kit.OtherQueue)...) {
		unsigned(f, it.WorkItem)
		if !tokens[it.Token] {
			f.T.Errorf("activity %d: resent work item has another token", it.ActivityID)
		}
	}
}

func noTokens(f *kit.Fixture) {
	f.Start("a").Commit(kit.TurnStarted(), kit.Activity(kit.Queue))
	good := f.Work(kit.Queue)[0].Token
	for _, token := range []string{
		"", ".", "w1", "w1..", good[:len(good)-1], good + "A", good[:len(good)-2] + "AA",
		strings.Replace(good, "w1.", "w2.", 1), strings.Repeat(good, 5000), "\x00", " " + good,
	} {
		w, err := f.Provider.VerifyWorkItemToken(f.Ctx(), token)
		f.WantErrorIs(err, provider.ErrInvalidToken)
		f.WantEqual("contents of an invalid token", w, provider.WorkItem{})
	}
	_, err := f.Provider.VerifyWorkItemToken(f.Ctx(), good)
	f.Must(err)
}

// limitedActivity schedules an activity with a schedule-to-close timeout. A timer ends the activity a second after the
// timeout.
func limitedActivity(f *kit.Fixture) {
	e := f.Start("a")
	scheduled := kit.Activity(kit.Queue)
	scheduled.HeartbeatMs, scheduled.ScheduleToCloseMs = 5000, 500
	scheduled.FairnessKey = "tenant-7"
	t := e.Commit(kit.TurnStarted(), scheduled)
	by := t.Events[1].Time.Add(500 * time.Millisecond)
	items := f.Work(kit.Queue)
	if len(items) != 1 {
		f.T.Fatalf("got %d work items, want 1", len(items))
	}
	f.WantEqual("work item", unsigned(f, items[0].WorkItem), provider.WorkItem{
		V: provider.WireVersion, InstanceID: "a", ExecutionID: e.Instance.ExecutionID, Segment: 1, ActivityID: 3,
		Name:  kit.Pack,
		Queue: kit.Queue, Attempt: 1, Input: scheduled.Input, HeartbeatMs: 5000, ScheduleToCloseDeadline: &by,
		FairnessKey: "tenant-7",
	})
	f.Advance(2 * time.Second)
	timers := f.Timers()
	if len(timers) != 1 {
		f.T.Fatalf("got %d timers, want 1", len(timers))
	}
	f.WantEqual("timer", timers[0].Timer, provider.Timer{
		V: provider.WireVersion, InstanceID: "a", ExecutionID: e.Instance.ExecutionID, Segment: 1, TimerID: 3,
		FireAt: by.Add(time.Second), Activity: true,
	})
}

// wantRefused fails if the permanently rejected outputs are not exactly the output of event 3.
func wantRefused(f *kit.Fixture, refused []provider.OutputFailure) {
	f.T.Helper()
	if len(refused) != 1 || refused[0].EventID != 3 || !refused[0].Failure.NonRetryable ||
		refused[0].Failure.Type == "" || refused[0].Failure.Message == "" {
		f.T.Errorf("got rejected outputs %s, want the output of event 3 with its reason",
			kit.Shorten(kit.Text(refused)))
	}
}

func unknownQueue(f *kit.Fixture) {
	e := f.Start("a")
	t := e.Turn(kit.TurnStarted(), kit.Activity("nowhere"), kit.Activity(kit.Queue))
	refused, err := f.Provider.AckOrchestrationItem(f.Ctx(), t)
	f.Must(err)
	wantRefused(f, refused)
	if len(refused) == 1 && !strings.Contains(refused[0].Failure.Message, "nowhere") {
		f.T.Errorf("reason does not name the queue: %s", refused[0].Failure.Message)
	}
	f.WantWork(kit.Queue, 4)
	e.WantSegments(t)
}

func oversizedInput(f *kit.Fixture) {
	e := f.Start("a")
	large := kit.Activity(kit.Queue)
	large.Input = history.Payload(`"` + strings.Repeat("x", 1<<20) + `"`)
	t := e.Turn(kit.TurnStarted(), large, kit.Activity(kit.Queue))
	refused, err := f.Provider.AckOrchestrationItem(f.Ctx(), t)
	f.Must(err)
	wantRefused(f, refused)
	f.WantWork(kit.Queue, 4)
}

func largeResult(int) provider.ActivityOutcome {
	return provider.ActivityOutcome{Result: kit.Noise(200 << 10)}
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

func bundled(f *kit.Fixture) {
	a, b := f.StartWithoutWake("a"), f.StartWithoutWake("b")
	a.Commit(kit.TurnStarted(), kit.Activity(kit.Queue), kit.Activity(kit.Queue))
	a.Commit(kit.Activity(kit.Queue))
	b.Commit(kit.TurnStarted(), kit.Activity(kit.Queue))
	f.Acknowledge(kit.Queue, kit.Done(f.Locked(kit.Queue), kit.SmallResult))
	got := map[string][]provider.Message{}
	for _, m := range f.Messages() {
		got[m.InstanceID] = append(got[m.InstanceID], m.Message)
	}
	if len(got["a"]) != 1 || len(got["b"]) != 1 || len(got["a"][0].Outcomes) != 3 || len(got["b"][0].Outcomes) != 1 {
		f.T.Fatalf("got messages %s", kit.Text(got))
	}
	if m := got["a"][0]; m.Segment != 2 || m.ExecutionID != a.Instance.ExecutionID ||
		m.Kind != provider.MessageActivityOutcomes {
		f.T.Errorf("got message %s, want one of the latest segment", kit.Text(m))
	}
}

// left checks that all outcomes are sent, and that all records are deleted except the record with KeepRecord.
func left(f *kit.Fixture) {
	f.StartWithoutWake("a").Commit(kit.TurnStarted(), kit.Activity(kit.Queue), kit.Activity(kit.Queue))
	all := kit.Done(f.Locked(kit.Queue), kit.SmallResult)
	all[1].KeepRecord = true
	f.Acknowledge(kit.Queue, all)
	if ms := f.Messages(); len(ms) != 1 || len(ms[0].Outcomes) != 2 {
		f.T.Errorf("got messages %s, want one of two outcomes", kit.Text(ms))
	}
	f.Must(f.Provider.AbandonRecords(f.Ctx(), kit.Queue, 0, all[1].Record))
	if again := f.Fetch(kit.Queue, 1); len(again) != 1 || again[0].ID != all[1].Record.ID {
		f.T.Errorf("received %s again, want %s", kit.Text(again), all[1].Record.ID)
	}
}

func bundledAsFit(f *kit.Fixture, outcome func(int) provider.ActivityOutcome) {
	const n = 9
	f.StartWithoutWake("a").Commit(kit.Repeat(n, kit.Activity(kit.Queue))...)
	items := f.Locked(kit.Queue)
	if len(items) != n {
		f.T.Fatalf("got %d work items, want %d", len(items), n)
	}
	all := kit.Done(items, outcome)
	f.Acknowledge(kit.Queue, all)
	want := map[int64]string{}
	for _, d := range all {
		want[d.ActivityID] = string(kit.Canonical([]byte(kit.Text(d.Outcome))))
	}
	ms := f.Messages()
	got := map[int64]string{}
	for _, m := range ms {
		for _, o := range m.Outcomes {
			got[o.ActivityID] = string(kit.Canonical([]byte(kit.Text(o))))
		}
	}
	f.WantEqual("outcomes", got, want)
	if len(ms) >= n {
		f.T.Errorf("got %d messages of %d outcomes", len(ms), n)
	}
}

func acknowledged(f *kit.Fixture) {
	f.StartWithoutWake("a").Commit(kit.Repeat(3, kit.Activity(kit.Queue))...)
	f.Acknowledge(kit.Queue, kit.Done(f.Locked(kit.Queue), kit.SmallResult))
	f.Advance(3 * time.Second)
	if again := f.Locked(kit.Queue); len(again) > 0 {
		f.T.Errorf("redelivered work items: got %s", kit.Text(again))
	}
	if ms := f.Messages(); len(ms) != 1 || len(ms[0].Outcomes) != 3 {
		f.T.Errorf("inbox messages: got %s", kit.Text(ms))
	}
}

func withoutOutcome(f *kit.Fixture) {
	f.StartWithoutWake("a").Commit(kit.Activity(kit.Queue), kit.Activity(kit.Queue))
	all := kit.Done(f.Locked(kit.Queue), kit.SmallResult)
	all[0].Outcome = nil
	f.Acknowledge(kit.Queue, all)
	if ms := f.Messages(); len(ms) != 1 || len(ms[0].Outcomes) != 1 ||
		ms[0].Outcomes[0].ActivityID != all[1].ActivityID {
		f.T.Errorf("inbox messages: got %s", kit.Text(ms))
	}
	f.WantNothingSent()
}

func unsentOutcome(f *kit.Fixture) {
	f.StartWithoutWake("a").Commit(kit.Activity(kit.Queue), kit.Activity(kit.Queue))
	all := kit.Done(f.Locked(kit.Queue), kit.SmallResult)
	f.Fail(kit.Fault{Operation: kit.Send, Failure: kit.Rejected, Times: 1})
	failed, err := f.Provider.AckWorkItems(f.Ctx(), kit.Queue, all)
	f.WantPermanent(err)
	f.WantEqual("failed", failed, []provider.Record{all[0].Record, all[1].Record})
	f.Advance(3 * time.Second)
	if again := f.Locked(kit.Queue); len(again) != 2 {
		f.T.Errorf("%d records were redelivered, want 2", len(again))
	}
}

func undeletedRecords(f *kit.Fixture) {
	f.StartWithoutWake("a").Commit(kit.Activity(kit.Queue))
	all := kit.Done(f.Locked(kit.Queue), kit.SmallResult)
	f.Fail(kit.Fault{Operation: kit.Delete, Failure: kit.Rejected, Times: 1})
	f.Acknowledge(kit.Queue, all) // the outcome is in the inbox, and a redelivery of the record sends the same outcome
	if ms := f.Messages(); len(ms) != 1 {
		f.T.Errorf("inbox messages: got %s", kit.Text(ms))
	}
}

func abandonedWork(f *kit.Fixture) {
	f.StartWithoutWake("a").Commit(kit.Activity(kit.OtherQueue))
	first := f.Locked(kit.OtherQueue)
	f.Must(f.Provider.AbandonRecords(f.Ctx(), kit.OtherQueue, 0, first[0].Record))
	again := f.Locked(kit.OtherQueue)
	if len(again) != 1 {
		f.T.Fatalf("got %d work items, want 1", len(again))
	}
	f.WantEqual("work item", again[0].WorkItem, first[0].WorkItem)
	f.Acknowledge(kit.OtherQueue, kit.Done(again, kit.SmallResult))
	if ms := f.Messages(); len(ms) != 1 {
		f.T.Errorf("inbox messages: got %s", kit.Text(ms))
	}
}
