package inline

import (
	"context"
	"slices"
	"time"

	"github.com/perdure/perdure/provider"
)

// A message that ends or pauses the instance waits in the message group that the invocation holds, so no process can
// receive it. If inline activities run for longer than a second, the invocation therefore reads once a second whether
// such a message was sent. If so, the running activities continue in their queues, a little later than the message is
// received, and another invocation runs the next turn. The stored note has no other effect.

const (
	// checkInterval is the interval of these reads, and the time before the first one.
	checkInterval = time.Second
	// interruptionSkew is the maximum difference between the clocks of the sender and this process. Without it, a note
	// that is an hour in the future would interrupt each invocation of that hour.
	interruptionSkew = 5 * time.Second
	// interruptionDelay is the delay after the message with which interrupted activities become visible in their
	// queues.
	interruptionDelay = 2 * time.Second
)

// interruption records whether a message waits for the end of the invocation.
type interruption struct {
	// next is the time of the next read. It is zero before an inline activity has run.
	next time.Time
	// found is set if a message was sent.
	found bool
}

// begin records that inline activities run.
func (i *interruption) begin(now time.Time) {
	if i.next.IsZero() {
		i.next = now.Add(checkInterval)
	}
}

// nextCheck returns the time of the next read, or zero if there is none.
func (i *interruption) nextCheck() time.Time {
	if i.found {
		return time.Time{}
	}
	return i.next
}

// checkInterruption reads the note if a read is due, and reports whether the invocation must end. A read that failed is
// repeated after a second.
func (r *Runner) checkInterruption(ctx context.Context, now time.Time) bool {
	i := &r.interruption
	if i.found || now.Before(i.next) {
		return i.found
	}
	i.next = now.Add(checkInterval)
	ctx, stop := context.WithTimeout(ctx, checkInterval/2)
	defer stop()
	at, err := r.host.Provider.ReadInterruption(ctx, r.item.InstanceID)
	if err != nil {
		r.host.Logger.DebugContext(ctx, "interruption check failed", "instance", r.item.InstanceID, "error", err)
		return false
	}
	i.found = at.After(r.interruptedSince()) && at.Before(now.Add(interruptionSkew))
	return i.found
}

// interruptedSince returns the earliest send time of a message that the invocation does not hold. Messages that it
// holds have notes as well.
func (r *Runner) interruptedSince() time.Time {
	if slices.ContainsFunc(r.item.Messages, func(m provider.InboxMessage) bool { return m.Interrupts() }) {
		return r.began
	}
	return r.began.Add(-interruptionSkew)
}
