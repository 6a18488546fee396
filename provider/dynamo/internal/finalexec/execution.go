package finalexec

import (
	"context"
	"errors"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/segments"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
	"github.com/perdure/perdure/provider/dynamo/internal/timers"
)

// Execution is the last execution of an instance, as read by a deletion. If the history is damaged, it is the readable
// part.
type Execution struct {
	Head           provider.Head      // Segment is -1 if there is none
	Last           []provider.Segment // the last ones, up to two
	State          *history.State     // the state after the segments that were read
	ObsoleteTimers []history.OpenItem // cancelled timers that may have a schedule
	Ended          bool
	// the outstanding work was not read: there was no time, or the history is damaged
	Incomplete  bool
	TraceParent history.TraceParent // of the start, if it was read
	Previous    string              // known for damaged histories, and if ReadLast has read the start
}

func newExecution() *Execution { return &Execution{State: history.NewState(history.TrackOpen)} }

// CancelEvents returns the events that cancel the outstanding work, as far as it was read.
func (d *Execution) CancelEvents() []history.Event {
	if d.Incomplete {
		return nil
	}
	return d.State.CancelOutstanding(history.ReasonInstanceDeleted)
}

// ResentSegments is the number of segments whose outputs a deletion sends again: the last two.
const ResentSegments = 2

// ReadEnd reads the part of the current execution that a deletion needs. If the execution has ended, that is its end.
// Otherwise it is the whole execution, read in steps, to find the outstanding work. The history decides whether the
// execution has ended, if it is readable, because the status of the instance can be stale.
func (rd *Reader) ReadEnd(ctx context.Context, in *provider.Instance) (*Execution, error) {
	last, err := rd.ReadLast(ctx, in)
	if err != nil || last.Ended {
		return last, err
	}
	d, whole, err := rd.ReadWithin(ctx, in, MaxReadTime)
	if err != nil || whole {
		return d, err
	}

	last.Incomplete = true
	last.Previous = ""
	return last, nil
}

// readAll reads the whole current execution.
func (rd *Reader) readAll(ctx context.Context, in *provider.Instance) (*Execution, error) {
	d := newExecution()
	release := func() {}
	defer func() { release() }()
	large := func() (err error) {
		release, err = rd.AcquireLarge(ctx)
		return err
	}
	for s, err := range rd.segments.StreamWithCallback(ctx, in.InstanceID, in.ExecutionID, large) {
		if errors.Is(err, provider.ErrCorrupt) || errors.Is(err, provider.ErrNotFound) {
			return rd.ReadDamaged(ctx, in)
		}
		if err != nil {
			return d, err
		}
		for _, o := range d.State.ObsoleteTimers(s.Events...) {
			if len(d.ObsoleteTimers) <= timers.MaxDeletions &&
				(rd.timers.MayHaveSchedule(&o) || rd.timers.MayHaveAttemptTimer(&o)) {
				d.ObsoleteTimers = append(d.ObsoleteTimers, o)
			}
		}
		d.apply(in.ExecutionID, s)
	}
	return d, nil
}

// apply applies the next segment.
func (d *Execution) apply(executionID string, s provider.Segment) {
	d.State.Apply(s.Events...)
	if len(s.Events) > 0 && s.Events[0].Kind == history.OrchestrationStarted {
		d.TraceParent = s.Events[0].TraceParent
	}
	d.Head = provider.Head{ExecutionID: executionID, Segment: s.Sequence, Watermark: s.Watermark}
	d.Ended = d.Ended || d.State.Ended()
	if d.Last = append(d.Last, s); len(d.Last) > ResentSegments {
		d.Last = append(d.Last[:0:0], d.Last[1:]...) // a subslice would keep all segments in memory
	}
}

// ReadDamaged reads the readable part of a damaged history. The keys determine its head.
func (rd *Reader) ReadDamaged(ctx context.Context, in *provider.Instance) (*Execution, error) {
	d := newExecution()
	d.Head = provider.Head{ExecutionID: in.ExecutionID, Segment: -1}
	d.Ended = in.Status.Terminal()

	query := segments.KeysOnly(table.SegmentsQuery(in.ExecutionID, provider.Strong))
	first := true
	for it, err := range rd.table.Items(ctx, in.InstanceID, query) {
		if err != nil {
			return nil, err
		}
		if first {
			d.Previous = table.GetString(it, table.AttrPrevious)
			first = false
		}
		sequence, part, err := table.ParseSegmentSK(table.GetString(it, table.AttrSK))
		if err != nil {
			continue // such an item is no obstacle
		}
		d.Head.Segment = max(d.Head.Segment, sequence)
		if wm := table.GetString(it, table.AttrWM); part == 0 && wm != "" {
			d.Head.Watermark = provider.Position{Inbox: table.GetString(it, table.AttrInbox), Sequence: wm}
		}
	}

	if d.Head.Segment < 0 {
		return d, nil
	}
	s, err := rd.segments.ReadSegment(ctx, in.ExecutionID, d.Head.Segment)
	if err == nil && len(s.Events) > 0 {
		head := d.Head
		d.apply(in.ExecutionID, s)
		d.Head = head
	}
	d.Incomplete = !d.Ended
	return d, err
}

// ReadLast reads only the last segments of the current execution.
func (rd *Reader) ReadLast(ctx context.Context, in *provider.Instance) (*Execution, error) {
	end, err := rd.segments.ReadLastSegment(ctx, in.ExecutionID)
	if err != nil {
		return nil, err
	}
	if len(end.Events) == 0 {
		return rd.ReadDamaged(ctx, in)
	}

	d := newExecution()
	if end.Sequence > 0 {
		before, err := rd.segments.ReadSegment(ctx, in.ExecutionID, end.Sequence-1)
		if err != nil {
			return nil, err
		}
		if len(before.Events) > 0 {
			d.Last = append(d.Last, before)
		}
	}
	d.apply(in.ExecutionID, end)

	if end.Sequence < ResentSegments {
		start, err := rd.table.GetExecutionItem(ctx, in.ExecutionID, table.SegmentSK(0, 0))
		if err != nil {
			return nil, err
		}
		d.Previous = table.GetString(start, table.AttrPrevious)
	}
	return d, nil
}
