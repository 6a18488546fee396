package dynamo

import (
	"context"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// deathbed is what a deletion finds of the execution that the instance ends with. Of a damaged history it is what can be had.
type deathbed struct {
	head        provider.Head // Segment is -1 where there is none
	lastID      int64
	last        []provider.Segment  // up to two, the last ones
	outstanding history.Outstanding // what is not settled
	cancelled   []provider.TimerSpan
	over        bool
	untold      bool   // what is outstanding was not looked for: there was no time
	previous    string // known of damaged histories alone
}

// unsent are the segments that a deletion sends once more: the end, and what it came upon.
const unsent = 2

// lookAtEnd reads what a deletion has to know of the current execution: its end, where it is over, and else all of it, bit by bit, for what is
// outstanding. That it is over its history says, where it can be read: its instance says so later.
func (p *Provider) lookAtEnd(ctx context.Context, in *provider.Instance) (*deathbed, error) {
	last, err := p.lookAtLast(ctx, in)
	if err != nil || last.over {
		return last, err
	}
	d, whole, err := p.lookAtMost(ctx, in, condemnLook)
	if err != nil || whole {
		return d, err
	}
	last.untold, last.outstanding, last.previous = true, history.Outstanding{}, ""
	return last, nil
}

// lookAtAll reads the current execution, however large it is.
func (p *Provider) lookAtAll(ctx context.Context, in *provider.Instance) (*deathbed, error) {
	d := &deathbed{}
	waiting := provider.TimerSpans{}
	giveBack := func() {}
	defer func() { giveBack() }()
	large := func() (err error) {
		giveBack, err = p.takeLarge(ctx)
		return err
	}
	for s, err := range p.streamFrom(ctx, segmentStream{provider: p, instanceID: in.InstanceID, executionID: in.ExecutionID, large: large}) {
		if errors.Is(err, provider.ErrCorrupt) || errors.Is(err, provider.ErrNotFound) {
			return p.salvage(ctx, in)
		}
		if err != nil {
			return d, err
		}
		for _, span := range waiting.Cancelled(s.Events) {
			if len(d.cancelled) <= mostDropped && (p.mayHaveSchedule(span) || p.mayWaitByTimer(span)) {
				d.cancelled = append(d.cancelled, span)
			}
		}
		waiting.Apply(s.Events)
		d.take(in.ExecutionID, s)
	}
	return d, nil
}

// take takes in the next segment.
func (d *deathbed) take(executionID string, s provider.Segment) {
	for i := range s.Events {
		d.outstanding.Note(&s.Events[i])
	}
	end := &s.Events[len(s.Events)-1]
	d.head = provider.Head{ExecutionID: executionID, Segment: s.Sequence, Watermark: s.Watermark}
	d.lastID, d.over = end.ID, d.over || end.Kind.Terminal()
	if d.last = append(d.last, s); len(d.last) > unsent {
		d.last = append(d.last[:0:0], d.last[1:]...) // a slice of them would keep all
	}
}

// salvage takes of a history that cannot be read what can: where it ends the keys tell.
func (p *Provider) salvage(ctx context.Context, in *provider.Instance) (*deathbed, error) {
	d := &deathbed{head: provider.Head{ExecutionID: in.ExecutionID, Segment: -1}, over: in.Status.Terminal()}
	query := keysOf(segmentsQuery(p.hub.Table, in.ExecutionID, provider.Strong))
	first := true
	for page, err := range p.query(ctx, in.InstanceID, query) {
		if err != nil {
			return nil, err
		}
		for _, it := range page {
			if first {
				d.previous, first = getString(it, attrPrevious), false
			}
			sequence, part, err := parseSegmentSK(getString(it, attrSK))
			if err != nil {
				continue // it stands in nobody's way
			}
			d.head.Segment = max(d.head.Segment, sequence)
			if wm := getString(it, attrWM); part == 0 && wm != "" {
				d.head.Watermark = provider.Position{Inbox: getString(it, attrInbox), Sequence: wm}
			}
		}
	}
	if d.head.Segment < 0 {
		return d, nil
	}
	s, err := p.segmentAt(ctx, in.ExecutionID, d.head.Segment)
	if err == nil && len(s.Events) > 0 {
		head := d.head
		d.take(in.ExecutionID, s)
		d.head = head
	}
	return d, err
}

// keysOf leaves out of what a query reads all that may be large.
func keysOf(in *dynamodb.QueryInput) *dynamodb.QueryInput {
	in.ProjectionExpression = aws.String("#sk, #stub, #wm, #inbox, #previous, #ttl")
	in.ExpressionAttributeNames = map[string]string{
		"#sk": attrSK, "#stub": attrStub, "#wm": attrWM, "#inbox": attrInbox, "#previous": attrPrevious, "#ttl": attrTTL,
	}
	return in
}

// segmentAt reads one segment; it is empty where it cannot be read.
func (p *Provider) segmentAt(ctx context.Context, executionID string, sequence int64) (provider.Segment, error) {
	in := segmentsQuery(p.hub.Table, executionID, provider.Strong)
	in.KeyConditionExpression = aws.String("pk = :pk AND sk BETWEEN :sk AND :parts")
	in.ExpressionAttributeValues[":sk"], in.ExpressionAttributeValues[":parts"] = str(segmentSK(sequence, 0)), str(segmentSK(sequence, 999))
	parts, err := p.queryAll(ctx, "", in)
	if err != nil {
		return provider.Segment{}, err
	}
	return wholeSegment(sequence, parts), nil
}

// wholeSegment decodes a segment if all its parts are there; it is empty if not.
func wholeSegment(sequence int64, parts []item) provider.Segment {
	if len(parts) == 0 || getNumber(parts[0], attrParts) != int64(len(parts)) {
		return provider.Segment{}
	}
	s, err := decodeSegment(sequence, parts)
	if err != nil {
		return provider.Segment{}
	}
	return s
}

// messageLife is what a message can live in its queue. What was sent before cannot be lost any more, and what it started may be
// deleted and forgotten: it must not be started again.
const messageLife = 14 * 24 * time.Hour

// sendEnd sends what the end of a marked instance causes: the parent's answer, the cancels of its children; the schedules of its
// timers go. Whoever committed the segment before the fence may have died before it sent what outlives the execution, and so may
// the one who continued as new: that is sent again.
func (p *Provider) sendEnd(ctx context.Context, in *provider.Instance) error {
	d, err := p.lookAtLast(ctx, in)
	if err != nil {
		return err
	}
	x := provider.Origin{InstanceID: in.InstanceID, ExecutionID: in.ExecutionID, Parent: in.Parent, Ended: true}
	out := outbox{p: p, again: true}
	for _, s := range d.last {
		if err := out.send(ctx, x, s, p.longSent(s)); err != nil {
			return err
		}
	}
	if d.previous != "" && (d.head.Segment < unsent || len(d.last) < unsent) {
		before, err := p.lastSegment(ctx, d.previous)
		if err != nil {
			return err
		}
		x.ExecutionID = d.previous
		if err := out.send(ctx, x, before, p.longSent(before)); err != nil {
			return err
		}
	}
	refused, err := out.flush(ctx)
	for i := range refused {
		p.log.WarnContext(ctx, "a deleted instance's end cannot be sent", "instance", in.InstanceID, "eventId", refused[i].EventID, "error", refused[i].Failure.Message)
	}
	if err != nil {
		return err
	}
	return p.dropAllSchedules(ctx, in)
}

// lookAtLast reads the last segments of the current execution alone.
func (p *Provider) lookAtLast(ctx context.Context, in *provider.Instance) (*deathbed, error) {
	end, err := p.lastSegment(ctx, in.ExecutionID)
	if err != nil {
		return nil, err
	}
	if len(end.Events) == 0 {
		return p.salvage(ctx, in)
	}
	d := &deathbed{}
	if end.Sequence > 0 {
		before, err := p.segmentAt(ctx, in.ExecutionID, end.Sequence-1)
		if err != nil {
			return nil, err
		}
		if len(before.Events) > 0 {
			d.last = append(d.last, before)
		}
	}
	d.take(in.ExecutionID, end)
	if end.Sequence < unsent {
		start, err := p.getExecutionItem(ctx, in.ExecutionID, segmentSK(0, 0))
		if err != nil {
			return nil, err
		}
		d.previous = getString(start, attrPrevious)
	}
	return d, nil
}

// schedulesLook bounds how long a deletion reads history for the schedules of timers that were cancelled. What it does not come to fires for nothing.
const schedulesLook = 5 * time.Second

// dropAllSchedules deletes, at best, the schedules of all timers that history has cancelled.
func (p *Provider) dropAllSchedules(ctx context.Context, in *provider.Instance) error {
	if p.hub.Timers != TimersSchedules || p.schedules == nil {
		return nil
	}
	d, _, err := p.lookAtMost(ctx, in, schedulesLook)
	if err != nil {
		return err
	}
	if d != nil {
		p.dropSchedules(ctx, in.ExecutionID, d.cancelled)
	}
	return nil
}

// longSent leaves out starts that are too old to be sent again.
func (p *Provider) longSent(s provider.Segment) func(eventID int64) bool {
	old := map[int64]bool{}
	for i := range s.Events {
		e := &s.Events[i]
		old[e.ID] = e.Kind == history.DetachedOrchestrationScheduled && p.now().Sub(e.Time) >= messageLife
	}
	return func(id int64) bool { return old[id] }
}

// lastSegment reads the segment that an execution ends with; it is empty where it cannot be read.
func (p *Provider) lastSegment(ctx context.Context, executionID string) (provider.Segment, error) {
	parts, err := p.lastParts(ctx, executionID)
	if err != nil || len(parts) == 0 {
		return provider.Segment{}, err
	}
	sequence, _, err := parseSegmentSK(getString(parts[0], attrSK))
	if err != nil {
		return provider.Segment{}, nil //nolint:nilerr // damaged: there is nothing to be had of it
	}
	return wholeSegment(sequence, parts), nil
}
