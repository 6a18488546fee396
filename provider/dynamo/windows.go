package dynamo

import (
	"context"
	"fmt"
	"time"

	"github.com/perdure/perdure/provider"
)

// How what a segment caused is sent that caused very much.
const (
	// mostAtOnce is how many outputs a segment may have that are all sent at once, and all again when that is repeated. One with
	// more has a cursor.
	mostAtOnce = 1000
	// windowEvents are sent at once of a segment with a cursor: four batches, or up to eight, for each of the parallel sends.
	windowEvents = 4 * parallelSends * batchLimit
	// cursorWindows is after how many windows the cursor is written: one write for some two hundred sends.
	cursorWindows = 3
	// leastWindow is the least that a window is reckoned to take.
	leastWindow = 500 * time.Millisecond
)

// outbox sends what segments caused, in their order. Those of few outputs share their batches.
type outbox struct {
	p *Provider
	// again: it was, or may have been, sent before, and cursors may be there.
	again bool
	// taken is what SQS has taken of the execution that is being sent; of none where nobody keeps it.
	taken   takenOutputs
	few     provider.Outputs
	refused []provider.OutputFailure
}

// sendSegment sends what a segment caused that was just committed.
func (p *Provider) sendSegment(ctx context.Context, x provider.Origin, s provider.Segment) ([]provider.OutputFailure, error) {
	out := outbox{p: p, taken: takenOutputs{instanceID: x.InstanceID, executionID: x.ExecutionID, from: s.Sequence, head: s.Sequence}}
	err := out.send(ctx, x, s, nil)
	if err == nil {
		_, err = out.flush(ctx)
	}
	out.note(ctx)
	return out.refused, err
}

// sendUnsettled sends what an execution caused since it consumed the message at from, and still waits for.
func (b *outbox) sendUnsettled(ctx context.Context, o *provider.Orchestration, from provider.Position) error {
	segments := o.Segments[since(o, from):]
	if len(segments) == 0 {
		return nil
	}
	b.taken = takenOutputs{instanceID: o.InstanceID, executionID: o.Head.ExecutionID, from: segments[0].Sequence, head: o.Head.Segment}
	defer b.note(ctx)
	settled := provider.Settled(o.Segments)
	for _, s := range segments {
		if err := b.send(ctx, o.Origin(), s, func(id int64) bool { return settled[id] }); err != nil {
			return err
		}
	}
	_, err := b.flush(ctx)
	return err
}

// send takes what a segment caused, but for what is settled, and sends it at the latest with the next flush.
func (b *outbox) send(ctx context.Context, x provider.Origin, s provider.Segment, settled func(eventID int64) bool) error {
	if !isLarge(x, s) {
		b.few.Add(b.outputsOf(x, s, settled))
		return nil
	}
	if _, err := b.flush(ctx); err != nil { // in the order of the segments
		return err
	}
	return b.sendWindows(ctx, x, s, settled)
}

// outputsOf is provider.OutputsOf. A work item that may be a copy of another says so.
func (b *outbox) outputsOf(x provider.Origin, s provider.Segment, settled func(eventID int64) bool) provider.Outputs {
	out := provider.OutputsOf(x, s, settled)
	for i := range out.WorkItems {
		out.WorkItems[i].Again = b.again
	}
	return out
}

// flush sends what has gathered, and returns what of everything can never be sent.
func (b *outbox) flush(ctx context.Context) ([]provider.OutputFailure, error) {
	queues, refused, err := b.p.entriesOf(&b.few)
	b.few = provider.Outputs{}
	b.refused = append(b.refused, refused...)
	if err != nil {
		return b.refused, err
	}
	never, err := b.offer(ctx, queues, b.again)
	b.refused = append(b.refused, refusedBySQS(never)...)
	return b.refused, err
}

// isLarge reports whether a segment has a cursor: so much was to be sent for it when it was committed, settled or not.
func isLarge(x provider.Origin, s provider.Segment) bool {
	const each = 2 // an event causes two outputs at the most
	if len(s.Events) <= mostAtOnce/each {
		return false
	}
	n := 0
	for w := range windowsOf(s) {
		out := provider.OutputsOf(x, w, nil)
		if n += len(out.WorkItems) + len(out.Timers) + len(out.Messages); n > mostAtOnce {
			return true
		}
	}
	return false
}

// windowsOf cuts a segment into runs of its events.
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

// sendWindows sends what a large segment caused, one window of its events after the other, and keeps a cursor, so that whoever has
// to go on with it sends little again: a repeated dispatch that begins with the first each time might never come to the last. It
// stops between two windows while there is time to write down how far it has come, and to give the message back.
func (b *outbox) sendWindows(ctx context.Context, x provider.Origin, s provider.Segment, settled func(eventID int64) bool) error {
	c := cursorOf(x, s)
	if b.again {
		if err := b.p.readCursor(ctx, &c); err != nil {
			return err
		}
	}
	longest, windows := leastWindow, 0
	for w := range windowsOf(s) {
		last := w.Events[len(w.Events)-1].ID
		out := b.outputsOf(x, w, settled)
		if last <= c.upTo { // accepted before, but for what no queue ever will
			_, never, err := b.p.entriesOf(&out)
			if err != nil {
				return err
			}
			b.refused = append(b.refused, never...)
			continue
		}
		began := b.p.now()
		if end, ok := ctx.Deadline(); ok && windows > 0 && end.Sub(began) < 2*longest {
			return b.stopped(ctx, &c, nil)
		}
		if err := b.sendWindow(ctx, &c, &out); err != nil {
			return b.stopped(ctx, &c, err)
		}
		c.reached = last
		longest = max(longest, b.p.now().Sub(began))
		if windows++; windows%cursorWindows == 0 {
			b.p.keepCursor(ctx, &c)
		}
	}
	for _, r := range c.refused {
		b.refused = append(b.refused, provider.OutputFailure(r))
	}
	b.p.keepCursor(ctx, &c)
	return nil
}

// sendWindow is sendOutputs of a window. What SQS refuses is kept with the cursor: it will not be asked again.
func (b *outbox) sendWindow(ctx context.Context, c *sendCursor, out *provider.Outputs) error {
	queues, refused, err := b.p.entriesOf(out)
	if err != nil {
		return err
	}
	never, err := b.offer(ctx, queues, false) // the cursor says what of it is sent
	if err != nil {
		return err
	}
	b.refused = append(b.refused, refused...)
	for _, r := range refusedBySQS(never) {
		c.refused = append(c.refused, refusal(r))
	}
	return nil
}

// stopped keeps the cursor of a segment of which not all is sent, and tells so.
func (b *outbox) stopped(ctx context.Context, c *sendCursor, why error) error {
	b.p.keepCursor(ctx, c)
	b.note(ctx)
	if why == nil {
		why = errNoTime
	}
	return &provider.Error{
		Op: "SendOutputs", InstanceID: c.instanceID, Retryable: true,
		Err: fmt.Errorf("segment %d is sent up to event #%d of #%d, the next delivery goes on from there: %w", c.sequence, max(c.reached, c.upTo), c.last, why),
	}
}
