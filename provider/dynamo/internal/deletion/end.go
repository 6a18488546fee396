package deletion

import (
	"context"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/outputs"
)

// queueRetention is the retention of a queue. An older message cannot be lost after this time. The instance that it
// started may have been purged together with its tombstone, so it must not be started again.
const queueRetention = 14 * 24 * time.Hour

// sendEndOutputs sends the outputs of the end of a marked instance: its outcome for the parent and the cancels of its
// children. It also deletes the schedules of its timers. The process that committed the segment before the last one may
// have crashed before it sent the outputs that outlive the execution. The same applies to the process that continued as
// new. sendEndOutputs therefore resends the outputs of both segments.
func (dl *Deleter) sendEndOutputs(ctx context.Context, in *provider.Instance) error {
	d, err := dl.history.readLast(ctx, in)
	if err != nil {
		return err
	}
	x := outputs.Origin{
		InstanceID:  in.InstanceID,
		ExecutionID: in.ExecutionID,
		StartID:     in.StartID,
		Parent:      in.Parent,
		Ended:       true,
	}
	out := dl.Outbox.NewSender(true)
	for _, s := range d.Last {
		if err := out.Send(ctx, x, s, dl.tooOld(s)); err != nil {
			return err
		}
	}

	if d.Previous != "" && (d.Head.Segment < resentSegments || len(d.Last) < resentSegments) {
		before, err := dl.Segments.ReadLastSegment(ctx, d.Previous)
		if err != nil {
			return err
		}
		x.ExecutionID = d.Previous
		if err := out.Send(ctx, x, before, dl.tooOld(before)); err != nil {
			return err
		}
	}

	refused, err := out.Flush(ctx)
	for i := range refused {
		dl.log.WarnContext(ctx, "end of a deleted instance not sent", "event", logevent.DeletionNotificationRejected,
			"instance", in.InstanceID, "execution", in.ExecutionID, "eventId", refused[i].EventID,
			"error", refused[i].Failure.Message)
	}
	if err != nil {
		return err
	}
	return dl.deleteSchedules(ctx, in)
}

// scheduleReadTime limits the time for which a deletion reads the history to find schedules of cancelled timers. Other
// schedules fire without effect.
const scheduleReadTime = 5 * time.Second

// deleteSchedules deletes the schedules of all timers that the history has cancelled. It is best effort.
func (dl *Deleter) deleteSchedules(ctx context.Context, in *provider.Instance) error {
	if !dl.Timers.HasSchedules() {
		return nil
	}
	d, _, err := dl.history.readWithin(ctx, in, scheduleReadTime)
	if err != nil {
		return err
	}
	if d != nil {
		dl.Timers.DeleteSchedules(ctx, in.ExecutionID, d.ObsoleteTimers)
	}
	return nil
}

// tooOld returns a filter for starts and events for other instances that are too old to be resent.
func (dl *Deleter) tooOld(s provider.Segment) func(eventID int64) bool {
	old := map[int64]bool{}
	for i := range s.Events {
		e := &s.Events[i]
		survives := e.Kind == history.DetachedOrchestrationScheduled || e.Kind == history.ExternalEventSent ||
			e.Kind == history.UpdateSent
		old[e.ID] = survives && dl.now().Sub(e.Time) >= queueRetention
	}
	return func(id int64) bool { return old[id] }
}
