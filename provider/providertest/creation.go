package providertest

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// Only a start creates an instance, and only once per ID (R10, R11).
func creation() group {
	return group{"creation", []testCase{
		{name: "AnInstanceIsWhatItsStartSays", run: startFields},
		{name: "WhoAskedForAStartIsKept", run: requester},
		{name: "AStartWakes", run: startWakes},
		{name: "ARepeatedStartChangesNothingAndWakesAgain", run: repeatedStart},
		{name: "ARepeatedStartOfARunningInstance", run: repeatedStartLater},
		{name: "AnotherStartIsRefused", run: otherStart},
		{name: "OfConcurrentStartsOneWins", run: concurrentStarts},
		{name: "ConcurrentRepeatsAreOneStart", run: concurrentRepeats},
		{name: "AnUnknownOrchestrationIsRefused", run: unknownOrchestration},
		{name: "AnUnknownVersionIsRefused", run: unknownVersion},
		{name: "AnyNameStartsBeforeABuildHasReported", run: beforeAnyBuild},
		{name: "ANewBuildMakesANameKnown", run: newBuild},
		{name: "ARepeatedBuildIsHarmless", run: repeatedBuild},
		{name: "ABuildIsKnownSinceItsFirstReport", run: firstReport},
		{name: "OnlyAStartCreatesAnInstance", run: onlyStartCreates},
		{name: "IDsAreAnyUTF8", run: anyID},
		{name: "SimilarIDsAreDifferentInstances", run: similarIDs},
		{name: "ALostResponseIsTheSameStart", run: lostStart, needs: []Capability{Faults}},
		{name: "APastIsTakenOver", run: pastTakenOver},
		{name: "WhatIsOpenOfAPastIsSent", run: openPastIsSent},
		{name: "AStartThatLooksWritesNothingWhereTheIDIsTaken", run: lookingStart},
		{name: "ARefusedStartLeavesNothing", run: refusedStart, needs: []Capability{Faults}},
	}}
}

func startFields(f *fixture) {
	s := startOf("a")
	s.Version, s.Tags = v1, map[string]string{"team": "blue", "ключ": "<&>\uFFFF"}
	f.must(f.p.PutBuild(f.ctx(), provider.Build{ID: "b", Orchestrations: map[string][]string{order: {v1}}}))
	started, err := f.p.StartOrchestration(f.ctx(), s)
	f.must(err)
	want := provider.Instance{
		InstanceID: "a", ExecutionID: started.ExecutionID, ExecutionNumber: 1, Name: order, Version: v1,
		Status: provider.StatusPending, StartID: s.StartID, CreatedAt: started.CreatedAt, UpdatedAt: started.CreatedAt, Tags: s.Tags,
	}
	f.wantEqual("started", started, want)
	f.wantEqual("read", f.instance("a"), want)
	if age := f.Now().Sub(started.CreatedAt); started.ExecutionID == "" || age < 0 || age > longVisibility {
		f.t.Errorf("execution %q, created %v ago", started.ExecutionID, age)
	}
	e := &execution{f: f, instance: started}
	f.wantEqual("history", e.log(), []history.Event{{
		ID: 1, Kind: history.OrchestrationStarted, Time: started.CreatedAt, Name: order, Version: v1,
		Input: s.Input, StartID: s.StartID, Number: 1, Tags: s.Tags,
	}})
}

func requester(f *fixture) {
	s := startOf("a")
	s.RequestedBy = "arn:aws:iam::123456789012:user/alice"
	started, err := f.p.StartOrchestration(f.ctx(), s)
	f.must(err)
	e := &execution{f: f, instance: started}
	if in, log := f.instance("a"), e.log(); started.RequestedBy != s.RequestedBy || in.RequestedBy != s.RequestedBy || log[0].RequestedBy != s.RequestedBy {
		f.t.Errorf("started by %q, read by %q, in history by %q", started.RequestedBy, in.RequestedBy, log[0].RequestedBy)
	}
	s = startOf("b")
	s.RequestedBy = history.RequestedByEngine
	started, err = f.p.StartOrchestration(f.ctx(), s)
	f.must(err)
	if started.RequestedBy == s.RequestedBy {
		f.t.Errorf("requester of a client is the reserved name of the engine")
	}
}

func startWakes(f *fixture) {
	e := f.start("a")
	ms := f.messages()
	if len(ms) != 1 || ms[0].Kind != provider.MessageWake || ms[0].InstanceID != "a" || ms[0].ExecutionID != e.instance.ExecutionID {
		f.t.Errorf("inbox messages: %s", text(ms))
	}
}

