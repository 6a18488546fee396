package turns

import (
	"context"
	"slices"
	"time"

	"github.com/perdure/perdure/provider"
)

// A message that asks the instance to end, or to pause, waits in the group that the invocation holds: nobody can receive it meanwhile. So an
// invocation whose inline activities run for longer than a second looks, once a second, for a note that one was sent, and makes way: what runs
// goes on in its queue, a little later than the message is received, and the next step is for another invocation. The note decides nothing else.

const (
	// lookEvery is how long inline activities of an invocation run until it looks, and looks again.
	lookEvery = time.Second
	// interruptionSlack is what the clock of who has sent the message may be behind, or ahead. A note of one that is an hour ahead would have each
	// invocation of that hour make way.
	interruptionSlack = 5 * time.Second
	// interruptionLeads is how much later than the message what it interrupts is visible in its queue.
	interruptionLeads = 2 * time.Second
)

// asked is what an invocation knows of the messages that want it to make way.
type asked struct {
	// next is when to look; zero before an inline activity has run.
	next time.Time
	// is: a message was sent.
	is bool
}

// begin notes that inline activities run.
func (a *asked) begin(now time.Time) {
	if a.next.IsZero() {
		a.next = now.Add(lookEvery)
	}
}

// looks reads the note, if it is time to, and reports whether the invocation has to make way. What fails is looked for a second later.
func (a *asked) looks(ctx context.Context, s *session, now time.Time) bool {
	if a.is || now.Before(a.next) {
		return a.is
	}
	a.next = now.Add(lookEvery)
	ctx, stop := context.WithTimeout(ctx, lookEvery/2)
	defer stop()
	at, err := s.o.provider.ReadInterruption(ctx, s.item.InstanceID)
	if err != nil {
		s.o.options.Logger.DebugContext(ctx, "interruption check failed", "instance", s.item.InstanceID, "error", err)
		return false
	}
	a.is = at.After(since(s)) && at.Before(now.Add(interruptionSlack))
	return a.is
}

// since is when a message that the invocation does not hold was sent at the earliest. One that it holds is noted, too.
func since(s *session) time.Time {
	if slices.ContainsFunc(s.item.Messages, func(m provider.InboxMessage) bool { return m.Interrupts() }) {
		return s.began
	}
	return s.began.Add(-interruptionSlack)
}

// at is when to look next; zero: not any more.
func (a *asked) at() time.Time {
	if a.is {
		return time.Time{}
	}
	return a.next
}
