package turns

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/intercept"
	"github.com/perdure/perdure/internal/replay"
	"github.com/perdure/perdure/provider"
)

type taskListeners = intercept.Listeners[perdure.TurnTasks]

func taskListenersOf(o *Options) *taskListeners {
	return intercept.NewListeners("the tasks of a turn", o.Logger, o.Interceptors, func(i perdure.Interceptor) func(context.Context, perdure.TurnTasks) { return i.OnTasks })
}

// openTasks are what an execution has begun and not ended, for interceptors that ask for that. They are beside the view that decides, so that what is told can
// change nothing; nil where nobody asks.
type openTasks struct {
	state *history.State
	// reasons are why tasks were cancelled whose end is waited for.
	reasons map[int64]string
	// traces are the trace contexts of the turns that began tasks; trace is that of the turn under way.
	traces map[int64]history.TraceParent
	trace  history.TraceParent
}

// openTasksOf are those of a history; nil where nobody asks.
func openTasksOf(o *Orchestrator, read *provider.Orchestration) *openTasks {
	if o.listeners == nil {
		return nil
	}
	t := &openTasks{state: history.NewState(history.TrackOpen), reasons: map[int64]string{}, traces: map[int64]history.TraceParent{}}
	for i := range read.Segments {
		for j := range read.Segments[i].Events {
			t.apply(read.Segments[i].Events[j:j+1], func(history.OpenItem) {})
		}
	}
	maps.DeleteFunc(t.traces, func(id int64, _ history.TraceParent) bool { // waits for events that have come
		_, open := t.state.Open(id)
		return !open
	})
	return t
}

// bytes is roughly what they take.
func (t *openTasks) bytes() int {
	if t == nil {
		return 0
	}
	const each = 64
	return t.state.OpenCount()*openBytes + len(t.traces)*each
}

// apply applies an event, and passes on what ends with it.
func (t *openTasks) apply(one []history.Event, ended func(history.OpenItem)) {
	e := &one[0]
	switch kind := taskKinds[e.Kind]; {
	case e.Kind == history.TurnStarted:
		t.trace = e.TraceParent
	case kind != "" && kind != perdure.TaskDetachedOrchestration && t.trace != "":
		t.traces[e.ID] = t.trace
	}
	var concerned []history.OpenItem
	for _, id := range e.Settles() {
		if o, is := t.state.Open(id); is {
			concerned = append(concerned, o)
		}
	}
	t.state.Apply(one...)
	for _, o := range concerned {
		if _, still := t.state.Open(o.ID); still { // it is cancelled, and its end is waited for
			t.reasons[o.ID] = e.Reason
			continue
		}
		ended(o)
		delete(t.reasons, o.ID)
		delete(t.traces, o.ID)
	}
}

// noteTasks notes what a turn that is committed, and applied to the view, has begun and ended. waits are the waits for external events that have ended.
func noteTasks(s *session, t *provider.Turn, waits []replay.WaitEnd) {
	s.tasks = nil
	if s.x.tasks == nil {
		return
	}
	told := &turnTasks{x: s.x, TurnTasks: perdure.TurnTasks{
		InstanceID: s.item.InstanceID, ExecutionID: t.Head.ExecutionID, Name: s.x.state.Name, Sequence: t.Head.Segment + 1,
	}}
	told.makeRoom(t.Events)
	for i := range t.Events {
		e := &t.Events[i]
		s.x.tasks.apply(t.Events[i:i+1], func(o history.OpenItem) { told.end(&o, e) })
		told.begin(e)
	}
	told.endWaits(waits)
	if last := &t.Events[len(t.Events)-1]; last.Kind.Terminal() {
		told.endRest(last)
	}
	if len(told.Scheduled)+len(told.Ended) > 0 {
		s.tasks = &told.TurnTasks
	}
}

// tellTasks tells interceptors what was noted, once.
func tellTasks(ctx context.Context, s *session) {
	if told := s.tasks; told != nil {
		s.tasks = nil
		s.o.listeners.Notify(ctx, *told)
	}
}

// forgetTasks leaves untold what was noted.
func forgetTasks(s *session) { s.tasks = nil }

// turnTasks are put together for interceptors.
type turnTasks struct {
	perdure.TurnTasks
	x *execution
}

// taskKinds are the kinds of tasks, by the events that begin them.
var taskKinds = map[history.Kind]perdure.TaskKind{
	history.ActivityScheduled:              perdure.TaskActivity,
	history.TimerCreated:                   perdure.TaskTimer,
	history.SubOrchestrationScheduled:      perdure.TaskSubOrchestration,
	history.DetachedOrchestrationScheduled: perdure.TaskDetachedOrchestration,
	history.ExternalEventSubscribed:        perdure.TaskExternalEvent,
	history.ExternalEventSent:              perdure.TaskSentEvent,
	history.UpdateSent:                     perdure.TaskSentUpdate,
	history.UpdateAccepted:                 perdure.TaskUpdate,
}

