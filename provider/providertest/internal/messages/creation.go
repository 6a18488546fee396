package messages

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/providertest/internal/kit"
)

// Creation tests that only a start creates an instance, and only once per ID (R10, R11).
func Creation() kit.Group {
	return kit.Group{Name: "creation", Cases: []kit.Case{
		{Name: "InstanceEqualsItsStart", Run: startFields},
		{Name: "RequesterOfStartIsStored", Run: requester},
		{Name: "StartSendsWake", Run: startWakes},
		{Name: "RepeatedStartOnlyWakesAgain", Run: repeatedStart},
		{Name: "RepeatedStartOfRunningInstance", Run: repeatedStartLater},
		{Name: "AnotherStartIsRejected", Run: otherStart},
		{Name: "OnlyOneConcurrentStartSucceeds", Run: concurrentStarts},
		{Name: "ConcurrentRepeatedStartsAreOneStart", Run: concurrentRepeats},
		{Name: "UnknownOrchestrationIsRejected", Run: unknownOrchestration},
		{Name: "UnknownVersionIsRejected", Run: unknownVersion},
		{Name: "AnyNameStartsBeforeABuildHasReported", Run: beforeAnyBuild},
		{Name: "NewBuildRegistersName", Run: newBuild},
		{Name: "RepeatedReportOfBuildHasNoEffect", Run: repeatedBuild},
		{Name: "BuildIsKnownSinceFirstReport", Run: firstReport},
		{Name: "OnlyAStartCreatesAnInstance", Run: onlyStartCreates},
		{Name: "IDsAreAnyUTF8", Run: anyID},
		{Name: "SimilarIDsAreDifferentInstances", Run: similarIDs},
		{Name: "LostResponseOfStartIsTheSameStart", Run: lostStart, Needs: []kit.Capability{kit.Faults}},
		{Name: "PastEventsAreCopied", Run: pastEventsCopied},
		{Name: "OpenWorkOfPastIsSent", Run: openPastIsSent},
		{Name: "StartWithCheckWritesNothingIfIDIsInUse", Run: checkFirstStart},
		{Name: "RejectedStartWritesNothing", Run: refusedStart, Needs: []kit.Capability{kit.Faults}},
	}}
}

func startFields(f *kit.Fixture) {
	s := kit.StartOf("a")
	s.Version, s.Tags = kit.V1, map[string]string{"team": "blue", "ключ": "<&>\uFFFF"}
	f.Must(f.Provider.PutBuild(f.Ctx(), provider.Build{
		ID: "b", Orchestrations: map[string][]string{kit.Order: {kit.V1}},
	}))
	started, err := f.Provider.StartOrchestration(f.Ctx(), s)
	f.Must(err)
	want := provider.Instance{
		InstanceID: "a", ExecutionID: started.ExecutionID, ExecutionNumber: 1, Name: kit.Order, Version: kit.V1,
		Status: provider.StatusPending, StartID: s.StartID, CreatedAt: started.CreatedAt, UpdatedAt: started.CreatedAt,
		Tags: s.Tags,
	}
	f.WantEqual("started", started, want)
	f.WantEqual("read", f.Instance("a"), want)
	if age := f.Now().Sub(started.CreatedAt); started.ExecutionID == "" || age < 0 || age > kit.LongVisibility {
		f.T.Errorf("got execution %q, created %v ago", started.ExecutionID, age)
	}
	e := &kit.Execution{F: f, Instance: started}
	f.WantEqual("history", e.History(), []history.Event{{
		ID: 1, Kind: history.OrchestrationStarted, Time: started.CreatedAt, Name: kit.Order, Version: kit.V1,
		Input: s.Input, StartID: s.StartID, Number: 1, Tags: s.Tags,
	}})
}

