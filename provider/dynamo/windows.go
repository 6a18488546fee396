package dynamo

import (
	"context"
	"fmt"
	"time"

	"github.com/perdure/perdure/provider"
)

// How the outputs of a segment are sent that has very many.
const (
	// mostAtOnce is how many outputs of a segment are sent all at once, and all again when that is repeated. A segment
	// with more has a cursor.
	mostAtOnce = 1000
	// windowEvents is how many events of a segment with a cursor are sent at once: four batches, or up to eight, for
	// each of the parallel sends.
	windowEvents = 4 * parallelSends * batchLimit
	// cursorWindows is the number of windows after which the cursor is written: one write for some two hundred sends.
	cursorWindows = 3
	// leastWindow is the shortest time that a window is assumed to take.
	leastWindow = 500 * time.Millisecond
)

// outbox sends what segments caused, in their order. Segments with few outputs share their batches.
type outbox struct {
	p *Provider
	// again reports that the segments were, or may have been, sent before, and cursors may exist.
	again bool
	// run names the reconciliation that sends; empty where a dispatch does.
	run string
	// taken is what SQS has taken of the execution that is being sent; empty where no notes are kept.
	taken   takenOutputs
	few     provider.Outputs
	refused []provider.OutputFailure
}

// sendSegment sends what a segment caused that was just committed.
func (p *Provider) sendSegment(ctx context.Context, t *provider.Turn, s provider.Segment) ([]provider.OutputFailure, error) {
	x := t.Origin()
	out := outbox{p: p, taken: takenOutputs{instanceID: x.InstanceID, executionID: x.ExecutionID, from: s.Sequence, head: s.Sequence}}
	err := out.send(ctx, x, s, t.Unsent())
	if err == nil {
		_, err = out.flush(ctx)
	}
	out.writeNote(ctx)
	return out.refused, err
}

// sendUnsettled sends what the segments of an execution have caused that it still waits for. Starts of long ago are left out: nothing may be
// left that keeps them from happening again. A reconciliation sees to those that are waited for.
func (b *outbox) sendUnsettled(ctx context.Context, o stretch) error {
	segments := o.Segments[o.first:]
	if len(segments) == 0 {
		return nil
	}
	b.taken = takenOutputs{instanceID: o.InstanceID, executionID: o.Head.ExecutionID, from: segments[0].Sequence, head: o.Head.Segment}
	defer b.writeNote(ctx)

	u := b.p.unsentBefore(o.Orchestration, b.p.now().Add(-provider.MaxReconcileLookback))
	for _, s := range segments {
		if err := b.send(ctx, o.Origin(), s, u.has); err != nil {
			return err
		}
	}
	_, err := b.flush(ctx)
	return err
}

// send adds what a segment caused, except for what is settled; it is sent with the next flush at the latest.
func (b *outbox) send(ctx context.Context, x provider.Origin, s provider.Segment, settled func(eventID int64) bool) error {
	if !isLarge(x, s) {
		b.few.Add(b.outputsOf(x, s, settled))
		return nil
	}
	if _, err := b.flush(ctx); err != nil { // keep the order of the segments
		return err
	}
	return b.sendWindows(ctx, x, s, settled)
}

// outputsOf is provider.OutputsOf, and marks work items that may be copies of others.
func (b *outbox) outputsOf(x provider.Origin, s provider.Segment, settled func(eventID int64) bool) provider.Outputs {
	out := provider.OutputsOf(x, s, settled)
	for i := range out.WorkItems {
		out.WorkItems[i].PossibleDuplicate = b.again
	}
	return out
}

// flush sends what was added, and returns all outputs so far that can never be sent.
func (b *outbox) flush(ctx context.Context) ([]provider.OutputFailure, error) {
	answers := b.few.UpdateResults
	queues, refused, err := b.p.entriesOf(ctx, &b.few)
	b.few = provider.Outputs{}
	b.refused = append(b.refused, refused...)
	if err != nil {
		return b.refused, err
	}
	never, err := b.offer(ctx, queues, b.again)
	b.refused = append(b.refused, refusedBySQS(never)...)
	if err == nil {
		err = b.p.PutUpdateResults(ctx, answers...)
	}
	return b.refused, err
}