func repeatedStart(f *fixture) {
	first := f.start("a")
	f.messages()
	again := f.start("a")
	f.wantEqual("repeated", again.instance, first.instance)
	if ms := f.messages(); len(ms) != 1 || ms[0].ExecutionID != first.instance.ExecutionID {
		f.t.Errorf("inbox messages: %s", text(ms))
	}
	first.wantSegments()
}

func repeatedStartLater(f *fixture) {
	e := f.start("a")
	t := e.commit(turnStarted(), activity(Queue))
	again := f.start("a")
	if again.instance.ExecutionID != e.instance.ExecutionID || again.instance.Status != provider.StatusRunning {
		f.t.Errorf("repeated: %+v", again.instance)
	}
	e.wantSegments(t)
}

func otherStart(f *fixture) {
	e := f.quiet("a")
	other := startOf("a")
	other.StartID = "another"
	refused := func(when string) {
		f.t.Helper()
		in, err := f.p.StartOrchestration(f.ctx(), other)
		f.wantIs(err, provider.ErrAlreadyExists)
		f.wantEqual("what it met, "+when, in, f.instance("a"))
		if err != nil && !strings.Contains(err.Error(), `"a"`) {
			f.t.Errorf("%s: the error does not name the instance: %v", when, err)
		}
		now := f.instance("a")
		want := provider.NewAlreadyExistsError("a", &now, provider.ErrAlreadyExists)
		if taken, ok := errors.AsType[*provider.AlreadyExistsError](err); !ok || *taken != *want {
			f.t.Errorf("%s: the error has %+v, want %+v", when, taken, want)
		}
	}
	refused("pending")
	one := e.commit(turnStarted(), activity(Queue))
	refused("running")
	two := e.commit(completed(3), ended(`1`))
	refused("over")
	e.wantSegments(one, two)
	if in := f.instance("a"); in.StartID != e.instance.StartID || in.ExecutionID != e.instance.ExecutionID {
		f.t.Errorf("instance after the rejected start: %+v", in)
	}
	if ms := f.messages(); len(ms) > 0 {
		f.t.Errorf("rejected start sent %s", text(ms))
	}
}

const rivals = 12

// race makes concurrent starts and returns their results.
func (f *fixture) race(starts [rivals]provider.Start) (ins [rivals]provider.Instance, errs [rivals]error) {
	var wg sync.WaitGroup
	for i := range rivals {
		wg.Go(func() { ins[i], errs[i] = f.p.StartOrchestration(f.ctx(), starts[i]) })
	}
	wg.Wait()
	return ins, errs
}

func concurrentStarts(f *fixture) {
	var starts [rivals]provider.Start
	for i := range starts {
		starts[i] = startOf("a")
		starts[i].StartID = fmt.Sprint("start ", i)
	}
	ins, errs := f.race(starts)
	won := 0
	for i, err := range errs {
		if err != nil {
			f.wantIs(err, provider.ErrAlreadyExists)
			continue
		}
		won++
		f.wantEqual("the instance", f.instance("a"), ins[i])
	}
	if won != 1 {
		f.t.Errorf("%d starts succeeded, want 1", won)
	}
	if ms := f.messages(); len(ms) != 1 {
		f.t.Errorf("%d wakes, want that of the successful start", len(ms))
	}
}

func concurrentRepeats(f *fixture) {
	var starts [rivals]provider.Start
	for i := range starts {
		starts[i] = startOf("a")
	}
	ins, errs := f.race(starts)
	for i := range rivals {
		f.must(errs[i])
		f.wantEqual("the instance", ins[i], ins[0])
	}
	(&execution{f: f, instance: ins[0]}).wantSegments()
}

func unknownOrchestration(f *fixture) {
	f.must(f.p.PutBuild(f.ctx(), provider.Build{ID: "b", Orchestrations: map[string][]string{refund: {v1}}}))
	_, err := f.p.StartOrchestration(f.ctx(), startOf("a"))
	f.wantIs(err, provider.ErrUnknownOrchestration)
	if err != nil && !strings.Contains(err.Error(), `"order"`) {
		f.t.Errorf("the error does not name the orchestration: %v", err)
	}
	_, err = f.p.ReadInstance(f.ctx(), "a")
	f.wantIs(err, provider.ErrNotFound)
}

