package messages

import (
	"fmt"
	"strings"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/providertest/internal/kit"
)

// Updates tests that the dispatch of a turn writes the results of the updates that end in it, once per incarnation of
// the instance. The result is deleted with the instance (R27).
func Updates() kit.Group {
	return kit.Group{Name: "updates", Cases: []kit.Case{
		{Name: "TurnWritesResultsOfEndedUpdates", Run: turnWritesResults},
		{Name: "MissingResultIsNotFound", Run: unansweredUpdates},
		{Name: "FirstResultIsKept", Run: firstResultIsKept},
		{Name: "ResultReplacesForgottenRecord", Run: expiredResultIsReplaced},
		{Name: "ResultBelongsToOneIncarnation", Run: resultsOfAnIncarnation},
		{Name: "PurgeDeletesResults", Run: purgeDeletesResults},
		{Name: "TurnWithManyResults", Run: manyResults},
		{Name: "LargeResults", Run: largeResults},
		{Name: "EndWritesResultsBeforeStatus", Run: endWritesResults},
		{Name: "ResultSurvivesContinueAsNew", Run: resultsAcrossExecutions},
		{Name: "RepeatedUpdateIsOneMessage", Run: updateSentAgain},
	}}
}

func accepted(updateID string) history.Event {
	return history.Event{
		Kind: history.UpdateAccepted, Name: "address", EventID: updateID, Data: history.Payload(`"Main St"`),
		RequestedBy: "ann",
	}
}

func updated(source int64, updateID, result string) history.Event {
	return history.Event{
		Kind: history.UpdateCompleted, SourceEventID: source, Name: "address", EventID: updateID,
		Result: history.Payload(result),
	}
}

func rejected(updateID string) history.Event {
	return history.Event{
		Kind: history.UpdateRejected, Name: "address", EventID: updateID, Reason: history.RejectedByValidator,
		Error: &history.Failure{Type: "T", Message: "m", NonRetryable: true},
	}
}

// resultOf returns a result of an update of the execution's instance.
func resultOf(e *kit.Execution, updateID, result string) provider.UpdateResult {
	return provider.UpdateResult{
		InstanceID: e.Instance.InstanceID, StartID: e.Instance.StartID, UpdateID: updateID, Name: "address",
		Outcome: provider.UpdateCompleted,
		Result:  history.Payload(result), ExecutionID: e.Instance.ExecutionID, EventID: 4,
	}
}

func wantResult(e *kit.Execution, want provider.UpdateResult) {
	e.F.T.Helper()
	got, err := e.F.Provider.ReadUpdate(e.F.Ctx(), want.InstanceID, want.UpdateID)
	e.F.Must(err)
	e.F.WantEqual("result of update "+want.UpdateID, got, want)
}

func wantNoResult(e *kit.Execution, updateID string) {
	e.F.T.Helper()
	_, err := e.F.Provider.ReadUpdate(e.F.Ctx(), e.Instance.InstanceID, updateID)
	e.F.WantErrorIs(err, provider.ErrNotFound)
}

func turnWritesResults(f *kit.Fixture) {
	e := f.Start("a")
	e.Commit(kit.TurnStarted(), accepted("u-1")) // 2 3
	wantNoResult(e, "u-1")
	failed := updated(5, "u-2", "")
	failed.Result = nil
	failed.Error = &history.Failure{Type: "T", Message: "m"}
	e.Commit(updated(3, "u-1", `{"b":1,"a":[null,1.50]}`), accepted("u-2"), failed, rejected("u/é\n")) // 4 5 6 7
	want := resultOf(e, "u-1", `{"b":1,"a":[null,1.50]}`)
	wantResult(e, want)
	want = resultOf(e, "u-2", "")
	want.Result, want.Error, want.EventID = nil, failed.Error, 6
	wantResult(e, want)
	want = resultOf(e, "u/é\n", "")
	want.Result, want.Error, want.EventID = nil, rejected("").Error, 7
	want.Outcome, want.Reason = provider.UpdateRejected, history.RejectedByValidator
	wantResult(e, want)
}

