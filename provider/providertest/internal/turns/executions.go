package turns

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/providertest/internal/kit"
)

// Executions tests that continue-as-new ends one execution and starts the next one atomically (R3).
func Executions() kit.Group {
	return kit.Group{Name: "executions", Cases: []kit.Case{
		{Name: "ContinueAsNewCreatesNextExecution", Run: makesTheNext},
		{Name: "NextExecutionStartsWithCarriedEvents", Run: carriedOver},
		{Name: "FirstTurnMayContinueAsNew", Run: firstTurnContinues},
		{Name: "OnlyOneOfTwoTurnsOnAHeadCommits", Run: func(f *kit.Fixture) { continueOrNot(f, true) }},
		{Name: "OtherTurnMayWin", Run: func(f *kit.Fixture) { continueOrNot(f, false) }},
		{Name: "LostResponseIsSuccess", Run: lostContinue, Needs: []kit.Capability{kit.Faults}},
		{Name: "RejectedCommitWritesNothing", Run: refusedContinue, Needs: []kit.Capability{kit.Faults}},
		{Name: "LargeExecutionContinuesAtomically", Run: func(f *kit.Fixture) { largeContinue(f, 900<<10, 900<<10) }},
		{Name: "TooLargeCommitIsRejected", Run: continueTooLarge},
		{Name: "MessageForEarlierExecutionReadsCurrentOne", Run: oldMessage},
		{Name: "HistoryOfEarlierExecutionIsKept", Run: oldHistory},
		{Name: "ExecutionsAreListedNewestFirst", Run: listExecutions},
		{Name: "ExecutionBelongsToOneInstance", Run: foreignExecution},
		{
			Name: "OutlivingOutputsAreSentAgainAcrossExecutions", Run: redispatchAcross,
			Needs: []kit.Capability{kit.VirtualTime},
		},
		{
			Name: "OutlivingOutputsAreSentAgainSinceATime", Run: redispatchSince,
			Needs: []kit.Capability{kit.VirtualTime},
		},
		{Name: "UnsentStartIsFoundAcrossExecutions", Run: unsentAcross, Needs: []kit.Capability{kit.Faults}},
		{Name: "LateStatusOfEarlierExecutionIsNotWritten", Run: lateStatus},
		{Name: "CustomStatusIsKept", Run: customStatusStays},
		{Name: "LastExecutionEndsTheInstance", Run: lastEnds},
	}}
}

func makesTheNext(f *kit.Fixture) {
	e := f.Start("a")
	e.Commit(kit.TurnStarted(), kit.Activity(kit.Queue))
	next := e.ContinueAs("x2", kit.Completed(3))
	in := f.Instance("a")
	if in.ExecutionID != "x2" || in.ExecutionNumber != 2 || in.Status != provider.StatusRunning ||
		in.Version != kit.V1 || in.CreatedAt != e.Instance.CreatedAt {
		f.T.Errorf("got instance %s", kit.Text(in))
	}
	o := next.Read()
	if o.Previous != e.Instance.ExecutionID || len(o.Segments) != 1 || o.Head != (provider.Head{
		ExecutionID: "x2", Watermark: kit.At(2),
	}) {
		f.T.Errorf("execution read: got %s", kit.Text(o))
	}
	t := next.Turn(kit.TurnStarted(), kit.Activity(kit.Queue))
	_, err := f.Provider.AckOrchestrationItem(f.Ctx(), t)
	f.Must(err)
	f.WantStatus("a", provider.StatusRunning)
	if ws := f.Work(kit.Queue); len(ws) != 2 || ws[0].ExecutionID == ws[1].ExecutionID {
		f.T.Errorf("got work items %s, want one of each execution", kit.Text(ws))
	}
}

func carriedOver(f *kit.Fixture) {
	e := f.Start("a")
	t := e.Continuing("x2", kit.TurnStarted())
	t.Next.Start.CarriedEvents = []history.CarriedEvent{
		{Name: "n", EventID: "1", Data: history.Payload(`[1]`)}, {Name: "n"},
	}
	t.Next.Start.EventIDs, t.Next.Start.Tags = []string{"0", "1"}, map[string]string{"k": "v"}
	t.Next.Start.Parent = &history.Parent{InstanceID: "p", ExecutionID: "px", EventID: 7}
	_, err := f.Provider.AckOrchestrationItem(f.Ctx(), t)
	f.Must(err)
	next := f.ExecutionAfter(t)
	f.WantEqual("start", next.History(), []history.Event{t.Next.Start})
	f.WantEqual("start of the decoded history", next.Read().Start(), &t.Next.Start)
}

