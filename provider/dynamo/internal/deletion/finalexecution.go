package deletion

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/segments"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
	"github.com/perdure/perdure/provider/dynamo/internal/timers"
)

// historyReader reads the last execution of an instance: its end, its outstanding work and, if the history is damaged,
// the readable part. It is safe for concurrent use.
type historyReader struct {
	Stores

	now func() time.Time
	log *slog.Logger
	// large is a semaphore for concurrent reads of large histories.
	large chan struct{}
}

// maxReadTime limits the time for which a deletion reads the history of a running instance, before it ends the instance
// anyway.
const maxReadTime = 5 * time.Second

// readWithin is readAll with a time limit. whole is false if the limit was reached.
func (rd *historyReader) readWithin(
	ctx context.Context, in *provider.Instance, limit time.Duration,
) (d *finalExecution, whole bool, err error) {
	if end, ok := ctx.Deadline(); ok {
		limit = min(limit, end.Sub(rd.now())/4) //nolint:mnd // a quarter
	}
	limited, stop := context.WithTimeout(ctx, limit)
	defer stop()
	d, err = rd.readAll(limited, in)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		return d, false, nil
	}
	return d, true, err
}

// maxLargeReads is the number of large histories that a process reads concurrently. A hundred deletions can run in a
// function with 256 MB.
const maxLargeReads = 2

// acquireLarge acquires the semaphore for reads of large histories, or returns when ctx ends.
func (rd *historyReader) acquireLarge(ctx context.Context) (release func(), err error) {
	select {
	case rd.large <- struct{}{}:
		return func() { <-rd.large }, nil
	case <-ctx.Done():
		return func() {}, &provider.Error{Op: "DynamoDB.Query", Retryable: true, Err: context.Cause(ctx)}
	}
}

// finalExecution is the last execution of an instance, as read by a deletion. If the history is damaged, it is the
// readable part.
type finalExecution struct {
	Head           provider.Head      // Segment is -1 if there is none
	Last           []provider.Segment // the last ones, up to two
	State          *history.State     // the state after the segments that were read
	ObsoleteTimers []history.OpenItem // cancelled timers that may have a schedule
	Ended          bool
	// the outstanding work was not read: there was no time, or the history is damaged
	Incomplete  bool
	TraceParent history.TraceParent // of the start, if it was read
	Previous    string              // known for damaged histories, and if readLast has read the start
}

func newExecution() *finalExecution {
	return &finalExecution{State: history.NewState(history.TrackOpen)}
}

// cancelEvents returns the events that cancel the outstanding work, as far as it was read.
func (d *finalExecution) cancelEvents() []history.Event {
	if d.Incomplete {
		return nil
	}
	return d.State.CancelOutstanding(history.ReasonInstanceDeleted)
}

// resentSegments is the number of segments at the end whose outputs a deletion resends.
const resentSegments = 2

// readEnd reads the part of the current execution that a deletion needs. If the execution has ended, it reads only the
// end. Otherwise, it reads the whole execution in steps to find the outstanding work. The history decides whether the
// execution has ended, if it is readable, because the status of the instance can be stale.
func (rd *historyReader) readEnd(ctx context.Context, in *provider.Instance) (*finalExecution, error) {
	last, err := rd.readLast(ctx, in)
	if err != nil || last.Ended {
		return last, err
	}
	d, whole, err := rd.readWithin(ctx, in, maxReadTime)
	if err != nil || whole {
		return d, err
	}

	last.Incomplete = true
	last.Previous = ""
	return last, nil
}

// readAll reads the whole current execution.
func (rd *historyReader) readAll(ctx context.Context, in *provider.Instance) (*finalExecution, error) {
	d := newExecution()
	release := func() {}
	defer func() { release() }()
	large := func() (err error) {
		release, err = rd.acquireLarge(ctx)
		return err
	}
	for s, err := range rd.Segments.Stream(ctx, in.InstanceID, in.ExecutionID, large) {
		if errors.Is(err, provider.ErrCorrupt) || errors.Is(err, provider.ErrNotFound) {
			return rd.readDamaged(ctx, in)
		}
		if err != nil {
			return d, err
		}
		for _, o := range d.State.ObsoleteTimers(s.Events...) {
			if len(d.ObsoleteTimers) <= timers.MaxDeletions &&
				(rd.Timers.MayHaveSchedule(&o) || rd.Timers.MayHaveAttemptTimer(&o)) {
				d.ObsoleteTimers = append(d.ObsoleteTimers, o)
			}
		}
		d.apply(in.ExecutionID, s)
	}
	return d, nil
}

// apply applies the next segment.
func (d *finalExecution) apply(executionID string, s provider.Segment) {
	d.State.Apply(s.Events...)
	if len(s.Events) > 0 && s.Events[0].Kind == history.OrchestrationStarted {
		d.TraceParent = s.Events[0].TraceParent
	}
	d.Head = provider.Head{ExecutionID: executionID, Segment: s.Sequence, Watermark: s.Watermark}
	d.Ended = d.Ended || d.State.Ended()
	if d.Last = append(d.Last, s); len(d.Last) > resentSegments {
		d.Last = append(d.Last[:0:0], d.Last[1:]...) // a subslice would keep all segments in memory
	}
}