func unansweredUpdates(f *kit.Fixture) {
	e := f.Start("a")
	wantNoResult(e, "u-1")
	_, err := f.Provider.ReadUpdate(f.Ctx(), "missing", "u-1")
	f.WantErrorIs(err, provider.ErrNotFound)
	f.Must(f.Provider.PutUpdateResults(f.Ctx()))
	of := resultOf(e, "u-1", "1")
	of.InstanceID = "missing"
	f.Must(f.Provider.PutUpdateResults(f.Ctx(), of)) // an unknown instance
	_, err = f.Provider.ReadUpdate(f.Ctx(), "missing", "u-1")
	f.WantErrorIs(err, provider.ErrNotFound)
}

func firstResultIsKept(f *kit.Fixture) {
	e := f.Start("a")
	first, second, other := resultOf(e, "u-1", `"first"`), resultOf(e, "u-1", `"second"`), resultOf(e, "u-2", `"other"`)
	f.Must(f.Provider.PutUpdateResults(f.Ctx(), first, second)) // a call can have two results
	wantResult(e, first)
	f.Must(f.Provider.PutUpdateResults(f.Ctx(), second, other))
	wantResult(e, first)
	wantResult(e, other)
	forgotten := first
	forgotten.Outcome, forgotten.Result, forgotten.EventID = provider.UpdateResultExpired, nil, 0
	f.Must(f.Provider.PutUpdateResults(f.Ctx(), forgotten))
	wantResult(e, first)
}

func expiredResultIsReplaced(f *kit.Fixture) {
	e := f.Start("a")
	forgotten := resultOf(e, "u-1", "")
	forgotten.Outcome, forgotten.Result, forgotten.EventID = provider.UpdateResultExpired, nil, 0
	f.Must(f.Provider.PutUpdateResults(f.Ctx(), forgotten))
	wantResult(e, forgotten)
	known := resultOf(e, "u-1", `1`)
	f.Must(f.Provider.PutUpdateResults(f.Ctx(), known))
	wantResult(e, known)
}

func resultsOfAnIncarnation(f *kit.Fixture) {
	e := f.Start("a")
	f.Must(f.Provider.PutUpdateResults(f.Ctx(), resultOf(e, "u-1", `1`)))
	f.Must(f.Provider.DeleteInstance(f.Ctx(), "a", true))
	again := kit.StartOf("a")
	again.StartID = "start-2"
	in, err := f.Provider.StartOrchestration(f.Ctx(), again)
	f.Must(err)
	next := &kit.Execution{F: f, Instance: in, Head: provider.Head{ExecutionID: in.ExecutionID}, Next: 2}
	wantNoResult(next, "u-1")
	f.Must(f.Provider.PutUpdateResults(f.Ctx(), resultOf(e, "u-2", `2`))) // result of the previous incarnation
	wantNoResult(next, "u-2")
	f.Must(f.Provider.PutUpdateResults(f.Ctx(), resultOf(next, "u-1", `3`)))
	wantResult(next, resultOf(next, "u-1", `3`))
}

func purgeDeletesResults(f *kit.Fixture) {
	const many = 60
	for _, over := range []bool{false, true} {
		e := f.Start(fmt.Sprint("over ", over))
		var responses []provider.UpdateResult
		for n := range many {
			responses = append(responses, resultOf(e, fmt.Sprint("u-", n), `1`))
		}
		f.Must(f.Provider.PutUpdateResults(f.Ctx(), responses...))
		if over {
			e.Commit(kit.TurnStarted(), kit.Ended(`1`))
		}
		f.Must(f.Provider.DeleteInstance(f.Ctx(), e.Instance.InstanceID, !over))
		f.Must(f.Provider.PutUpdateResults(f.Ctx(), responses...)) // too late
		for n := range many {
			wantNoResult(e, fmt.Sprint("u-", n))
		}
	}
}