// makeRoom makes room for what the events begin: a turn may begin a hundred thousand.
func (t *turnTasks) makeRoom(events []history.Event) {
	n := 0
	for i := range events {
		if taskKinds[events[i].Kind] != "" {
			n++
		}
	}
	if n > 0 {
		t.Scheduled = make([]perdure.TaskInfo, 0, n)
	}
}

// begin notes what an event begins, if it begins something.
func (t *turnTasks) begin(e *history.Event) {
	kind := taskKinds[e.Kind]
	if kind == "" {
		return
	}
	info := perdure.TaskInfo{ID: e.ID, Kind: kind, Name: e.DisplayName(), ScheduledAt: e.Time, ScheduledInTurn: t.Sequence, TraceParent: string(t.x.tasks.trace), Attempt: e.Attempt}
	switch e.Kind { //nolint:exhaustive // the others have no more
	case history.TimerCreated:
		if e.FireAt != nil {
			info.DueAt = *e.FireAt
		}
	case history.SubOrchestrationScheduled, history.DetachedOrchestrationScheduled, history.ExternalEventSent, history.UpdateSent:
		info.InstanceID = e.InstanceID
	case history.ActivityScheduled:
		info.Attempt = 0 // none has ended
	}
	t.Scheduled = append(t.Scheduled, info)
}

// open is what is known of a task that ends.
func (t *turnTasks) open(o *history.OpenItem, end *history.Event) perdure.TaskInfo {
	info := perdure.TaskInfo{
		ID: o.ID, Kind: taskKinds[o.Kind], Name: o.Name, InstanceID: o.InstanceID, ScheduledAt: o.ScheduledAt, ScheduledInTurn: t.x.segmentOf(o.ID), EndedAt: end.Time,
		TraceParent: string(t.x.tasks.traces[o.ID]),
	}
	if o.Kind == history.TimerCreated {
		info.DueAt = o.FireAt
	}
	return info
}

// end notes that a task ends with an event.
func (t *turnTasks) end(o *history.OpenItem, e *history.Event) {
	info := t.open(o, e)
	if info.Kind == "" { // the timer of a delayed start
		return
	}
	info.Attempt = e.Attempt
	reason, cancelled := t.x.tasks.reasons[o.ID]
	switch {
	case cancelled:
	case isCancel(e):
		reason, cancelled = e.Reason, true
	case e.Error != nil && e.Error.Type == history.TypeCancelled:
		reason, cancelled = e.Error.Reason, true
	}

	info.Outcome = perdure.TaskCompleted
	switch {
	case cancelled:
		info.Outcome, info.Reason = perdure.TaskCancelled, reason
	case e.Error != nil:
		info.Outcome, info.Failure = perdure.TaskFailed, e.Error.Clone()
	}
	t.Ended = append(t.Ended, info)
}

// isCancel reports whether an event ends tasks because they are cancelled: also an update that its execution ended before.
func isCancel(e *history.Event) bool {
	switch e.Kind {
	case history.ActivityCancelRequested, history.TimerCancelled, history.SubOrchestrationCancelRequested:
		return true
	case history.UpdateCompleted:
		return e.Reason != ""
	default:
		return false
	}
}

// endWaits notes which waits for external events have ended.
func (t *turnTasks) endWaits(waits []replay.WaitEnd) {
	for _, w := range waits {
		info := perdure.TaskInfo{
			ID: w.ID, Kind: perdure.TaskExternalEvent, Name: w.Name, ScheduledAt: t.x.timeOf(w.ID), ScheduledInTurn: t.x.segmentOf(w.ID), EndedAt: w.At, Outcome: perdure.TaskCompleted,
			TraceParent: string(t.x.tasks.traces[w.ID]),
		}
		if w.Reason != "" {
			info.Outcome, info.Reason = perdure.TaskCancelled, w.Reason
		}
		delete(t.x.tasks.traces, w.ID)
		t.Ended = append(t.Ended, info)
	}
}

// endRest notes what was open when the execution ended, and that no other event says the end of: a cancel is waited for, or an answer.
func (t *turnTasks) endRest(end *history.Event) {
	from := len(t.Ended)
	for o := range t.x.tasks.state.Outstanding() {
		info := t.open(&o, end)
		if info.Kind == "" || info.Kind == perdure.TaskExternalEvent { // the code alone knows which waits it has given up before
			continue
		}
		info.Outcome, info.Reason = perdure.TaskCancelled, cmp.Or(t.x.tasks.reasons[o.ID], history.TerminalReason(end.Kind))
		t.Ended = append(t.Ended, info)
	}
	slices.SortFunc(t.Ended[from:], func(a, b perdure.TaskInfo) int { return cmp.Compare(a.ID, b.ID) })
}
