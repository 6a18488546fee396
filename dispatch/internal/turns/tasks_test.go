package turns

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/replay"
	"github.com/perdure/perdure/provider"
)

// begun is a session whose turn has begun n activities.
func begun(n int, interceptors ...perdure.Interceptor) (*session, *provider.Turn) {
	o := &Orchestrator{listeners: taskListenersOf(&Options{Logger: slog.New(slog.DiscardHandler), Interceptors: interceptors})}
	at := time.Unix(0, 0)
	read := &provider.Orchestration{Segments: []provider.Segment{{Events: []history.Event{{ID: 1, Kind: history.OrchestrationStarted, Time: at}}}}}
	x := &execution{state: history.NewState(history.TrackTimers), tasks: openTasksOf(o, read)}
	t := &provider.Turn{Head: provider.Head{ExecutionID: "x"}, Events: make([]history.Event, n)}
	for i := range t.Events {
		t.Events[i] = history.Event{ID: int64(i + 2), Kind: history.ActivityScheduled, Name: "inc", Time: at}
	}
	return &session{o: o, x: x, item: &provider.OrchestrationItem{}}, t
}

// Where nobody asks for the tasks of turns, nothing is kept, put together or allocated, whatever a turn has begun.
func TestTasksThatNobodyAsksForCostNothing(t *testing.T) {
	plain := perdure.Interceptor{Turn: func(ctx context.Context, _ perdure.TurnInfo, next func(context.Context) perdure.TurnResult) {
		next(ctx)
	}}
	s, turn := begun(1000, plain)
	ctx := t.Context()
	var waits []replay.WaitEnd
	if n := testing.AllocsPerRun(100, func() {
		noteTasks(s, turn, waits)
		tellTasks(ctx, s)
	}); n != 0 || s.x.tasks != nil || s.x.tasks.bytes() != 0 {
		t.Errorf("%v allocations, %+v", n, s.x.tasks)
	}
}

// A turn of a hundred thousand activities is told of in one piece, whose room is made at once.
func TestALargeTurnIsToldOfInOnePiece(t *testing.T) {
	const many = 100_000
	told, room := 0, 0
	s, turn := begun(many, perdure.Interceptor{OnTasks: func(_ context.Context, t perdure.TurnTasks) { told, room = len(t.Scheduled), cap(t.Scheduled) }})
	noteTasks(s, turn, nil)
	tellTasks(t.Context(), s)
	if told != many || room != many || s.tasks != nil || s.x.tasks.bytes() != many*openBytes {
		t.Errorf("told of %d in room for %d; %d bytes are kept", told, room, s.x.tasks.bytes())
	}
	tellTasks(t.Context(), s)
	if told != many {
		t.Error("it is told again")
	}
}

// What a turn of a hundred thousand activities pays where somebody asks, beside the events that it holds.
func BenchmarkTasksOfALargeTurn(b *testing.B) {
	const many = 100_000
	listens := perdure.Interceptor{OnTasks: func(context.Context, perdure.TurnTasks) {}}
	b.ReportAllocs()
	for range b.N {
		b.StopTimer()
		s, turn := begun(many, listens)
		b.StartTimer()
		noteTasks(s, turn, nil)
		tellTasks(b.Context(), s)
	}
}
