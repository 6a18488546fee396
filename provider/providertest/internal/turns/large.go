package turns

import (
	"strings"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/providertest/internal/kit"
)

// LargeTurns tests turns and histories of all supported sizes, and the error for larger ones.
func LargeTurns() kit.Group {
	return kit.Group{Name: "large", Cases: []kit.Case{
		{Name: "TurnsOfEverySize", Run: everySize},
		{Name: "ATurnThatNeverFitsLeavesNothing", Run: tooLarge},
		{Name: "AStartThatNeverFitsLeavesNothing", Run: tooLargeStart},
		{Name: "LargeStarts", Run: largeStarts},
		{Name: "5000ActivitiesInOneTurn", Run: manyActivities},
		{Name: "20000EventsOverManyPages", Run: longHistory},
		{Name: "AHistoryOfManyPages", Run: manyPages},
	}}
}

// everySize tests turns that are stored differently, as small, compressed and in parts. A turn of 3 MB fits (see
// docs/internals/design.md, "Storage").
func everySize(f *kit.Fixture) {
	e := f.Start("a")
	var turns []*provider.Turn
	for _, size := range []int{
		10, 3 << 10, 4 << 10, 5 << 10, 100 << 10, 340 << 10, 440 << 10, 470 << 10, 500 << 10, 900 << 10, 2 << 20,
		2900 << 10,
	} {
		turns = append(turns, e.Commit(kit.Bulky(size)))
	}
	e.WantSegments(turns...)
}

func tooLarge(f *kit.Fixture) {
	e := f.Start("a")
	one := e.Commit(kit.TurnStarted())
	_, err := f.Provider.AckOrchestrationItem(f.Ctx(),
		e.Turn(kit.Bulky(5<<20), kit.Activity(kit.Queue), kit.Ended(`1`)))
	f.WantErrorIs(err, provider.ErrTooLarge)
	if err != nil && !strings.Contains(err.Error(), `"a"`) {
		f.T.Errorf("the error does not name the instance: %v", err)
	}
	e.WantSegments(one)
	f.WantNothingSent()
	f.WantStatus("a", provider.StatusRunning)
	two := e.Commit(kit.Activity(kit.Queue)) // a smaller turn can commit instead
	e.WantSegments(one, two)
}

func tooLargeStart(f *kit.Fixture) {
	s := kit.StartOf("a")
	s.Input = kit.Noise(5 << 20)
	_, err := f.Provider.StartOrchestration(f.Ctx(), s)
	f.WantErrorIs(err, provider.ErrTooLarge)
	_, err = f.Provider.ReadInstance(f.Ctx(), "a")
	f.WantErrorIs(err, provider.ErrNotFound)
	if ms := f.Messages(); len(ms) > 0 {
		f.T.Errorf("sent: %s", kit.Text(ms))
	}
}

func largeStarts(f *kit.Fixture) {
	for id, size := range map[string]int{"one part": 300 << 10, "two parts": 600 << 10, "many parts": 2900 << 10} {
		s := kit.StartOf(id)
		s.Input = kit.Noise(size)
		in, err := f.Provider.StartOrchestration(f.Ctx(), s)
		f.Must(err)
		e := &kit.Execution{F: f, Instance: in, Head: provider.Head{ExecutionID: in.ExecutionID}, Next: 2}
		if log := e.History(); len(log) != 1 || string(log[0].Input) != string(s.Input) {
			f.T.Errorf("%s: input was not read back", id)
		}
		e.Commit(kit.TurnStarted(), kit.Ended(`1`))
		f.WantStatus(id, provider.StatusCompleted)
	}
}

func manyActivities(f *kit.Fixture) {
	const n = 5000
	e := f.Start("a")
	t := e.Commit(kit.Repeat(n, kit.Activity(kit.Queue))...)
	seen := map[int64]int{}
	for _, w := range f.Work(kit.Queue) {
		seen[w.ActivityID]++
	}
	if len(seen) != n || seen[2] == 0 || seen[n+1] == 0 {
		f.T.Errorf("%d different work items, want %d", len(seen), n)
	}
	e.WantSegments(t)
}

func longHistory(f *kit.Fixture) {
	const turns, each = 40, 500
	e := f.Start("a")
	for range turns {
		e.Commit(kit.Repeat(each, kit.Bulky(64))...)
	}
	if log := e.History(); len(log) != turns*each+1 {
		f.T.Errorf("%d events, want %d", len(log), turns*each+1)
	}
	n := 0
	for event, err := range f.Provider.ReadHistory(f.Ctx(), e.Instance.InstanceID, e.Instance.ExecutionID,
		turns*each-10) {
		f.Must(err)
		n++
		if event.Kind != history.SideEffectRecorded {
			f.T.Errorf("event %s", event.String())
		}
	}
	if n != 11 {
		f.T.Errorf("%d last events, want 11", n)
	}
}

// manyPages writes parts of segments across page boundaries.
func manyPages(f *kit.Fixture) {
	e := f.Start("a")
	var turns []*provider.Turn
	for n := range 6 {
		turns = append(turns, e.Commit(kit.Bulky(300<<10+n*100<<10)))
	}
	e.WantSegments(turns...)
	f.WantEqual("eventual", readEventually(f, e).Head, e.Head)
}

func readEventually(f *kit.Fixture, e *kit.Execution) *provider.Orchestration {
	f.T.Helper()
	o, err := f.Provider.ReadOrchestration(f.Ctx(), e.Item(), provider.Eventual)
	f.Must(err)
	return o
}