func firstTurnContinues(f *kit.Fixture) {
	e := f.Start("a")
	next := e.ContinueAs("x2", kit.TurnStarted())
	if next.Instance.Status != provider.StatusRunning || next.Instance.Version != kit.V1 {
		f.T.Errorf("got instance %s", kit.Text(next.Instance))
	}
}

// continueOrNot runs two competing turns. One of them continues as new.
func continueOrNot(f *kit.Fixture, wins bool) {
	e := f.Start("a")
	other, continues := e.Turn(kit.TurnStarted(), kit.Activity(kit.OtherQueue)),
		e.Continuing("x2", kit.TurnStarted(), kit.Detached("b"))
	winner, loser := other, continues
	if wins {
		winner, loser = continues, other
	}
	_, err := f.Provider.AckOrchestrationItem(f.Ctx(), winner)
	f.Must(err)
	_, err = f.Provider.AckOrchestrationItem(f.Ctx(), loser)
	f.WantErrorIs(err, provider.ErrConflict)
	if got := f.Instance("a").ExecutionID == "x2"; got != wins {
		f.T.Errorf("instance continued as new: got %v, want %v", got, wins)
	}
	if n := len(f.Work(kit.OtherQueue)); (n == 0) != wins {
		f.T.Errorf("got %d work items", n)
	}
	if n := len(f.Messages()); (n == 2) != wins {
		f.T.Errorf("got %d messages besides the wake, want none", n-1)
	}
	for _, err := range f.Provider.ReadHistory(f.Ctx(), "a", "x2", 0) {
		if (err == nil) != wins {
			f.T.Errorf("history of the next execution: got error %v", err)
		}
	}
}

func lostContinue(f *kit.Fixture) {
	e := f.Start("a")
	hits := f.Fail(kit.Fault{Operation: kit.Write, Failure: kit.ResponseLost, Times: 1})
	e.ContinueAs("x2", kit.TurnStarted())
	if hits() != 1 || f.Instance("a").ExecutionID != "x2" {
		f.T.Errorf("got %d lost responses, execution %s", hits(), f.Instance("a").ExecutionID)
	}
}

func refusedContinue(f *kit.Fixture) {
	e := f.Start("a")
	f.Fail(kit.Fault{Operation: kit.Write, Failure: kit.Rejected, Times: 1})
	_, err := f.Provider.AckOrchestrationItem(f.Ctx(), e.Continuing("x2", kit.TurnStarted(), kit.Detached("b")))
	f.WantPermanent(err)
	e.WantSegments()
	if in := f.Instance("a"); in.ExecutionID != e.Instance.ExecutionID || in.Status != provider.StatusPending {
		f.T.Errorf("got instance %s", kit.Text(in))
	}
	if n := len(f.Messages()); n != 1 {
		f.T.Errorf("got %d messages, want the wake", n)
	}
}

func largeContinue(f *kit.Fixture, last, carried int) {
	e := f.Start("a")
	t := e.Continuing("x2", kit.TurnStarted(), kit.Bulky(last))
	t.Next.Start.CarriedEvents = []history.CarriedEvent{{Name: "n", Data: kit.Noise(carried)}}
	_, err := f.Provider.AckOrchestrationItem(f.Ctx(), t)
	f.Must(err)
	next := f.ExecutionAfter(t)
	f.WantEqual("start", next.History(), []history.Event{t.Next.Start})
	f.WantEqual("turn", e.History()[1:], t.Events)
}

func continueTooLarge(f *kit.Fixture) {
	e := f.Start("a")
	t := e.Continuing("x2", kit.TurnStarted(), kit.Bulky(2500<<10))
	t.Next.Start.CarriedEvents = []history.CarriedEvent{{Name: "n", Data: kit.Noise(2500 << 10)}}
	_, err := f.Provider.AckOrchestrationItem(f.Ctx(), t)
	f.WantErrorIs(err, provider.ErrTooLarge)
	e.WantSegments()
	f.WantStatus("a", provider.StatusPending)
}