// readDamaged reads the readable part of a damaged history. The keys determine its head.
func (rd *historyReader) readDamaged(ctx context.Context, in *provider.Instance) (*finalExecution, error) {
	d := newExecution()
	d.Head = provider.Head{ExecutionID: in.ExecutionID, Segment: -1}
	d.Ended = in.Status.Terminal()

	query := segments.KeysOnly(table.SegmentsQuery(in.ExecutionID, provider.Strong))
	first := true
	for it, err := range rd.Table.Items(ctx, in.InstanceID, query) {
		if err != nil {
			return nil, err
		}
		if first {
			d.Previous = table.GetString(it, table.AttrPrevious)
			first = false
		}
		sequence, part, err := table.ParseSegmentSK(table.GetString(it, table.AttrSK))
		if err != nil {
			continue // skip an item with an invalid key
		}
		d.Head.Segment = max(d.Head.Segment, sequence)
		if wm := table.GetString(it, table.AttrWM); part == 0 && wm != "" {
			d.Head.Watermark = provider.Position{Inbox: table.GetString(it, table.AttrInbox), Sequence: wm}
		}
	}

	if d.Head.Segment < 0 {
		return d, nil
	}
	s, err := rd.Segments.ReadSegment(ctx, in.ExecutionID, d.Head.Segment)
	if err == nil && len(s.Events) > 0 {
		head := d.Head
		d.apply(in.ExecutionID, s)
		d.Head = head
	}
	d.Incomplete = !d.Ended
	return d, err
}

// readLast reads only the last segments of the current execution.
func (rd *historyReader) readLast(ctx context.Context, in *provider.Instance) (*finalExecution, error) {
	end, err := rd.Segments.ReadLastSegment(ctx, in.ExecutionID)
	if err != nil {
		return nil, err
	}
	if len(end.Events) == 0 {
		return rd.readDamaged(ctx, in)
	}

	d := newExecution()
	if end.Sequence > 0 {
		before, err := rd.Segments.ReadSegment(ctx, in.ExecutionID, end.Sequence-1)
		if err != nil {
			return nil, err
		}
		if len(before.Events) > 0 {
			d.Last = append(d.Last, before)
		}
	}
	d.apply(in.ExecutionID, end)

	if end.Sequence < resentSegments {
		start, err := rd.Table.GetExecutionItem(ctx, in.ExecutionID, table.SegmentSK(0, 0))
		if err != nil {
			return nil, err
		}
		d.Previous = table.GetString(start, table.AttrPrevious)
	}
	return d, nil
}

// errChanged means that the instance has changed since it was read. The deletion continues from the current state.
var errChanged = errors.New("dynamo: instance has changed")

// segmentsBefore yields the segments of an instance's execution backwards, with strong consistency. It holds at most
// one page and one segment in memory, and skips unreadable segments.
func (rd *historyReader) segmentsBefore(
	ctx context.Context, in *provider.Instance, before int64,
) iter.Seq2[provider.Segment, error] {
	query := table.RangeQuery(
		table.ExecutionPK(in.ExecutionID), table.SKSegments, table.SegmentSK(before, 0), provider.Strong,
	)
	query.ScanIndexForward = aws.Bool(false)
	return func(yield func(provider.Segment, error) bool) {
		var parts []table.Item // the parts of a segment arrive last part first
		for it, err := range rd.Table.Items(ctx, in.InstanceID, query) {
			if err != nil {
				yield(provider.Segment{}, err)
				return
			}
			if parts = append(parts, it); table.GetNumber(it, table.AttrParts) == 0 && !table.IsStub(it) {
				continue
			}
			s, err := rd.decode(ctx, in, parts)
			parts = nil
			if (err != nil || len(s.Events) > 0 && s.Sequence != before) && (!yield(s, err) || err != nil) {
				return
			}
		}
	}
}

// decode decodes a segment whose parts are in reverse order. It returns an empty segment if the segment cannot be read.
// It returns errChanged if the segment is erased, because another process has then cancelled the children.
func (rd *historyReader) decode(
	ctx context.Context, in *provider.Instance, parts []table.Item,
) (s provider.Segment, err error) {
	slices.Reverse(parts)
	if table.IsStub(parts[0]) {
		return s, errChanged
	}
	sk := table.GetString(parts[0], table.AttrSK)
	sequence, _, err := table.ParseSegmentSK(sk)
	if err == nil {
		s = segments.DecodeComplete(sequence, parts)
	}
	if len(s.Events) == 0 {
		rd.log.WarnContext(ctx, "segment of an ending instance unreadable, its calls are not notified",
			"event", logevent.SegmentUnreadable, "instance", in.InstanceID, "segment", sk)
	}
	return s, nil
}
