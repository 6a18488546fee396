package outbox

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/awscall"
	"github.com/perdure/perdure/provider/dynamo/internal/sqsqueue"
	"github.com/perdure/perdure/provider/outputs"
)

// The limits for sending the outputs of a segment with very many outputs.
const (
	// maxWithoutCursor is the maximum number of outputs of a segment without a cursor. All of these outputs are sent
	// together, and a repetition resends those that no dispatch record lists. A larger segment has a cursor.
	maxWithoutCursor = 1000
	// windowEvents is the number of events of a segment with a cursor whose outputs are sent together. Each of the
	// parallel sends then has four to eight batches.
	windowEvents = 4 * awscall.MaxParallel * sqsqueue.BatchLimit
	// cursorWindows is the number of windows after which the cursor is written: one write for about two hundred sends.
	cursorWindows = 3
	// leastWindow is the minimum time that a window is assumed to take.
	leastWindow = 500 * time.Millisecond
)

// Sender sends the outputs of segments in their order. Segments with few outputs share batches.
type Sender struct {
	outbox *Outbox
	// repeated is true if the segments were, or may have been, sent before, so that cursors can exist.
	repeated bool
	// run is the name of the reconciliation that sends, or empty for a dispatch.
	run string
	// accepted holds the accepted outputs of the current execution. It is empty if there are no dispatch records.
	accepted acceptedOutputs
	pending  outputs.Set
	Rejected []provider.OutputFailure
}

// NewSender returns a sender of segments. again is true if they were, or may have been, sent before.
func (ob *Outbox) NewSender(again bool) *Sender { return &Sender{outbox: ob, repeated: again} }

// sendSegment sends the outputs of a segment that was just committed.
func (ob *Outbox) sendSegment(
	ctx context.Context, t *provider.Turn, s provider.Segment,
) ([]provider.OutputFailure, error) {
	x := outputs.TurnOrigin(t)
	out := Sender{
		outbox: ob,
		accepted: acceptedOutputs{
			instanceID:  x.InstanceID,
			executionID: x.ExecutionID,
			from:        s.Sequence,
			head:        s.Sequence,
		},
	}
	err := out.Send(ctx, x, s, outputs.Unsent(t))
	if err == nil {
		_, err = out.Flush(ctx)
	}
	out.WriteRecord(ctx)
	return out.Rejected, err
}

// sendUnsettled sends the outputs of an execution's segments for which the execution still waits. It omits old starts,
// because the instance could run twice. A reconciliation handles the awaited ones.
func (b *Sender) sendUnsettled(ctx context.Context, o unsentExecution) error {
	segments := o.Segments[o.first:]
	if len(segments) == 0 {
		return nil
	}
	b.accepted = acceptedOutputs{
		instanceID:  o.InstanceID,
		executionID: o.Head.ExecutionID,
		from:        segments[0].Sequence,
		head:        o.Head.Segment,
	}
	defer b.WriteRecord(ctx)

	now := b.outbox.now()
	u := SkippedBefore(o.Orchestration, now.Add(-provider.MaxReconcileLookback), now)
	for _, s := range segments {
		if err := b.Send(ctx, outputs.HistoryOrigin(o.Orchestration), s, u.Has); err != nil {
			return err
		}
	}
	_, err := b.Flush(ctx)
	return err
}

// Send adds the unsettled outputs of a segment, which are sent by the next flush at the latest.
func (b *Sender) Send(
	ctx context.Context, x outputs.Origin, s provider.Segment, settled func(eventID int64) bool,
) error {
	if !isLarge(x, s) {
		b.pending.Add(b.outputsOf(x, s, settled))
		return nil
	}
	if _, err := b.Flush(ctx); err != nil { // keep the order of the segments
		return err
	}
	return b.sendWindows(ctx, x, s, settled)
}

// outputsOf is like outputs.Of, but marks work items that may be copies.
func (b *Sender) outputsOf(x outputs.Origin, s provider.Segment, settled func(eventID int64) bool) outputs.Set {
	out := outputs.Of(x, s, settled)
	for i := range out.WorkItems {
		out.WorkItems[i].PossibleDuplicate = b.repeated
	}
	return out
}