func oldMessage(f *kit.Fixture) {
	first := f.Start("a")
	second := first.ContinueAs("x2", kit.TurnStarted())
	third := second.ContinueAs("x3", kit.TurnStarted())
	for _, e := range []*kit.Execution{first, second, third} {
		for _, c := range []provider.Consistency{provider.Eventual, provider.Strong} {
			o, err := f.Provider.ReadOrchestration(f.Ctx(), e.Item(), c)
			f.Must(err)
			if o.Head != third.Head {
				f.T.Errorf("for execution %s read %+v, want the current %+v", e.Instance.ExecutionID, o.Head,
					third.Head)
			}
		}
	}
}

func oldHistory(f *kit.Fixture) {
	e := f.Start("a")
	e.Commit(kit.TurnStarted(), kit.Activity(kit.Queue))
	before := e.History()
	e.ContinueAs("x2", kit.Completed(3))
	after := e.History()
	f.WantEqual("history before", after[:len(before)], before)
	last := after[len(after)-1]
	if len(after) != len(before)+2 || last.Kind != history.OrchestrationContinuedAsNew || last.ExecutionID != "x2" {
		f.T.Errorf("history ends with %s", kit.Text(last))
	}
	end, err := f.Provider.ReadTerminalEvent(f.Ctx(), e.Instance.ExecutionID)
	f.Must(err)
	f.WantEqual("end", end, last)
}

func listExecutions(f *kit.Fixture) {
	e := f.Start("a")
	want := []string{e.Instance.ExecutionID}
	for _, id := range []string{"x2", "x3", "x4"} {
		e = e.ContinueAs(id, kit.TurnStarted())
		want = append(want, id)
	}
	slices.Reverse(want)
	var got []string
	for x, err := range f.Provider.ListExecutions(f.Ctx(), "a") {
		f.Must(err)
		if got = append(got, x.ExecutionID); x.Number != int64(len(want)-len(got)+1) || x.StartedAt.IsZero() {
			f.T.Errorf("got execution %s", kit.Text(x))
		}
	}
	f.WantEqual("executions", got, want)
	for _, err := range f.Provider.ListExecutions(f.Ctx(), "missing") {
		f.WantErrorIs(err, provider.ErrNotFound)
	}
}

func foreignExecution(f *kit.Fixture) {
	a, b := f.Start("a"), f.Start("b")
	for _, err := range f.Provider.ReadHistory(f.Ctx(), "b", a.Instance.ExecutionID, 0) {
		f.WantErrorIs(err, provider.ErrNotFound)
	}
	it := a.Item()
	it.InstanceID = "b"
	o, err := f.Provider.ReadOrchestration(f.Ctx(), it, provider.Strong)
	f.Must(err)
	if o.Head != b.Head {
		f.T.Errorf("instance b has head %+v, want its own %+v", o.Head, b.Head)
	}
}

// redispatchAcross starts a redispatch with message 1, which was consumed two executions ago. All later outputs are
// sent again, including outputs that outlive their execution.
func redispatchAcross(f *kit.Fixture) {
	for from, want := range map[int]string{1: "b c d", 2: "c d", 3: "d", 4: ""} {
		wantAcross(f, fmt.Sprint("from-", from), want, func([]time.Time) provider.RedispatchFrom {
			return kit.Since(kit.At(from))
		})
	}
}

// redispatchSince is like redispatchAcross with a time. The redispatch starts with the turn that was the last one at
// that time.
func redispatchSince(f *kit.Fixture) {
	for turns, want := range map[int]string{0: "b c d", 1: "b c d", 2: "c d", 3: "d", 4: ""} {
		wantAcross(f, fmt.Sprint("after-", turns), want, func(had []time.Time) provider.RedispatchFrom {
			return provider.RedispatchFrom{HeadAt: had[turns]}
		})
	}
}