func unknownVersion(f *fixture) {
	f.must(f.p.PutBuild(f.ctx(), provider.Build{ID: "b1", Orchestrations: map[string][]string{order: {v1}}}))
	f.must(f.p.PutBuild(f.ctx(), provider.Build{ID: "b2", Orchestrations: map[string][]string{order: {"2.0.0"}}}))
	for version, want := range map[string]error{"": nil, v1: nil, "2.0.0": nil, "3.0.0": provider.ErrUnknownOrchestration, "1.0": provider.ErrUnknownOrchestration} {
		s := startOf("version " + version)
		s.Version = version
		if _, err := f.p.StartOrchestration(f.ctx(), s); want == nil {
			f.must(err)
		} else {
			f.wantIs(err, want)
		}
	}
}

func beforeAnyBuild(f *fixture) {
	for _, id := range []string{"a", "b"} {
		f.start(id)
		f.wantStatus(id, provider.StatusPending)
	}
}

func newBuild(f *fixture) {
	f.must(f.p.PutBuild(f.ctx(), provider.Build{ID: "old", Orchestrations: map[string][]string{refund: {v1}}}))
	_, err := f.p.StartOrchestration(f.ctx(), startOf("a"))
	f.wantIs(err, provider.ErrUnknownOrchestration)
	f.must(f.p.PutBuild(f.ctx(), provider.Build{ID: "newer", Orchestrations: map[string][]string{order: {v1}}}))
	f.start("a")
	s := startOf("r")
	s.Name = refund // an orchestration that only an older build knows still starts
	_, err = f.p.StartOrchestration(f.ctx(), s)
	f.must(err)
}

func firstReport(f *fixture) {
	f.report("b1", "b2", "b1")
	one, err := f.p.ReadBuild(f.ctx(), "b1")
	f.must(err)
	two, err := f.p.ReadBuild(f.ctx(), "b2")
	f.must(err)
	if !one.FirstReportedAt.Before(two.FirstReportedAt) || !one.LastReportedAt.After(two.LastReportedAt) || two.LastReportedAt.Before(two.FirstReportedAt) || one.ID != "b1" || len(one.Orchestrations[order]) != 1 {
		f.t.Errorf("build b1, reported first and again last: %+v, %+v", one, two)
	}
	_, err = f.p.ReadBuild(f.ctx(), "b3")
	f.wantIs(err, provider.ErrNotFound)
}

func repeatedBuild(f *fixture) {
	b := provider.Build{ID: "b", Orchestrations: map[string][]string{order: {v1}}, Activities: []string{pack}}
	for range 3 {
		f.must(f.p.PutBuild(f.ctx(), b))
	}
	f.start("a")
}

func onlyStartCreates(f *fixture) {
	for _, kind := range []provider.MessageKind{provider.MessageWake, provider.MessageTimerFired, provider.MessageActivityOutcomes} {
		f.must(f.p.EnqueueForOrchestrator(f.ctx(), provider.Message{Kind: kind, InstanceID: "ghost"}))
	}
	items := f.inbox()
	if len(items) != 1 || len(items[0].Messages) != 3 {
		f.t.Fatalf("inbox messages: %s", text(items))
	}
	for _, c := range []provider.Consistency{provider.Eventual, provider.Strong} {
		_, err := f.p.ReadOrchestration(f.ctx(), items[0], c)
		f.wantIs(err, provider.ErrNotFound)
	}
	_, err := f.p.ReadInstance(f.ctx(), "ghost")
	f.wantIs(err, provider.ErrNotFound)
	f.start("ghost") // and it can still be started
}

func ids() []string {
	return []string{
		"a", "#", "i#x", "x#y/..", "a/b?c=d&e=f", "~", "  ", "ä", "\u65e5\u672c\u8a9e", "🙂", "\"quoted\"", "<&>", "%00", "a\u2028b",
		"\uFFFD", "\uFFFE", "\uFFFF", strings.Repeat("x", 1024), strings.Repeat("\u65e5", 341), strings.Repeat("\uFFFF", 341),
	}
}