func requester(f *kit.Fixture) {
	s := kit.StartOf("a")
	s.RequestedBy = "arn:aws:iam::123456789012:user/alice"
	started, err := f.Provider.StartOrchestration(f.Ctx(), s)
	f.Must(err)
	e := &kit.Execution{F: f, Instance: started}
	if in, log := f.Instance("a"), e.History(); started.RequestedBy != s.RequestedBy ||
		in.RequestedBy != s.RequestedBy || log[0].RequestedBy != s.RequestedBy {
		f.T.Errorf("started by %q, read by %q, in history by %q", started.RequestedBy, in.RequestedBy,
			log[0].RequestedBy)
	}
	s = kit.StartOf("b")
	s.RequestedBy = history.RequestedByEngine
	started, err = f.Provider.StartOrchestration(f.Ctx(), s)
	f.Must(err)
	if started.RequestedBy == s.RequestedBy {
		f.T.Errorf("requester of a client is the reserved name of the engine")
	}
}

func startWakes(f *kit.Fixture) {
	e := f.Start("a")
	ms := f.Messages()
	if len(ms) != 1 || ms[0].Kind != provider.MessageWake || ms[0].InstanceID != "a" ||
		ms[0].ExecutionID != e.Instance.ExecutionID {
		f.T.Errorf("inbox messages: got %s", kit.Text(ms))
	}
}

func repeatedStart(f *kit.Fixture) {
	first := f.Start("a")
	f.Messages()
	again := f.Start("a")
	f.WantEqual("repeated", again.Instance, first.Instance)
	if ms := f.Messages(); len(ms) != 1 || ms[0].ExecutionID != first.Instance.ExecutionID {
		f.T.Errorf("inbox messages: got %s", kit.Text(ms))
	}
	first.WantSegments()
}

func repeatedStartLater(f *kit.Fixture) {
	e := f.Start("a")
	t := e.Commit(kit.TurnStarted(), kit.Activity(kit.Queue))
	again := f.Start("a")
	if again.Instance.ExecutionID != e.Instance.ExecutionID || again.Instance.Status != provider.StatusRunning {
		f.T.Errorf("repeated: got %+v", again.Instance)
	}
	e.WantSegments(t)
}

func otherStart(f *kit.Fixture) {
	e := f.StartWithoutWake("a")
	other := kit.StartOf("a")
	other.StartID = "another"
	refused := func(when string) {
		f.T.Helper()
		in, err := f.Provider.StartOrchestration(f.Ctx(), other)
		f.WantErrorIs(err, provider.ErrAlreadyExists)
		f.WantEqual("existing instance, "+when, in, f.Instance("a"))
		if err != nil && !strings.Contains(err.Error(), `"a"`) {
			f.T.Errorf("%s: the error does not name the instance: %v", when, err)
		}
		now := f.Instance("a")
		want := provider.NewAlreadyExistsError("a", &now, provider.ErrAlreadyExists)
		if taken, ok := errors.AsType[*provider.AlreadyExistsError](err); !ok || *taken != *want {
			f.T.Errorf("%s: the error has %+v, want %+v", when, taken, want)
		}
	}
	refused("pending")
	one := e.Commit(kit.TurnStarted(), kit.Activity(kit.Queue))
	refused("running")
	two := e.Commit(kit.Completed(3), kit.Ended(`1`))
	refused("ended")
	e.WantSegments(one, two)
	if in := f.Instance("a"); in.StartID != e.Instance.StartID || in.ExecutionID != e.Instance.ExecutionID {
		f.T.Errorf("instance after the rejected start: got %+v", in)
	}
	if ms := f.Messages(); len(ms) > 0 {
		f.T.Errorf("rejected start sent %s", kit.Text(ms))
	}
}

const racers = 12

// race makes racers starts and returns their results.
func race(f *kit.Fixture, starts [racers]provider.Start) (ins [racers]provider.Instance, errs [racers]error) {
	var wg sync.WaitGroup
	for i := range racers {
		wg.Go(func() { ins[i], errs[i] = f.Provider.StartOrchestration(f.Ctx(), starts[i]) })
	}
	wg.Wait()
	return ins, errs
}