// wantAcross runs three executions of an instance in four turns. Each turn except the last starts another instance.
// wantAcross fails if the wanted starts are not sent again. had contains the times after each turn.
func wantAcross(f *kit.Fixture, id, want string, from func(had []time.Time) provider.RedispatchFrom) {
	f.T.Helper()
	var had []time.Time
	pass := func() {
		f.Advance(time.Minute)
		had = append(had, f.StoredNow())
		f.Advance(time.Minute)
	}
	e := f.Start(id)
	pass()
	e.Commit(kit.TurnStarted(), kit.Activity(kit.Queue), kit.Detached("b"))
	pass()
	next := e.ContinueAs(id+"-x2", kit.Detached("c"), kit.Activity(kit.Queue))
	pass()
	last := next.ContinueAs(id+"-x3", kit.TurnStarted(), kit.Detached("d"))
	pass()
	_, err := f.Provider.AckOrchestrationItem(f.Ctx(), last.Turn(kit.TurnStarted(), kit.Activity(kit.Queue)))
	f.Must(err)
	pass()
	f.Messages()
	f.Work(kit.Queue)
	f.Advance(6 * time.Minute) // otherwise a queue drops it as a duplicate

	_, err = f.Provider.RedispatchOrchestration(f.Ctx(), last.Read(), from(had))
	f.Must(err)
	var starts []string
	for _, m := range f.Messages() {
		starts = append(starts, m.InstanceID)
	}
	slices.Sort(starts)
	if got := strings.Join(starts, " "); got != want {
		f.T.Errorf("%s: started %q, want %q", id, got, want)
	}
	if ws := f.Work(kit.Queue); len(ws) != 1 || ws[0].ExecutionID != id+"-x3" {
		f.T.Errorf("%s: got work items %s, want that of the current execution", id, kit.Text(ws))
	}
}

func unsentAcross(f *kit.Fixture) {
	e := f.Start("a")
	f.Messages()
	f.Fail(kit.Fault{Operation: kit.Send, Failure: kit.Rejected, Times: 1})
	t := e.Continuing("x2", kit.TurnStarted(), kit.Detached("b"))
	if _, err := f.Provider.AckOrchestrationItem(f.Ctx(), t); err == nil {
		f.T.Error("no error although an output was not sent")
	}
	next := f.ExecutionAfter(t)
	f.Redispatch(next, kit.At(1))
	if ms := f.Messages(); len(ms) != 1 || ms[0].InstanceID != "b" {
		f.T.Errorf("sent again: got %s", kit.Text(ms))
	}
	f.WantStatus("a", provider.StatusRunning)
}

func lateStatus(f *kit.Fixture) {
	e := f.Start("a")
	e.Commit(kit.TurnStarted(), history.Event{Kind: history.CustomStatusSet, CustomStatus: history.Payload(`"old"`)})
	stale := e.Read()
	next := e.ContinueAs("x2", history.Event{Kind: history.CustomStatusSet, CustomStatus: history.Payload(`"new"`)})
	_, err := f.Provider.RedispatchOrchestration(f.Ctx(), stale, kit.Since(kit.At(1)))
	f.Must(err)
	if in := f.Instance("a"); in.ExecutionID != next.Head.ExecutionID || string(in.CustomStatus) != `"new"` {
		f.T.Errorf("got instance %s", kit.Text(in))
	}
}

func customStatusStays(f *kit.Fixture) {
	e := f.Start("a")
	e.Commit(kit.TurnStarted(), history.Event{Kind: history.CustomStatusSet, CustomStatus: history.Payload(`1`)})
	next := e.ContinueAs("x2", kit.Activity(kit.Queue))
	if got := string(next.Instance.CustomStatus); got != "1" {
		f.T.Errorf("got custom status %s, want that of the previous execution", got)
	}
	_, err := f.Provider.AckOrchestrationItem(f.Ctx(), next.Turn(kit.TurnStarted(), history.Event{
		Kind: history.CustomStatusSet, CustomStatus: history.Payload(`2`),
	}))
	f.Must(err)
	if got := string(f.Instance("a").CustomStatus); got != "2" {
		f.T.Errorf("got custom status %s, want that of the current execution", got)
	}
}

func lastEnds(f *kit.Fixture) {
	e := f.Start("a")
	for range 2 { // more turns than the next execution will have
		e.Commit(kit.TurnStarted())
	}
	next := e.ContinueAs("x2")
	_, err := f.Provider.AckOrchestrationItem(f.Ctx(), next.Turn(kit.TurnStarted(), kit.Ended(`1`)))
	f.Must(err)
	f.WantStatus("a", provider.StatusCompleted)
}