func anyID(f *fixture) {
	for _, id := range ids() {
		e := f.start(id)
		t := e.commit(turnStarted(), activity(Queue))
		e.wantSegments(t, e.commit(completed(3), ended(`1`)))
		if in := f.instance(id); in.InstanceID != id || in.Status != provider.StatusCompleted {
			f.t.Errorf("%q read back as %q, %s", id, in.InstanceID, in.Status)
		}
		if ms := f.messages(); len(ms) != 1 || ms[0].InstanceID != id {
			f.t.Errorf("%q: inbox messages: %s", id, text(ms))
		}
		if ws := f.work(Queue); len(ws) != 1 || ws[0].InstanceID != id {
			f.t.Errorf("%q: work items: %s", id, text(ws))
		}
	}
	page, err := f.p.ListInstances(f.ctx(), provider.ListQuery{})
	f.must(err)
	if len(page.Instances) != len(ids()) {
		f.t.Errorf("%d instances are listed, want %d", len(page.Instances), len(ids()))
	}
}

func similarIDs(f *fixture) {
	similar := []string{"a", "A", "a ", " a", "a#", "a#i", "á", "a\u0301", "ａ"}
	for i, id := range similar {
		s := startOf(id)
		s.Input, s.StartID = history.Payload(strconv.Itoa(i)), "same for all"
		_, err := f.p.StartOrchestration(f.ctx(), s)
		f.must(err)
	}
	executions := map[string]bool{}
	for i, id := range similar {
		in := f.instance(id)
		executions[in.ExecutionID] = true
		log := (&execution{f: f, instance: in}).log()
		if string(log[0].Input) != strconv.Itoa(i) {
			f.t.Errorf("%q has the input of another instance: %s", id, log[0].Input)
		}
	}
	if len(executions) != len(similar) {
		f.t.Errorf("%d executions of %d instances", len(executions), len(similar))
	}
}

func lostStart(f *fixture) {
	hits := f.Fail(Fault{Operation: Write, Failure: ResponseLost, Times: 1})
	e := f.start("a")
	e.wantSegments()
	f.wantEqual("the instance", f.instance("a"), e.instance)
	if hits() != 1 {
		f.t.Errorf("%d responses lost, want 1", hits())
	}
	if ms := f.messages(); len(ms) != 1 {
		f.t.Errorf("%d wakes, want 1", len(ms))
	}
}

// lookingStart makes a start with CheckFirst in each state of the ID. The result is the same as without CheckFirst.
func lookingStart(f *fixture) {
	look := func(startID string) (provider.Instance, error) {
		s := startOf("a")
		s.StartID, s.CheckFirst = startID, true
		return f.p.StartOrchestration(f.ctx(), s)
	}
	refused := func(when string, want provider.RuntimeStatus) {
		f.t.Helper()
		writes := f.count(Write)
		in, err := look("another")
		f.wantIs(err, provider.ErrAlreadyExists)
		f.wantEqual("what it met, "+when, in, f.instance("a"))
		if in.Status != want || errors.Is(err, provider.ErrPurged) || writes.hits() > 0 {
			f.t.Errorf("%s: %s, %v, after %d writes", when, in.Status, err, writes.hits())
		}
	}

	in, err := look("start of a") // the ID is free
	f.must(err)
	f.messages()
	e := &execution{f: f, instance: in, head: provider.Head{ExecutionID: in.ExecutionID}, next: 2}
	refused("pending", provider.StatusPending)
	e.commit(turnStarted(), activity(Queue))
	refused("running", provider.StatusRunning)
	again, err := look("start of a")
	f.must(err)
	f.wantEqual("repeated", again, f.instance("a"))
	if ms := f.messages(); len(ms) != 1 || ms[0].Kind != provider.MessageWake {
		f.t.Errorf("repeated start sent %s", text(ms))
	}
	e.commit(completed(3), ended(`1`))
	refused("over", provider.StatusCompleted)

	f.remove("a")
	_, err = look("start of a")
	f.wantIs(err, provider.ErrPurged)
	next, err := look("the next")
	f.must(err)
	if next.ExecutionID == in.ExecutionID || next.Status != provider.StatusPending {
		f.t.Errorf("started instance: %s", text(next))
	}
	_, err = look("start of a")
	f.wantIs(err, provider.ErrPurged) // whichever incarnation has the ID now
	refused("of the next life", provider.StatusPending)
}

func refusedStart(f *fixture) {
	f.Fail(Fault{Operation: Write, Failure: Rejected, Times: 1})
	_, err := f.p.StartOrchestration(f.ctx(), startOf("a"))
	f.wantPermanent(err)
	_, err = f.p.ReadInstance(f.ctx(), "a")
	f.wantIs(err, provider.ErrNotFound)
	if ms := f.messages(); len(ms) > 0 {
		f.t.Errorf("sent: %s", text(ms))
	}
}