func concurrentStarts(f *kit.Fixture) {
	var starts [racers]provider.Start
	for i := range starts {
		starts[i] = kit.StartOf("a")
		starts[i].StartID = fmt.Sprint("start ", i)
	}
	ins, errs := race(f, starts)
	won := 0
	for i, err := range errs {
		if err != nil {
			f.WantErrorIs(err, provider.ErrAlreadyExists)
			continue
		}
		won++
		f.WantEqual("the instance", f.Instance("a"), ins[i])
	}
	if won != 1 {
		f.T.Errorf("got %d successful starts, want 1", won)
	}
	if ms := f.Messages(); len(ms) != 1 {
		f.T.Errorf("got %d wakes, want that of the successful start", len(ms))
	}
}

func concurrentRepeats(f *kit.Fixture) {
	var starts [racers]provider.Start
	for i := range starts {
		starts[i] = kit.StartOf("a")
	}
	ins, errs := race(f, starts)
	for i := range racers {
		f.Must(errs[i])
		f.WantEqual("the instance", ins[i], ins[0])
	}
	(&kit.Execution{F: f, Instance: ins[0]}).WantSegments()
}

func onlyStartCreates(f *kit.Fixture) {
	for _, kind := range []provider.MessageKind{
		provider.MessageWake, provider.MessageTimerFired, provider.MessageActivityOutcomes,
	} {
		f.Must(f.Provider.EnqueueForOrchestrator(f.Ctx(), provider.Message{Kind: kind, InstanceID: "ghost"}))
	}
	items := f.Inbox()
	if len(items) != 1 || len(items[0].Messages) != 3 {
		f.T.Fatalf("inbox messages: got %s", kit.Text(items))
	}
	for _, c := range []provider.Consistency{provider.Eventual, provider.Strong} {
		_, err := f.Provider.ReadOrchestration(f.Ctx(), items[0], c)
		f.WantErrorIs(err, provider.ErrNotFound)
	}
	_, err := f.Provider.ReadInstance(f.Ctx(), "ghost")
	f.WantErrorIs(err, provider.ErrNotFound)
	f.Start("ghost") // the instance can still be started
}

func ids() []string {
	return []string{
		"a", "#", "i#x", "x#y/..", "a/b?c=d&e=f", "~", "  ", "ä", "\u65e5\u672c\u8a9e", "🙂", "\"quoted\"", "<&>", "%00",
		"a\u2028b",
		"\uFFFD", "\uFFFE", "\uFFFF", strings.Repeat("x", 1024), strings.Repeat("\u65e5", 341),
		strings.Repeat("\uFFFF", 341),
	}
}

func anyID(f *kit.Fixture) {
	for _, id := range ids() {
		e := f.Start(id)
		t := e.Commit(kit.TurnStarted(), kit.Activity(kit.Queue))
		e.WantSegments(t, e.Commit(kit.Completed(3), kit.Ended(`1`)))
		if in := f.Instance(id); in.InstanceID != id || in.Status != provider.StatusCompleted {
			f.T.Errorf("%q read back as %q, %s", id, in.InstanceID, in.Status)
		}
		if ms := f.Messages(); len(ms) != 1 || ms[0].InstanceID != id {
			f.T.Errorf("%q: inbox messages: %s", id, kit.Text(ms))
		}
		if ws := f.Work(kit.Queue); len(ws) != 1 || ws[0].InstanceID != id {
			f.T.Errorf("%q: work items: %s", id, kit.Text(ws))
		}
	}
	page, err := f.Provider.ListInstances(f.Ctx(), provider.ListQuery{})
	f.Must(err)
	if len(page.Instances) != len(ids()) {
		f.T.Errorf("%d instances are listed, want %d", len(page.Instances), len(ids()))
	}
}

