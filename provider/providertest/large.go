package providertest

import (
	"strings"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// Turns and histories of any size that fits, and a clear error for larger ones.
func largeTurns() group {
	return group{"large", []testCase{
		{name: "TurnsOfEverySize", run: everySize},
		{name: "ATurnThatNeverFitsLeavesNothing", run: tooLarge},
		{name: "AStartThatNeverFitsLeavesNothing", run: tooLargeStart},
		{name: "LargeStarts", run: largeStarts},
		{name: "5000ActivitiesInOneTurn", run: manyActivities},
		{name: "20000EventsOverManyPages", run: longHistory},
		{name: "AHistoryOfManyPages", run: manyPages},
	}}
}

// A turn of 3 MB fits (design, "Storage"). everySize tests sizes that are stored differently: small, compressed and in
// parts.
func everySize(f *fixture) {
	e := f.start("a")
	var turns []*provider.Turn
	for _, size := range []int{10, 3 << 10, 4 << 10, 5 << 10, 100 << 10, 340 << 10, 440 << 10, 470 << 10, 500 << 10, 900 << 10, 2 << 20, 2900 << 10} {
		turns = append(turns, e.commit(bulky(size)))
	}
	e.wantSegments(turns...)
}

func tooLarge(f *fixture) {
	e := f.start("a")
	one := e.commit(turnStarted())
	_, err := f.p.AckOrchestrationItem(f.ctx(), e.turn(bulky(5<<20), activity(Queue), ended(`1`)))
	f.wantIs(err, provider.ErrTooLarge)
	if err != nil && !strings.Contains(err.Error(), `"a"`) {
		f.t.Errorf("the error does not name the instance: %v", err)
	}
	e.wantSegments(one)
	f.wantNothingSent()
	f.wantStatus("a", provider.StatusRunning)
	two := e.commit(activity(Queue)) // another turn fits in its place
	e.wantSegments(one, two)
}

func tooLargeStart(f *fixture) {
	s := startOf("a")
	s.Input = noise(5 << 20)
	_, err := f.p.StartOrchestration(f.ctx(), s)
	f.wantIs(err, provider.ErrTooLarge)
	_, err = f.p.ReadInstance(f.ctx(), "a")
	f.wantIs(err, provider.ErrNotFound)
	if ms := f.messages(); len(ms) > 0 {
		f.t.Errorf("sent: %s", text(ms))
	}
}

func largeStarts(f *fixture) {
	for id, size := range map[string]int{"one part": 300 << 10, "two parts": 600 << 10, "many parts": 2900 << 10} {
		s := startOf(id)
		s.Input = noise(size)
		in, err := f.p.StartOrchestration(f.ctx(), s)
		f.must(err)
		e := &execution{f: f, instance: in, head: provider.Head{ExecutionID: in.ExecutionID}, next: 2}
		if log := e.log(); len(log) != 1 || string(log[0].Input) != string(s.Input) {
			f.t.Errorf("%s: input was not read back", id)
		}
		e.commit(turnStarted(), ended(`1`))
		f.wantStatus(id, provider.StatusCompleted)
	}
}

func manyActivities(f *fixture) {
	const n = 5000
	e := f.start("a")
	t := e.commit(repeat(n, activity(Queue))...)
	seen := map[int64]int{}
	for _, w := range f.work(Queue) {
		seen[w.ActivityID]++
	}
	if len(seen) != n || seen[2] == 0 || seen[n+1] == 0 {
		f.t.Errorf("%d different work items, want %d", len(seen), n)
	}
	e.wantSegments(t)
}

func longHistory(f *fixture) {
	const turns, each = 40, 500
	e := f.start("a")
	for range turns {
		e.commit(repeat(each, bulky(64))...)
	}
	if log := e.log(); len(log) != turns*each+1 {
		f.t.Errorf("%d events, want %d", len(log), turns*each+1)
	}
	n := 0
	for event, err := range f.p.ReadHistory(f.ctx(), e.instance.InstanceID, e.instance.ExecutionID, turns*each-10) {
		f.must(err)
		n++
		if event.Kind != history.SideEffectRecorded {
			f.t.Errorf("event %s", event.String())
		}
	}
	if n != 11 {
		f.t.Errorf("%d last events, want 11", n)
	}
}

// manyPages writes parts that cross page boundaries.
func manyPages(f *fixture) {
	e := f.start("a")
	var turns []*provider.Turn
	for n := range 6 {
		turns = append(turns, e.commit(bulky(300<<10+n*100<<10)))
	}
	e.wantSegments(turns...)
	f.wantEqual("eventual", f.readEventually(e).Head, e.head)
}

func (f *fixture) readEventually(e *execution) *provider.Orchestration {
	f.t.Helper()
	o, err := f.p.ReadOrchestration(f.ctx(), e.item(), provider.Eventual)
	f.must(err)
	return o
}