// Flush sends the added outputs, and returns all outputs so far that can never be sent.
func (b *Sender) Flush(ctx context.Context) ([]provider.OutputFailure, error) {
	results := b.pending.UpdateResults
	queues, refused, err := b.outbox.encode(ctx, &b.pending)
	b.pending = outputs.Set{}
	b.Rejected = append(b.Rejected, refused...)
	if err != nil {
		return b.Rejected, err
	}
	never, err := b.sendNew(ctx, queues, b.repeated)
	b.Rejected = append(b.Rejected, rejectedOutputs(never)...)
	if err == nil {
		err = b.outbox.Updates.Put(ctx, results...)
	}
	return b.Rejected, err
}

// isLarge reports whether a segment has a cursor. The total number of its outputs, settled or not, decides.
func isLarge(x outputs.Origin, s provider.Segment) bool {
	const each = 2 // an event causes at most two outputs
	if len(s.Events) <= maxWithoutCursor/each {
		return false
	}
	n := 0
	for w := range windowsOf(s) {
		out := outputs.Of(x, w, nil)
		if n += out.Count(); n > maxWithoutCursor {
			return true
		}
	}
	return false
}

// windowsOf splits a segment into windows of events.
func windowsOf(s provider.Segment) iter.Seq[provider.Segment] {
	return func(yield func(provider.Segment) bool) {
		for events := range slices.Chunk(s.Events, windowEvents) {
			if !yield(provider.Segment{Sequence: s.Sequence, Watermark: s.Watermark, Events: events}) {
				return
			}
		}
	}
}

// sendWindows sends the outputs of a large segment window by window, and stores a cursor, so that a repetition resends
// few outputs. A dispatch that started with the first output each time might never reach the last one. sendWindows
// stops between two windows while there is enough time to store the cursor and to release the message.
func (b *Sender) sendWindows(
	ctx context.Context, x outputs.Origin, s provider.Segment, settled func(eventID int64) bool,
) error {
	c := newCursor(x, s)
	c.run = b.run
	if b.repeated {
		if err := b.outbox.readCursor(ctx, &c); err != nil {
			return err
		}
	}

	longest := leastWindow
	windows := 0
	for w := range windowsOf(s) {
		last := w.Events[len(w.Events)-1].ID
		out := b.outputsOf(x, w, settled)
		if last <= c.upTo { // accepted before, except for outputs that no queue accepts
			_, never, err := b.outbox.encode(ctx, &out)
			if err != nil {
				return err
			}
			b.Rejected = append(b.Rejected, never...)
			continue
		}

		began := b.outbox.now()
		if end, ok := ctx.Deadline(); ok && windows > 0 && end.Sub(began) < 2*longest {
			return b.interrupt(ctx, &c, nil)
		}
		if err := b.sendWindow(ctx, &c, &out); err != nil {
			return b.interrupt(ctx, &c, err)
		}

		c.reached = last
		longest = max(longest, b.outbox.now().Sub(began))
		if windows++; windows%cursorWindows == 0 {
			b.outbox.writeCursor(ctx, &c)
		}
	}

	for _, r := range c.rejected {
		b.Rejected = append(b.Rejected, provider.OutputFailure{EventID: r.EventID, Failure: r.Failure})
	}
	b.outbox.writeCursor(ctx, &c)
	return nil
}

// sendWindow is like SendOutputs for a window. Outputs that SQS rejects are stored with the cursor and not resent.
func (b *Sender) sendWindow(ctx context.Context, c *cursor, out *outputs.Set) error {
	queues, refused, err := b.outbox.encode(ctx, out)
	if err != nil {
		return err
	}
	never, err := b.sendNew(ctx, queues, false) // the cursor records the sent outputs
	if err == nil {
		err = b.outbox.Updates.Put(ctx, out.UpdateResults...)
	}
	if err != nil {
		return err
	}
	b.Rejected = append(b.Rejected, refused...)
	for _, r := range rejectedOutputs(never) {
		c.rejected = append(c.rejected, rejection{EventID: r.EventID, Failure: r.Failure})
	}
	return nil
}

// interrupt stores the cursor of a segment that is not completely sent, and returns the error of the dispatch.
func (b *Sender) interrupt(ctx context.Context, c *cursor, why error) error {
	b.outbox.writeCursor(ctx, c)
	b.WriteRecord(ctx)

	if why == nil {
		why = errDeadline
	}
	return &provider.Error{
		Op: "SendOutputs", InstanceID: c.instanceID, Retryable: true,
		Err: fmt.Errorf("segment %d sent up to event #%d of #%d; the next delivery continues: %w", c.sequence,
			max(c.reached, c.upTo), c.last, why),
	}
}
