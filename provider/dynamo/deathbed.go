package dynamo

import (
	"context"
	"errors"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/segments"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
	"github.com/perdure/perdure/provider/dynamo/internal/timers"
)

// deathbed is the last execution of an instance, as read by a deletion. If the history is damaged, it is the readable
// part.
type deathbed struct {
	head      provider.Head      // Segment is -1 if there is none
	last      []provider.Segment // the last ones, up to two
	state     *history.State     // the state after the segments that were read
	cancelled []history.OpenItem // cancelled timers that may have a schedule
	over      bool
	// the outstanding work was not read: there was no time, or the history is damaged
	outstandingUnread bool
	trace             history.TraceParent // of the start, if it was read
	previous          string              // known for damaged histories, and if lookAtLast has read the start
}

func newDeathbed() *deathbed { return &deathbed{state: history.NewState(history.TrackOpen)} }

// cancels returns the events that cancel the outstanding work, as far as it was read.
func (d *deathbed) cancels() []history.Event {
	if d.outstandingUnread {
		return nil
	}
	return d.state.CancelOutstanding(history.ReasonInstanceDeleted)
}

// unsent is the number of segments whose outputs a deletion sends again: the last two.
const unsent = 2

// lookAtEnd reads the part of the current execution that a deletion needs. If the execution has ended, that is its end.
// Otherwise it is the whole execution, read in steps, to find the outstanding work. The history decides whether the
// execution has ended, if it is readable, because the status of the instance can be stale.
func (p *Provider) lookAtEnd(ctx context.Context, in *provider.Instance) (*deathbed, error) {
	last, err := p.lookAtLast(ctx, in)
	if err != nil || last.over {
		return last, err
	}
	d, whole, err := p.lookAtMost(ctx, in, condemnLook)
	if err != nil || whole {
		return d, err
	}

	last.outstandingUnread = true
	last.previous = ""
	return last, nil
}

// lookAtAll reads the whole current execution.
func (p *Provider) lookAtAll(ctx context.Context, in *provider.Instance) (*deathbed, error) {
	d := newDeathbed()
	giveBack := func() {}
	defer func() { giveBack() }()
	large := func() (err error) {
		giveBack, err = p.takeLarge(ctx)
		return err
	}
	for s, err := range p.segments.StreamWithCallback(ctx, in.InstanceID, in.ExecutionID, large) {
		if errors.Is(err, provider.ErrCorrupt) || errors.Is(err, provider.ErrNotFound) {
			return p.salvage(ctx, in)
		}
		if err != nil {
			return d, err
		}
		for _, o := range d.state.ObsoleteTimers(s.Events...) {
			if len(d.cancelled) <= timers.MaxDeletions && (p.timers.MayHaveSchedule(&o) || p.timers.MayHaveAttemptTimer(&o)) {
				d.cancelled = append(d.cancelled, o)
			}
		}
		d.apply(in.ExecutionID, s)
	}
	return d, nil
}

// apply applies the next segment.
func (d *deathbed) apply(executionID string, s provider.Segment) {
	d.state.Apply(s.Events...)
	if len(s.Events) > 0 && s.Events[0].Kind == history.OrchestrationStarted {
		d.trace = s.Events[0].TraceParent
	}
	d.head = provider.Head{ExecutionID: executionID, Segment: s.Sequence, Watermark: s.Watermark}
	d.over = d.over || d.state.Ended()
	if d.last = append(d.last, s); len(d.last) > unsent {
		d.last = append(d.last[:0:0], d.last[1:]...) // a subslice would keep all segments in memory
	}
}

// salvage reads the readable part of a damaged history. The keys determine its head.
func (p *Provider) salvage(ctx context.Context, in *provider.Instance) (*deathbed, error) {
	d := newDeathbed()
	d.head = provider.Head{ExecutionID: in.ExecutionID, Segment: -1}
	d.over = in.Status.Terminal()

	query := segments.KeysOnly(table.SegmentsQuery(in.ExecutionID, provider.Strong))
	first := true
	for page, err := range p.table.Query(ctx, in.InstanceID, query) {
		if err != nil {
			return nil, err
		}
		for _, it := range page {
			if first {
				d.previous = table.GetString(it, table.AttrPrevious)
				first = false
			}

			sequence, part, err := table.ParseSegmentSK(table.GetString(it, table.AttrSK))
			if err != nil {
				continue // such an item is no obstacle
			}
			d.head.Segment = max(d.head.Segment, sequence)
			if wm := table.GetString(it, table.AttrWM); part == 0 && wm != "" {
				d.head.Watermark = provider.Position{Inbox: table.GetString(it, table.AttrInbox), Sequence: wm}
			}
		}
	}

	if d.head.Segment < 0 {
		return d, nil
	}
	s, err := p.segments.ReadSegment(ctx, in.ExecutionID, d.head.Segment)
	if err == nil && len(s.Events) > 0 {
		head := d.head
		d.apply(in.ExecutionID, s)
		d.head = head
	}
	d.outstandingUnread = !d.over
	return d, err
}

