package dynamo

import (
	"context"
	"fmt"
	"time"

	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/awscall"
	"github.com/perdure/perdure/provider/dynamo/internal/sqsqueue"
)

// The limits for sending the outputs of a segment with very many outputs.
const (
	// mostAtOnce is the number of outputs of a segment up to which all are sent together, and all again in a
	// repetition. A larger segment has a cursor.
	mostAtOnce = 1000
	// windowEvents is the number of events of a segment with a cursor that are sent together: four to eight batches for
	// each of the parallel sends.
	windowEvents = 4 * awscall.MaxParallel * sqsqueue.BatchLimit
	// cursorWindows is the number of windows after which the cursor is written: one write for about two hundred sends.
	cursorWindows = 3
	// leastWindow is the minimum time that a window is assumed to take.
	leastWindow = 500 * time.Millisecond
)

// outbox sends the outputs of segments in their order. Segments with few outputs share batches.
type outbox struct {
	p *Provider
	// again is true if the segments were, or may have been, sent before, so that cursors can exist.
	again bool
	// run is the name of the reconciliation that sends, or empty for a dispatch.
	run string
	// taken holds the accepted outputs of the current execution. It is empty if there are no dispatch records.
	taken   takenOutputs
	few     provider.Outputs
	refused []provider.OutputFailure
}

// sendSegment sends the outputs of a segment that was just committed.
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

// sendUnsettled sends the outputs of an execution's segments that it still waits for. It omits old starts, because the
// instance could run twice. A reconciliation handles those that are awaited.
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

// send adds the unsettled outputs of a segment, which are sent by the next flush at the latest.
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

// outputsOf is provider.OutputsOf, and marks work items that may be copies.
func (b *outbox) outputsOf(x provider.Origin, s provider.Segment, settled func(eventID int64) bool) provider.Outputs {
	out := provider.OutputsOf(x, s, settled)
	for i := range out.WorkItems {
		out.WorkItems[i].PossibleDuplicate = b.again
	}
	return out
}

// flush sends the added outputs, and returns all outputs so far that can never be sent.
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

// isLarge reports whether a segment has a cursor, because it had so many outputs, settled or not, when it was
// committed.
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

// windowsOf splits a segment into windows of events.
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

// sendWindows sends the outputs of a large segment window by window, and stores a cursor, so that a repetition sends
// little again. A repeated dispatch that starts with the first output each time might never reach the last one.
// sendWindows stops between two windows while there is enough time to store the cursor and to release the message.
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
		if last <= c.upTo { // accepted before, except for outputs that no queue accepts
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

// sendWindow is sendOutputs for a window. Outputs that SQS rejects are stored with the cursor and not sent again.
func (b *outbox) sendWindow(ctx context.Context, c *sendCursor, out *provider.Outputs) error {
	queues, refused, err := b.p.entriesOf(ctx, out)
	if err != nil {
		return err
	}
	never, err := b.offer(ctx, queues, false) // the cursor records the sent outputs
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

// stopSending stores the cursor of a segment that is not completely sent, and returns the error that reports this.
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