func manyResults(f *kit.Fixture) {
	e := f.Start("a")
	const many = 250
	events := []history.Event{kit.TurnStarted()}
	for n := range many {
		events = append(events, rejected(fmt.Sprint("u-", n)))
	}
	e.Commit(events...)
	for n := range many {
		a, err := f.Provider.ReadUpdate(f.Ctx(), "a", fmt.Sprint("u-", n))
		f.Must(err)
		f.WantEqual("event of the result", a.EventID, int64(n+3))
	}
}

func largeResults(f *kit.Fixture) {
	e := f.Start("a")
	const (
		many  = 30
		bytes = 190 << 10
	)
	failed := &history.Failure{Type: "T", Message: strings.Repeat("m", bytes/2)}
	huge := &history.Failure{
		Type: "T", Message: "outer", Cause: &history.Failure{Type: "T", Message: strings.Repeat("\x00", bytes)},
	}
	var responses []provider.UpdateResult
	for n := range many {
		responses = append(responses, resultOf(e, fmt.Sprint("u-", n), `"`+strings.Repeat("r", bytes)+`"`))
		a := resultOf(e, fmt.Sprint("failed-", n), "")
		a.Result, a.Error = nil, failed
		responses = append(responses, a)
	}
	f.Must(f.Provider.PutUpdateResults(f.Ctx(), responses...))
	for _, a := range responses {
		wantResult(e, a)
	}

	a := resultOf(e, "huge", "")
	a.Result, a.Error = nil, huge
	f.Must(f.Provider.PutUpdateResults(f.Ctx(), a))
	got, err := f.Provider.ReadUpdate(f.Ctx(), "a", "huge")
	f.Must(err)
	if got.Error == nil || got.Error.Message != "outer" {
		f.T.Errorf("stored error that exceeds the item size: got %+v", got.Error)
	}
}

func endWritesResults(f *kit.Fixture) {
	e := f.Start("a")
	e.Commit(kit.TurnStarted(), accepted("u-1")) // 2 3
	left := updated(3, "u-1", "")
	left.Result, left.Reason = nil, history.TerminalReason(history.OrchestrationCompleted)
	e.Commit(left, kit.Ended(`1`)) // 4 5
	want := resultOf(e, "u-1", "")
	want.Result, want.Outcome, want.Reason = nil, provider.UpdateAborted, left.Reason
	wantResult(e, want)
}

func resultsAcrossExecutions(f *kit.Fixture) {
	e := f.Start("a")
	e.Commit(kit.TurnStarted(), accepted("u-1"), updated(3, "u-1", `1`)) // 2 3 4
	next := e.ContinueAs("x2")
	wantResult(e, resultOf(e, "u-1", `1`))
	f.Must(f.Provider.PutUpdateResults(f.Ctx(), resultOf(next, "u-1", `2`), resultOf(next, "u-2", `2`)))
	wantResult(e, resultOf(e, "u-1", `1`))
	wantResult(next, resultOf(next, "u-2", `2`))
}

func updateSentAgain(f *kit.Fixture) {
	e := f.StartWithoutWake("a")
	m := provider.Message{
		V: provider.WireVersion, Kind: provider.MessageUpdate, InstanceID: "a", StartID: e.Instance.StartID,
		Name: "address", EventID: "u-1",
		Data: history.Payload(`1`), RequestedBy: "ann",
	}
	other := m
	other.EventID = "u-2"
	f.Must(f.Provider.EnqueueForOrchestrator(f.Ctx(), m))
	f.Must(f.Provider.EnqueueForOrchestrator(f.Ctx(), m, other))
	var got []provider.Message
	for _, m := range f.Messages() {
		got = append(got, m.Message)
	}
	f.WantEqual("messages", got, []provider.Message{m, other})
}