// messageLife is the retention of a queue. An older message cannot be lost any more, and the instance that it started
// may have been purged with its tombstone, so that it must not be started again.
const messageLife = 14 * 24 * time.Hour

// sendEnd sends the outputs of the end of a marked instance: its outcome for the parent and the cancels of its
// children. It also deletes the schedules of its timers. The process that committed the segment before the last one may
// have died before it sent the outputs that outlive the execution. The same applies to the process that continued as
// new. sendEnd therefore sends the outputs of both segments again.
func (p *Provider) sendEnd(ctx context.Context, in *provider.Instance) error {
	d, err := p.lookAtLast(ctx, in)
	if err != nil {
		return err
	}
	x := provider.Origin{InstanceID: in.InstanceID, ExecutionID: in.ExecutionID, StartID: in.StartID, Parent: in.Parent, Ended: true}
	out := p.outbox.NewSender(true)
	for _, s := range d.last {
		if err := out.Send(ctx, x, s, p.longSent(s)); err != nil {
			return err
		}
	}

	if d.previous != "" && (d.head.Segment < unsent || len(d.last) < unsent) {
		before, err := p.segments.ReadLastSegment(ctx, d.previous)
		if err != nil {
			return err
		}
		x.ExecutionID = d.previous
		if err := out.Send(ctx, x, before, p.longSent(before)); err != nil {
			return err
		}
	}

	refused, err := out.Flush(ctx)
	for i := range refused {
		p.log.WarnContext(ctx, "end of a deleted instance not sent", "event", logevent.DeletionNotificationRejected,
			"instance", in.InstanceID, "execution", in.ExecutionID, "eventId", refused[i].EventID,
			"error", refused[i].Failure.Message)
	}
	if err != nil {
		return err
	}
	return p.dropAllSchedules(ctx, in)
}

// lookAtLast reads only the last segments of the current execution.
func (p *Provider) lookAtLast(ctx context.Context, in *provider.Instance) (*deathbed, error) {
	end, err := p.segments.ReadLastSegment(ctx, in.ExecutionID)
	if err != nil {
		return nil, err
	}
	if len(end.Events) == 0 {
		return p.salvage(ctx, in)
	}

	d := newDeathbed()
	if end.Sequence > 0 {
		before, err := p.segments.ReadSegment(ctx, in.ExecutionID, end.Sequence-1)
		if err != nil {
			return nil, err
		}
		if len(before.Events) > 0 {
			d.last = append(d.last, before)
		}
	}
	d.apply(in.ExecutionID, end)

	if end.Sequence < unsent {
		start, err := p.table.GetExecutionItem(ctx, in.ExecutionID, table.SegmentSK(0, 0))
		if err != nil {
			return nil, err
		}
		d.previous = table.GetString(start, table.AttrPrevious)
	}
	return d, nil
}

// schedulesLook limits the time for which a deletion reads the history to find schedules of cancelled timers. Other
// schedules fire without effect.
const schedulesLook = 5 * time.Second

// dropAllSchedules deletes the schedules of all timers that the history has cancelled. It is best effort.
func (p *Provider) dropAllSchedules(ctx context.Context, in *provider.Instance) error {
	if !p.timers.HasSchedules() {
		return nil
	}
	d, _, err := p.lookAtMost(ctx, in, schedulesLook)
	if err != nil {
		return err
	}
	if d != nil {
		p.timers.DeleteSchedules(ctx, in.ExecutionID, d.cancelled)
	}
	return nil
}

// longSent returns a filter for starts and events for other instances that are too old to be sent again.
func (p *Provider) longSent(s provider.Segment) func(eventID int64) bool {
	old := map[int64]bool{}
	for i := range s.Events {
		e := &s.Events[i]
		outlives := e.Kind == history.DetachedOrchestrationScheduled || e.Kind == history.ExternalEventSent || e.Kind == history.UpdateSent
		old[e.ID] = outlives && p.now().Sub(e.Time) >= messageLife
	}
	return func(id int64) bool { return old[id] }
}