func similarIDs(f *kit.Fixture) {
	similar := []string{"a", "A", "a ", " a", "a#", "a#i", "á", "a\u0301", "ａ"}
	for i, id := range similar {
		s := kit.StartOf(id)
		s.Input, s.StartID = history.Payload(strconv.Itoa(i)), "same for all"
		_, err := f.Provider.StartOrchestration(f.Ctx(), s)
		f.Must(err)
	}
	executions := map[string]bool{}
	for i, id := range similar {
		in := f.Instance(id)
		executions[in.ExecutionID] = true
		log := (&kit.Execution{F: f, Instance: in}).History()
		if string(log[0].Input) != strconv.Itoa(i) {
			f.T.Errorf("%q has the input of another instance: %s", id, log[0].Input)
		}
	}
	if len(executions) != len(similar) {
		f.T.Errorf("got %d executions of %d instances", len(executions), len(similar))
	}
}

func lostStart(f *kit.Fixture) {
	hits := f.Fail(kit.Fault{Operation: kit.Write, Failure: kit.ResponseLost, Times: 1})
	e := f.Start("a")
	e.WantSegments()
	f.WantEqual("the instance", f.Instance("a"), e.Instance)
	if hits() != 1 {
		f.T.Errorf("got %d lost responses, want 1", hits())
	}
	if ms := f.Messages(); len(ms) != 1 {
		f.T.Errorf("got %d wakes, want 1", len(ms))
	}
}

// checkFirstStart makes a start with CheckFirst in each state of the ID. The result is the same as without CheckFirst.
func checkFirstStart(f *kit.Fixture) {
	look := func(startID string) (provider.Instance, error) {
		s := kit.StartOf("a")
		s.StartID, s.CheckFirst = startID, true
		return f.Provider.StartOrchestration(f.Ctx(), s)
	}
	refused := func(when string, want provider.RuntimeStatus) {
		f.T.Helper()
		writes := f.Count(kit.Write)
		in, err := look("another")
		f.WantErrorIs(err, provider.ErrAlreadyExists)
		f.WantEqual("existing instance, "+when, in, f.Instance("a"))
		if in.Status != want || errors.Is(err, provider.ErrPurged) || writes.Hits() > 0 {
			f.T.Errorf("%s: %s, %v, after %d writes", when, in.Status, err, writes.Hits())
		}
	}

	in, err := look("start of a") // the ID is free
	f.Must(err)
	f.Messages()
	e := &kit.Execution{F: f, Instance: in, Head: provider.Head{ExecutionID: in.ExecutionID}, Next: 2}
	refused("pending", provider.StatusPending)
	e.Commit(kit.TurnStarted(), kit.Activity(kit.Queue))
	refused("running", provider.StatusRunning)
	again, err := look("start of a")
	f.Must(err)
	f.WantEqual("repeated", again, f.Instance("a"))
	if ms := f.Messages(); len(ms) != 1 || ms[0].Kind != provider.MessageWake {
		f.T.Errorf("repeated start sent %s", kit.Text(ms))
	}
	e.Commit(kit.Completed(3), kit.Ended(`1`))
	refused("ended", provider.StatusCompleted)

	f.DeleteInstance("a")
	_, err = look("start of a")
	f.WantErrorIs(err, provider.ErrPurged)
	next, err := look("the next")
	f.Must(err)
	if next.ExecutionID == in.ExecutionID || next.Status != provider.StatusPending {
		f.T.Errorf("started instance: got %s", kit.Text(next))
	}
	_, err = look("start of a")
	f.WantErrorIs(err, provider.ErrPurged) // regardless of the current incarnation
	refused("next incarnation", provider.StatusPending)
}

func refusedStart(f *kit.Fixture) {
	f.Fail(kit.Fault{Operation: kit.Write, Failure: kit.Rejected, Times: 1})
	_, err := f.Provider.StartOrchestration(f.Ctx(), kit.StartOf("a"))
	f.WantPermanent(err)
	_, err = f.Provider.ReadInstance(f.Ctx(), "a")
	f.WantErrorIs(err, provider.ErrNotFound)
	if ms := f.Messages(); len(ms) > 0 {
		f.T.Errorf("sent: got %s", kit.Text(ms))
	}
}
