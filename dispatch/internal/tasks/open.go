// Package tasks reports to interceptors which tasks the turns of an execution schedule and end: activities, timers,
// sub-orchestrations, external events and updates.
package tasks

import (
	"context"
	"log/slog"
	"maps"
	"slices"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/intercept"
	"github.com/perdure/perdure/provider"
)

// Listeners are the OnTasks functions of interceptors.
type Listeners = intercept.Listeners[perdure.TurnTasks]

// NewListeners returns the OnTasks functions of interceptors, or nil if there are none.
func NewListeners(log *slog.Logger, interceptors []perdure.Interceptor) *Listeners {
	return intercept.NewListeners("the tasks of a turn", log, interceptors,
		func(i perdure.Interceptor) func(context.Context, perdure.TurnTasks) { return i.OnTasks })
}

// OpenItemBytes is the approximate size of an open item in memory.
const OpenItemBytes = 192

// Open holds the open tasks of an execution. It is separate from the state on which decisions are based, so that
// reports cannot change a decision. It is nil if there are no listeners.
type Open struct {
	state *history.State
	// reasons are the reasons of cancelled tasks whose end is awaited.
	reasons map[int64]string
	// traces are the trace contexts of the turns that scheduled the tasks. trace is the trace context of the current
	// turn.
	traces map[int64]history.TraceParent
	trace  history.TraceParent
}

// NewOpen returns the open tasks of a history.
func NewOpen(segments []provider.Segment) *Open {
	t := &Open{
		state:   history.NewState(history.TrackOpen),
		reasons: map[int64]string{}, traces: map[int64]history.TraceParent{},
	}
	for i := range segments {
		for event := range slices.Chunk(segments[i].Events, 1) {
			t.apply(event, func(history.OpenItem) {})
		}
	}
	maps.DeleteFunc(t.traces, func(id int64, _ history.TraceParent) bool { // waits for events that have arrived
		_, open := t.state.Open(id)
		return !open
	})
	return t
}

// Bytes returns the approximate size of the open tasks in memory. The size of a nil Open is 0.
func (t *Open) Bytes() int {
	if t == nil {
		return 0
	}
	const traceBytes = 64
	return t.state.OpenCount()*OpenItemBytes + len(t.traces)*traceBytes
}

// apply applies an event and passes the tasks that it ends to ended.
func (t *Open) apply(one []history.Event, ended func(history.OpenItem)) {
	e := &one[0]
	switch kind := kinds[e.Kind]; {
	case e.Kind == history.TurnStarted:
		t.trace = e.TraceParent
	case kind != "" && kind != perdure.TaskDetachedOrchestration && t.trace != "":
		t.traces[e.ID] = t.trace
	}
	var settled []history.OpenItem
	for _, id := range e.Settles() {
		if o, is := t.state.Open(id); is {
			settled = append(settled, o)
		}
	}
	t.state.Apply(one...)
	for _, o := range settled {
		if _, still := t.state.Open(o.ID); still { // the task is cancelled, and its end is awaited
			t.reasons[o.ID] = e.Reason
			continue
		}
		ended(o)
		delete(t.reasons, o.ID)
		delete(t.traces, o.ID)
	}
}
