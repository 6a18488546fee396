package dynamo

import (
	"context"
	"errors"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// deathbed is what a deletion finds of the execution that the instance ends with. Of a damaged history it is what can be had.
type deathbed struct {
	head     provider.Head // Segment is -1 where there is none
	lastID   int64
	segments []provider.Segment // all; or the last one, or none
	over     bool
	previous string
}

// lookAtEnd reads the current execution. That it is over its history says, where it can be read: its instance says so later.
func (p *Provider) lookAtEnd(ctx context.Context, in *provider.Instance) (*deathbed, error) {
	o, err := p.readExecution(ctx, in.InstanceID, in.ExecutionID, provider.Strong)
	if errors.Is(err, provider.ErrCorrupt) || errors.Is(err, provider.ErrNotFound) {
		return p.salvage(ctx, in)
	}
	if err != nil {
		return nil, err
	}
	return &deathbed{head: o.Head, lastID: o.Last().ID, segments: o.Segments, over: o.Last().Kind.Terminal(), previous: o.Previous}, nil
}

// salvage takes of a history that cannot be read what can: where it ends the keys tell.
func (p *Provider) salvage(ctx context.Context, in *provider.Instance) (*deathbed, error) {
	items, err := p.queryAll(ctx, in.InstanceID, segmentsQuery(p.hub.Table, in.ExecutionID, provider.Strong))
	if err != nil {
		return nil, err
	}
	d := &deathbed{head: provider.Head{ExecutionID: in.ExecutionID, Segment: -1}, over: in.Status.Terminal()}
	last := 0 // index of the first item of the last segment
	for i, it := range items {
		sequence, part, err := parseSegmentSK(getString(it, attrSK))
		if err != nil {
			continue // it stands in nobody's way
		}
		if sequence > d.head.Segment {
			d.head.Segment, last = sequence, i
		}
		if wm := getString(it, attrWM); part == 0 && wm != "" {
			d.head.Watermark = provider.Position{Inbox: getString(it, attrInbox), Sequence: wm}
		}
	}
	if len(items) == 0 {
		return d, nil
	}
	d.previous = getString(items[0], attrPrevious)
	if s, ok := wholeSegment(d.head.Segment, items[last:]); ok {
		end := s.Events[len(s.Events)-1]
		d.segments, d.lastID, d.over = []provider.Segment{s}, end.ID, d.over || end.Kind.Terminal()
	}
	return d, nil
}

// wholeSegment decodes a segment if all its parts are there.
func wholeSegment(sequence int64, parts []item) (provider.Segment, bool) {
	if len(parts) == 0 || getNumber(parts[0], attrParts) != int64(len(parts)) {
		return provider.Segment{}, false
	}
	s, err := decodeSegment(sequence, parts)
	return s, err == nil
}

// messageLife is what a message can live in its queue. What was sent before cannot be lost any more, and what it started may be
// deleted and forgotten: it must not be started again.
const messageLife = 14 * 24 * time.Hour

// sendEnd sends what the end of a marked instance causes: the parent's answer, the cancels of its children; the schedules of its
// timers go. Whoever committed the segment before the fence may have died before it sent what outlives the execution, and so may
// the one who continued as new: that is sent again.
func (p *Provider) sendEnd(ctx context.Context, in *provider.Instance) error {
	d, err := p.lookAtEnd(ctx, in)
	if err != nil {
		return err
	}
	x := provider.Origin{InstanceID: in.InstanceID, ExecutionID: in.ExecutionID, Parent: in.Parent, Ended: true}
	out := outbox{p: p, again: true}
	const unsent = 2 // the end, and what it came upon
	for _, s := range d.segments[max(0, len(d.segments)-unsent):] {
		if err := out.send(ctx, x, s, p.longSent(s)); err != nil {
			return err
		}
	}
	if len(d.segments) <= unsent && d.previous != "" {
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
	p.dropSchedules(ctx, in.ExecutionID, cancelledTimers(d.segments, 0))
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
	s, _ := wholeSegment(sequence, parts)
	return s, nil
}
