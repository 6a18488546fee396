package reconcile

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/perdure/perdure/internal/sleep"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/awscall"
)

const (
	// scheduleDelivery is the time that a schedule that fires during its deletion may take to reach its queue.
	scheduleDelivery = time.Minute
	// countInterval is the time between two counts of a queue.
	countInterval = 15 * time.Second
)

// PurgeQueues checks all queues before it deletes anything. It can be repeated. It deletes the schedules before the
// messages, because a schedule can send a message until it is deleted.
func (rc *Reconciler) PurgeQueues(
	ctx context.Context, progress func(provider.QueuePurgeResult),
) (provider.QueuePurgeResult, error) {
	out := provider.QueuePurgeResult{Messages: map[string]int{}}
	if err := rc.awaitIdle(ctx, out.Messages); err != nil {
		return out, err
	}
	if rc.Timers.UseSchedules && rc.Timers.ScheduleGroup != "" {
		err := rc.Timers.DeleteAllSchedules(ctx, func(deleted int) {
			if out.Schedules += deleted; progress != nil {
				progress(out)
			}
		})
		if err != nil {
			return out, err
		}
		// An earlier, interrupted call may just have deleted the last schedules, even if this call found none.
		if err := sleep.For(ctx, scheduleDelivery); err != nil {
			return out, err
		}
	}

	var purges []func() error
	for _, url := range rc.Queue.WorkingQueues() {
		purges = append(purges, func() error { return rc.Queue.Purge(ctx, url) })
	}
	return out, awscall.Parallel(purges...)
}

// awaitIdle counts the messages of each queue several times. A count can be a minute old, so that one count may not
// include a message that is being processed. If a count shows that a queue is not idle, awaitIdle returns ErrBusy
// immediately.
func (rc *Reconciler) awaitIdle(ctx context.Context, messages map[string]int) error {
	for waited := time.Duration(0); ; waited += countInterval {
		limited, stop := context.WithTimeout(ctx, awscall.OperatorTimeout)
		err := rc.countIdle(limited, messages)
		stop()
		if err != nil || waited >= countDelay {
			return err
		}
		if err := sleep.For(ctx, countInterval); err != nil {
			return err
		}
	}
}

// countIdle counts the approximate number of messages of each queue. It returns ErrBusy if messages are being
// processed or there are dead letters.
func (rc *Reconciler) countIdle(ctx context.Context, messages map[string]int) error {
	queues := rc.Queue.WorkingQueues()
	for _, name := range slices.Sorted(maps.Keys(queues)) {
		n, err := rc.Queue.Attributes(
			ctx, queues[name], types.QueueAttributeNameApproximateNumberOfMessages,
			types.QueueAttributeNameApproximateNumberOfMessagesDelayed,
			types.QueueAttributeNameApproximateNumberOfMessagesNotVisible,
		)
		if err != nil {
			return err
		}
		if held := n[types.QueueAttributeNameApproximateNumberOfMessagesNotVisible]; held > 0 {
			return fmt.Errorf(
				"dynamo: hub %q: %d messages of queue %s are being processed: %w", rc.Queue.Hub, held, name,
				provider.ErrBusy,
			)
		}
		messages[name] = n[types.QueueAttributeNameApproximateNumberOfMessages] +
			n[types.QueueAttributeNameApproximateNumberOfMessagesDelayed]
	}
	for _, name := range rc.Queue.Dead().Names() {
		visible, hidden, err := rc.Queue.Dead().Count(ctx, name)
		if err != nil {
			return err
		}
		if visible+hidden > 0 {
			return fmt.Errorf(
				"dynamo: hub %q: queue %s has %d dead letters: %w", rc.Queue.Hub, name, visible+hidden,
				provider.ErrBusy,
			)
		}
	}
	return nil
}