// isLarge reports whether a segment has a cursor: whether it had so many outputs when it was committed, settled or not.
func isLarge(x provider.Origin, s provider.Segment) bool {
	const each = 2 // an event causes at most two outputs
	if len(s.Events) <= mostAtOnce/each {
		return false
	}
	n := 0
	for w := range windowsOf(s) {
		out := provider.OutputsOf(x, w, nil)
		if n += out.Count(); n > mostAtOnce {
			return true
		}
	}
	return false
}

// windowsOf splits a segment into runs of its events.
func windowsOf(s provider.Segment) func(yield func(provider.Segment) bool) {
	return func(yield func(provider.Segment) bool) {
		for events := s.Events; len(events) > 0; {
			n := min(windowEvents, len(events))
			if !yield(provider.Segment{Sequence: s.Sequence, Watermark: s.Watermark, Events: events[:n:n]}) {
				return
			}
			events = events[n:]
		}
	}
}

// sendWindows sends what a large segment caused, one window of its events after the other, and keeps a cursor, so that
// a repetition sends little again: a repeated dispatch that begins with the first output each time might never reach
// the last. It stops between two windows while there is still time to store how far it has come, and to give the
// message back.
func (b *outbox) sendWindows(ctx context.Context, x provider.Origin, s provider.Segment, settled func(eventID int64) bool) error {
	c := cursorOf(x, s)
	c.run = b.run
	if b.again {
		if err := b.p.readCursor(ctx, &c); err != nil {
			return err
		}
	}

	longest := leastWindow
	windows := 0
	for w := range windowsOf(s) {
		last := w.Events[len(w.Events)-1].ID
		out := b.outputsOf(x, w, settled)
		if last <= c.upTo { // accepted before, except for what no queue ever takes
			_, never, err := b.p.entriesOf(ctx, &out)
			if err != nil {
				return err
			}
			b.refused = append(b.refused, never...)
			continue
		}

		began := b.p.now()
		if end, ok := ctx.Deadline(); ok && windows > 0 && end.Sub(began) < 2*longest {
			return b.stopSending(ctx, &c, nil)
		}
		if err := b.sendWindow(ctx, &c, &out); err != nil {
			return b.stopSending(ctx, &c, err)
		}

		c.reached = last
		longest = max(longest, b.p.now().Sub(began))
		if windows++; windows%cursorWindows == 0 {
			b.p.keepCursor(ctx, &c)
		}
	}

	for _, r := range c.refused {
		b.refused = append(b.refused, provider.OutputFailure{EventID: r.EventID, Failure: r.Failure})
	}
	b.p.keepCursor(ctx, &c)
	return nil
}

// sendWindow is sendOutputs of a window. What SQS refuses is stored with the cursor, and is not sent again.
func (b *outbox) sendWindow(ctx context.Context, c *sendCursor, out *provider.Outputs) error {
	queues, refused, err := b.p.entriesOf(ctx, out)
	if err != nil {
		return err
	}
	never, err := b.offer(ctx, queues, false) // the cursor records what is sent
	if err == nil {
		err = b.p.PutUpdateResults(ctx, out.UpdateResults...)
	}
	if err != nil {
		return err
	}
	b.refused = append(b.refused, refused...)
	for _, r := range refusedBySQS(never) {
		c.refused = append(c.refused, refusal{EventID: r.EventID, Failure: r.Failure})
	}
	return nil
}

// stopSending stores the cursor of a segment of which not everything is sent, and returns the error that reports it.
func (b *outbox) stopSending(ctx context.Context, c *sendCursor, why error) error {
	b.p.keepCursor(ctx, c)
	b.writeNote(ctx)

	if why == nil {
		why = errNoTime
	}
	return &provider.Error{
		Op: "SendOutputs", InstanceID: c.instanceID, Retryable: true,
		Err: fmt.Errorf("segment %d sent up to event #%d of #%d; the next delivery continues: %w", c.sequence,
			max(c.reached, c.upTo), c.last, why),
	}
}
