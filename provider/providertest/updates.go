package providertest

import (
	"fmt"
	"strings"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// The dispatch of the turn that ends an update writes its result, once per incarnation of the instance. The result is
// deleted with the instance (R27).
func updates() group {
	return group{"updates", []testCase{
		{name: "ATurnAnswersWhatItEnds", run: answeredUpdates},
		{name: "WhatHasNoAnswerIsNotFound", run: unansweredUpdates},
		{name: "TheFirstAnswerStays", run: firstAnswerStays},
		{name: "WhatIsForgottenGivesWay", run: forgottenGivesWay},
		{name: "AnAnswerIsOfOneLife", run: answersOfALife},
		{name: "APurgeErasesAnswers", run: purgedAnswers},
		{name: "ATurnOfManyAnswers", run: manyAnswers},
		{name: "LargeAnswers", run: largeAnswers},
		{name: "AnEndAnswersBeforeItsStatus", run: answeredEnd},
		{name: "AnAnswerSurvivesContinueAsNew", run: answersAcrossExecutions},
		{name: "AnUpdateThatIsSentAgainIsOneMessage", run: updateSentAgain},
	}}
}

func accepted(updateID string) history.Event {
	return history.Event{Kind: history.UpdateAccepted, Name: "address", EventID: updateID, Data: history.Payload(`"Main St"`), RequestedBy: "ann"}
}

func updated(source int64, updateID, result string) history.Event {
	return history.Event{Kind: history.UpdateCompleted, SourceEventID: source, Name: "address", EventID: updateID, Result: history.Payload(result)}
}

func rejected(updateID string) history.Event {
	return history.Event{
		Kind: history.UpdateRejected, Name: "address", EventID: updateID, Reason: history.RejectedByValidator, Error: &history.Failure{Type: "T", Message: "m", NonRetryable: true},
	}
}

// answerTo returns a result of an update of the execution's instance.
func (e *execution) answerTo(updateID, result string) provider.UpdateResult {
	return provider.UpdateResult{
		InstanceID: e.instance.InstanceID, StartID: e.instance.StartID, UpdateID: updateID, Name: "address", Outcome: provider.UpdateCompleted,
		Result: history.Payload(result), ExecutionID: e.instance.ExecutionID, EventID: 4,
	}
}

func (e *execution) wantAnswer(want provider.UpdateResult) {
	e.f.t.Helper()
	got, err := e.f.p.ReadUpdate(e.f.ctx(), want.InstanceID, want.UpdateID)
	e.f.must(err)
	e.f.wantEqual("the answer to "+want.UpdateID, got, want)
}

func wantNoAnswer(e *execution, updateID string) {
	e.f.t.Helper()
	_, err := e.f.p.ReadUpdate(e.f.ctx(), e.instance.InstanceID, updateID)
	e.f.wantIs(err, provider.ErrNotFound)
}

func answeredUpdates(f *fixture) {
	e := f.start("a")
	e.commit(turnStarted(), accepted("u-1")) // 2 3
	wantNoAnswer(e, "u-1")
	failed := updated(5, "u-2", "")
	failed.Result = nil
	failed.Error = &history.Failure{Type: "T", Message: "m"}
	e.commit(updated(3, "u-1", `{"b":1,"a":[null,1.50]}`), accepted("u-2"), failed, rejected("u/é\n")) // 4 5 6 7
	want := e.answerTo("u-1", `{"b":1,"a":[null,1.50]}`)
	e.wantAnswer(want)
	want = e.answerTo("u-2", "")
	want.Result, want.Error, want.EventID = nil, failed.Error, 6
	e.wantAnswer(want)
	want = e.answerTo("u/é\n", "")
	want.Result, want.Error, want.EventID = nil, rejected("").Error, 7
	want.Outcome, want.Reason = provider.UpdateRejected, history.RejectedByValidator
	e.wantAnswer(want)
}

func unansweredUpdates(f *fixture) {
	e := f.start("a")
	wantNoAnswer(e, "u-1")
	_, err := f.p.ReadUpdate(f.ctx(), "nobody", "u-1")
	f.wantIs(err, provider.ErrNotFound)
	f.must(f.p.PutUpdateResults(f.ctx()))
	of := e.answerTo("u-1", "1")
	of.InstanceID = "nobody"
	f.must(f.p.PutUpdateResults(f.ctx(), of)) // an unknown instance
	_, err = f.p.ReadUpdate(f.ctx(), "nobody", "u-1")
	f.wantIs(err, provider.ErrNotFound)
}

func firstAnswerStays(f *fixture) {
	e := f.start("a")
	first, second, other := e.answerTo("u-1", `"first"`), e.answerTo("u-1", `"second"`), e.answerTo("u-2", `"other"`)
	f.must(f.p.PutUpdateResults(f.ctx(), first, second)) // also if one call has two
	e.wantAnswer(first)
	f.must(f.p.PutUpdateResults(f.ctx(), second, other))
	e.wantAnswer(first)
	e.wantAnswer(other)
	forgotten := first
	forgotten.Outcome, forgotten.Result, forgotten.EventID = provider.UpdateResultExpired, nil, 0
	f.must(f.p.PutUpdateResults(f.ctx(), forgotten))
	e.wantAnswer(first)
}

func forgottenGivesWay(f *fixture) {
	e := f.start("a")
	forgotten := e.answerTo("u-1", "")
	forgotten.Outcome, forgotten.Result, forgotten.EventID = provider.UpdateResultExpired, nil, 0
	f.must(f.p.PutUpdateResults(f.ctx(), forgotten))
	e.wantAnswer(forgotten)
	known := e.answerTo("u-1", `1`)
	f.must(f.p.PutUpdateResults(f.ctx(), known))
	e.wantAnswer(known)
}

func answersOfALife(f *fixture) {
	e := f.start("a")
	f.must(f.p.PutUpdateResults(f.ctx(), e.answerTo("u-1", `1`)))
	f.must(f.p.DeleteInstance(f.ctx(), "a", true))
	again := startOf("a")
	again.StartID = "start-2"
	in, err := f.p.StartOrchestration(f.ctx(), again)
	f.must(err)
	next := &execution{f: f, instance: in, head: provider.Head{ExecutionID: in.ExecutionID}, next: 2}
	wantNoAnswer(next, "u-1")
	f.must(f.p.PutUpdateResults(f.ctx(), e.answerTo("u-2", `2`))) // of the previous incarnation
	wantNoAnswer(next, "u-2")
	f.must(f.p.PutUpdateResults(f.ctx(), next.answerTo("u-1", `3`)))
	next.wantAnswer(next.answerTo("u-1", `3`))
}

func purgedAnswers(f *fixture) {
	const many = 60
	for _, over := range []bool{false, true} {
		e := f.start(fmt.Sprint("over ", over))
		var answers []provider.UpdateResult
		for n := range many {
			answers = append(answers, e.answerTo(fmt.Sprint("u-", n), `1`))
		}
		f.must(f.p.PutUpdateResults(f.ctx(), answers...))
		if over {
			e.commit(turnStarted(), ended(`1`))
		}
		f.must(f.p.DeleteInstance(f.ctx(), e.instance.InstanceID, !over))
		f.must(f.p.PutUpdateResults(f.ctx(), answers...)) // too late
		for n := range many {
			wantNoAnswer(e, fmt.Sprint("u-", n))
		}
	}
}

func manyAnswers(f *fixture) {
	e := f.start("a")
	const many = 250
	events := []history.Event{turnStarted()}
	for n := range many {
		events = append(events, rejected(fmt.Sprint("u-", n)))
	}
	e.commit(events...)
	for n := range many {
		a, err := f.p.ReadUpdate(f.ctx(), "a", fmt.Sprint("u-", n))
		f.must(err)
		f.wantEqual("event of the answer", a.EventID, int64(n+3))
	}
}

func largeAnswers(f *fixture) {
	e := f.start("a")
	const (
		many  = 30
		bytes = 190 << 10
	)
	failed := &history.Failure{Type: "T", Message: strings.Repeat("m", bytes/2)}
	huge := &history.Failure{Type: "T", Message: "outer", Cause: &history.Failure{Type: "T", Message: strings.Repeat("\x00", bytes)}}
	var answers []provider.UpdateResult
	for n := range many {
		answers = append(answers, e.answerTo(fmt.Sprint("u-", n), `"`+strings.Repeat("r", bytes)+`"`))
		a := e.answerTo(fmt.Sprint("failed-", n), "")
		a.Result, a.Error = nil, failed
		answers = append(answers, a)
	}
	f.must(f.p.PutUpdateResults(f.ctx(), answers...))
	for _, a := range answers {
		e.wantAnswer(a)
	}

	a := e.answerTo("huge", "")
	a.Result, a.Error = nil, huge
	f.must(f.p.PutUpdateResults(f.ctx(), a))
	got, err := f.p.ReadUpdate(f.ctx(), "a", "huge")
	f.must(err)
	if got.Error == nil || got.Error.Message != "outer" {
		f.t.Errorf("stored error that exceeds the item size: %+v", got.Error)
	}
}

func answeredEnd(f *fixture) {
	e := f.start("a")
	e.commit(turnStarted(), accepted("u-1")) // 2 3
	left := updated(3, "u-1", "")
	left.Result, left.Reason = nil, history.TerminalReason(history.OrchestrationCompleted)
	e.commit(left, ended(`1`)) // 4 5
	want := e.answerTo("u-1", "")
	want.Result, want.Outcome, want.Reason = nil, provider.UpdateAborted, left.Reason
	e.wantAnswer(want)
}

func answersAcrossExecutions(f *fixture) {
	e := f.start("a")
	e.commit(turnStarted(), accepted("u-1"), updated(3, "u-1", `1`)) // 2 3 4
	next := e.continueAs("x2")
	e.wantAnswer(e.answerTo("u-1", `1`))
	f.must(f.p.PutUpdateResults(f.ctx(), next.answerTo("u-1", `2`), next.answerTo("u-2", `2`)))
	e.wantAnswer(e.answerTo("u-1", `1`))
	next.wantAnswer(next.answerTo("u-2", `2`))
}

func updateSentAgain(f *fixture) {
	e := f.quiet("a")
	m := provider.Message{
		V: provider.WireVersion, Kind: provider.MessageUpdate, InstanceID: "a", StartID: e.instance.StartID, Name: "address", EventID: "u-1",
		Data: history.Payload(`1`), RequestedBy: "ann",
	}
	other := m
	other.EventID = "u-2"
	f.must(f.p.EnqueueForOrchestrator(f.ctx(), m))
	f.must(f.p.EnqueueForOrchestrator(f.ctx(), m, other))
	var got []provider.Message
	for _, m := range f.messages() {
		got = append(got, m.Message)
	}
	f.wantEqual("messages", got, []provider.Message{m, other})
}
