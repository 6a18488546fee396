package observe

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch/internal/execution"
	"github.com/perdure/perdure/dispatch/internal/tasks"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/registry"
	"github.com/perdure/perdure/provider"
)

// scheduled returns the observer of a session whose committed turn has scheduled n activities.
func scheduled(
	tb testing.TB, n int, interceptors ...perdure.Interceptor,
) (Turns, *execution.Execution, *provider.Turn) {
	tb.Helper()
	o := New(slog.New(slog.DiscardHandler), interceptors, nil)
	at := time.Unix(0, 0)
	read := &provider.Orchestration{Segments: []provider.Segment{{Events: []history.Event{
		{ID: 1, Kind: history.OrchestrationStarted, Time: at},
	}}}}
	l := &execution.Loader{Registry: registry.New(), TracksTasks: o.TracksTasks()}
	x, err := l.Load(tb.Context(), read, read.State(history.TrackTimers), execution.ErrPaused)
	if err != nil {
		tb.Fatal(err)
	}
	turn := &provider.Turn{Head: provider.Head{ExecutionID: "x"}, Events: make([]history.Event, n)}
	for i := range turn.Events {
		turn.Events[i] = history.Event{ID: int64(i + 2), Kind: history.ActivityScheduled, Name: "inc", Time: at}
	}
	return NewTurns(o), x, turn
}

// Without a listener, the tasks of a turn are neither stored nor reported, and nothing is allocated for them.
func TestTasks_noListener_allocatesNothing(t *testing.T) {
	observed, x, turn := scheduled(t, 1000, perdure.Interceptor{
		Turn: func(ctx context.Context, _ perdure.TurnInfo, next func(context.Context) perdure.TurnResult) {
			next(ctx)
		},
	})
	ctx := t.Context()
	if n := testing.AllocsPerRun(100, func() {
		observed.Committed(ctx, x, turn, nil)
		observed.ReportTasks(ctx)
	}); n != 0 || x.Tasks != nil || x.Tasks.Bytes() != 0 {
		t.Errorf("%v allocations, %+v", n, x.Tasks)
	}
}

// A turn with a hundred thousand activities is reported once, in one slice that is allocated at once.
func TestTasks_largeTurn_isReportedOnceInOneSlice(t *testing.T) {
	const many = 100_000
	reported, capacity := 0, 0
	observed, x, turn := scheduled(t, many, perdure.Interceptor{
		OnTasks: func(_ context.Context, t perdure.TurnTasks) {
			reported, capacity = len(t.Scheduled), cap(t.Scheduled)
		},
	})
	observed.Committed(t.Context(), x, turn, nil)
	observed.ReportTasks(t.Context())
	if reported != many || capacity != many || observed.tasks != nil || x.Tasks.Bytes() != many*tasks.OpenItemBytes {
		t.Errorf("reported %d of capacity %d; %d bytes are stored", reported, capacity, x.Tasks.Bytes())
	}
	reported = 0
	observed.ReportTasks(t.Context())
	if reported != 0 {
		t.Error("the tasks are reported again")
	}
}

// BenchmarkTasksOfALargeTurn measures the report of a turn with a hundred thousand activities to a listener.
func BenchmarkTasksOfALargeTurn(b *testing.B) {
	const many = 100_000
	listens := perdure.Interceptor{OnTasks: func(context.Context, perdure.TurnTasks) {}}
	b.ReportAllocs()
	for range b.N {
		b.StopTimer()
		observed, x, turn := scheduled(b, many, listens)
		b.StartTimer()
		observed.Committed(b.Context(), x, turn, nil)
		observed.ReportTasks(b.Context())
	}
}
