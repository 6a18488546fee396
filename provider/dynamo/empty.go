package dynamo

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

// workingQueues returns the URLs of the queues whose messages are processed, by name.
func (p *Provider) workingQueues() map[string]string {
	queues := map[string]string{provider.QueueInbox: p.queue.InboxURL, provider.QueueTimers: p.queue.TimersURL}
	maps.Copy(queues, p.queue.WorkQueues)
	return queues
}

// scheduleSettles is the time that a schedule that fires during its deletion may take to reach its queue.
const scheduleSettles = time.Minute

// PurgeQueues checks all queues before it deletes anything. It can be repeated. It deletes the schedules before the
// messages, because a schedule can send a message until it is deleted.
func (p *Provider) PurgeQueues(ctx context.Context, progress func(provider.QueuePurgeResult)) (provider.QueuePurgeResult, error) {
	out := provider.QueuePurgeResult{Messages: map[string]int{}}
	if err := p.countAtRestSoon(ctx, out.Messages); err != nil {
		return out, err
	}
	if p.timers.UseSchedules && p.timers.ScheduleGroup != "" {
		err := p.timers.DeleteAllSchedules(ctx, func(deleted int) {
			if out.Schedules += deleted; progress != nil {
				progress(out)
			}
		})
		if err != nil {
			return out, err
		}
		// An earlier call that died may just have deleted the last schedules, even if this call found none.
		if err := sleep.For(ctx, scheduleSettles); err != nil {
			return out, err
		}
	}

	var purges []func() error
	for _, url := range p.workingQueues() {
		purges = append(purges, func() error { return p.queue.Purge(ctx, url) })
	}
	return out, awscall.Parallel(purges...)
}

// countAtRestSoon is countAtRest with a time limit.
func (p *Provider) countAtRestSoon(ctx context.Context, messages map[string]int) error {
	limited, stop := context.WithTimeout(ctx, awscall.OperatorTimeout)
	defer stop()
	return p.countAtRest(limited, messages)
}

// countAtRest counts the approximate number of messages of each queue. It returns ErrBusy if messages are being
// processed or there are dead letters.
func (p *Provider) countAtRest(ctx context.Context, messages map[string]int) error {
	queues := p.workingQueues()
	for _, name := range slices.Sorted(maps.Keys(queues)) {
		n, err := p.queue.Attributes(ctx, queues[name], types.QueueAttributeNameApproximateNumberOfMessages,
			types.QueueAttributeNameApproximateNumberOfMessagesDelayed, types.QueueAttributeNameApproximateNumberOfMessagesNotVisible)
		if err != nil {
			return err
		}
		if held := n[types.QueueAttributeNameApproximateNumberOfMessagesNotVisible]; held > 0 {
			return fmt.Errorf("dynamo: hub %q: %d messages of queue %s are being processed: %w", p.queue.Hub, held, name,
				provider.ErrBusy)
		}
		messages[name] = n[types.QueueAttributeNameApproximateNumberOfMessages] + n[types.QueueAttributeNameApproximateNumberOfMessagesDelayed]
	}
	for _, name := range p.DeadLetterQueues() {
		visible, hidden, err := p.CountDeadLetters(ctx, name)
		if err != nil {
			return err
		}
		if visible+hidden > 0 {
			return fmt.Errorf("dynamo: hub %q: queue %s has %d dead letters: %w", p.queue.Hub, name, visible+hidden, provider.ErrBusy)
		}
	}
	return nil
}
