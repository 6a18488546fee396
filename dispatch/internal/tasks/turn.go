package tasks

import (
	"cmp"
	"slices"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/replay"
	"github.com/perdure/perdure/provider"
)

// Index returns the segment and the time of an event of the execution.
type Index interface {
	SegmentOf(eventID int64) int64
	TimeOf(eventID int64) time.Time
}

// turn collects the tasks that a turn has scheduled and ended.
type turn struct {
	perdure.TurnTasks

	open  *Open
	index Index
}

// kinds are the kinds of tasks by the events that schedule them.
var kinds = map[history.Kind]perdure.TaskKind{
	history.ActivityScheduled:              perdure.TaskActivity,
	history.TimerCreated:                   perdure.TaskTimer,
	history.SubOrchestrationScheduled:      perdure.TaskSubOrchestration,
	history.DetachedOrchestrationScheduled: perdure.TaskDetachedOrchestration,
	history.ExternalEventSubscribed:        perdure.TaskExternalEvent,
	history.ExternalEventSent:              perdure.TaskSentEvent,
	history.UpdateSent:                     perdure.TaskSentUpdate,
	history.UpdateAccepted:                 perdure.TaskUpdate,
}

// Commit applies a committed turn of an orchestration with a name. It returns the tasks that the turn has scheduled and
// ended, or nil if there are none. The index includes the turn. waits are the waits for external events that have
// ended.
func (t *Open) Commit(index Index, name string, committed *provider.Turn, waits []replay.WaitEnd) *perdure.TurnTasks {
	report := &turn{open: t, index: index, TurnTasks: perdure.TurnTasks{
		InstanceID: committed.InstanceID, ExecutionID: committed.Head.ExecutionID, Name: name,
		Sequence: committed.Head.Segment + 1,
	}}
	report.allocate(committed.Events)
	for i := range committed.Events {
		e := &committed.Events[i]
		t.apply(committed.Events[i:i+1], func(o history.OpenItem) { report.end(&o, e) })
		report.schedule(e)
	}
	report.endWaits(waits)
	if last := &committed.Events[len(committed.Events)-1]; last.Kind.Terminal() {
		report.endRest(last)
	}
	if len(report.Scheduled)+len(report.Ended) == 0 {
		return nil
	}
	return &report.TurnTasks
}

// allocate allocates the list of scheduled tasks at once, because a turn may schedule a hundred thousand.
func (t *turn) allocate(events []history.Event) {
	n := 0
	for i := range events {
		if kinds[events[i].Kind] != "" {
			n++
		}
	}
	if n > 0 {
		t.Scheduled = make([]perdure.TaskInfo, 0, n)
	}
}

func (t *turn) schedule(e *history.Event) {
	kind := kinds[e.Kind]
	if kind == "" {
		return
	}
	info := perdure.TaskInfo{
		ID: e.ID, Kind: kind, Name: e.DisplayName(), ScheduledAt: e.Time, ScheduledInTurn: t.Sequence,
		TraceParent: string(t.open.trace), Attempt: e.Attempt,
	}
	switch e.Kind { //nolint:exhaustive // the others have no more
	case history.TimerCreated:
		if e.FireAt != nil {
			info.DueAt = *e.FireAt
		}
	case history.SubOrchestrationScheduled, history.DetachedOrchestrationScheduled,
		history.ExternalEventSent, history.UpdateSent:
		info.InstanceID = e.InstanceID
	case history.ActivityScheduled:
		info.Attempt = 0 // no attempt has ended
	}
	t.Scheduled = append(t.Scheduled, info)
}

func (t *turn) info(o *history.OpenItem, end *history.Event) perdure.TaskInfo {
	info := perdure.TaskInfo{
		ID: o.ID, Kind: kinds[o.Kind], Name: o.Name, InstanceID: o.InstanceID, ScheduledAt: o.ScheduledAt,
		ScheduledInTurn: t.index.SegmentOf(o.ID), EndedAt: end.Time, TraceParent: string(t.open.traces[o.ID]),
	}
	if o.Kind == history.TimerCreated {
		info.DueAt = o.FireAt
	}
	return info
}

func (t *turn) end(o *history.OpenItem, e *history.Event) {
	info := t.info(o, e)
	if info.Kind == "" { // the timer of a delayed start
		return
	}
	info.Attempt = e.Attempt
	reason, cancelled := t.open.reasons[o.ID]
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

// isCancel reports whether an event ends tasks because they are cancelled. An update that the end of its execution has
// ended counts as cancelled.
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

func (t *turn) endWaits(waits []replay.WaitEnd) {
	for _, w := range waits {
		info := perdure.TaskInfo{
			ID: w.ID, Kind: perdure.TaskExternalEvent, Name: w.Name, ScheduledAt: t.index.TimeOf(w.ID),
			ScheduledInTurn: t.index.SegmentOf(w.ID), EndedAt: w.At, Outcome: perdure.TaskCompleted,
			TraceParent: string(t.open.traces[w.ID]),
		}
		if w.Reason != "" {
			info.Outcome, info.Reason = perdure.TaskCancelled, w.Reason
		}
		delete(t.open.traces, w.ID)
		t.Ended = append(t.Ended, info)
	}
}

// endRest adds the tasks that were open when the execution ended and have no end in another event. The execution still
// awaited the end of their cancel, or their response.
func (t *turn) endRest(end *history.Event) {
	from := len(t.Ended)
	for o := range t.open.state.Outstanding() {
		info := t.info(&o, end)
		if info.Kind == "" || info.Kind == perdure.TaskExternalEvent { // only the code knows which waits are abandoned
			continue
		}
		info.Outcome = perdure.TaskCancelled
		info.Reason = cmp.Or(t.open.reasons[o.ID], history.TerminalReason(end.Kind))
		t.Ended = append(t.Ended, info)
	}
	slices.SortFunc(t.Ended[from:], func(a, b perdure.TaskInfo) int { return cmp.Compare(a.ID, b.ID) })
}
