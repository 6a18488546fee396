package turns

import (
	"slices"
	"time"

	"github.com/perdure/perdure/dispatch/internal/execution"
	"github.com/perdure/perdure/dispatch/internal/intake"
	"github.com/perdure/perdure/dispatch/internal/messages"
	"github.com/perdure/perdure/provider"
)

// redispatchFrom returns the first position from which outputs of committed turns may be unsent. This is the position
// of the first message that a committed turn has consumed. If there is none, it is the turn at the head, provided that
// no message refers to that turn. This is the case if the turn took only parked inputs (R4), or a restart has copied it
// (R30).
func redispatchFrom(x *execution.Execution, waiting []provider.InboxMessage) (provider.RedispatchFrom, bool) {
	if slices.ContainsFunc(waiting, isRecovered) {
		return recoveredFrom(x, waiting), true
	}
	watermark := x.Head().Watermark
	for i := range waiting {
		if watermark.Covers(waiting[i].Position) {
			return provider.RedispatchFrom{Position: waiting[i].Position}, true
		}
	}
	// The outputs of a warm execution were sent before it was cached.
	return provider.RedispatchFrom{Position: watermark}, x.Read() != nil && x.HasUncoveredOutputs()
}

// clockSkew is the maximum difference between the clocks of two functions.
const clockSkew = 5 * time.Minute

// recoveredFrom returns the position from which outputs may be unsent if messages were recovered from a dead-letter
// queue. Recovery has given them new positions.
func recoveredFrom(x *execution.Execution, waiting []provider.InboxMessage) provider.RedispatchFrom {
	undated := slices.IndexFunc(waiting, func(m provider.InboxMessage) bool {
		return isRecovered(m) && m.Redrive.MovedAt == nil
	})
	if at := deadLetteredAt(waiting); !at.IsZero() {
		if undated >= 0 && x.Read() != nil { // for that message, all of this execution and the end of the previous one
			at = intake.Earlier(at, startedAt(x.Read()).Add(-1))
		}
		return provider.RedispatchFrom{HeadAt: at}
	}
	return provider.RedispatchFrom{Position: undatedFrom(x, waiting[undated].Position)}
}

func startedAt(o *provider.Orchestration) (at time.Time) {
	if events := o.Segments[0].Events; len(events) > 0 {
		at = events[0].Time
	}
	return at
}

func isRecovered(m provider.InboxMessage) bool { return m.Redrive != nil }

// deadLetteredAt returns a time before any of the recovered messages became a dead letter, or zero if it is not known.
// If a turn has consumed one of these messages and its outputs were not sent, it was the last turn at that time, or is
// later. Any number of executions may have followed.
func deadLetteredAt(all []provider.InboxMessage) (at time.Time) {
	for i := range all {
		if p := all[i].Redrive; p != nil && p.MovedAt != nil {
			at = intake.Earlier(at, p.MovedAt.Add(-clockSkew))
		}
	}
	return at
}

// undatedFrom returns the position from which outputs may be unsent for a message that a reconcile or an earlier
// release has recovered. The original position of such a message is unknown. A turn that has consumed the message and
// has unsent outputs is assumed to be in this execution, or at the end of the previous one. If the execution did not
// start with a message of this inbox, it can be any turn.
func undatedFrom(x *execution.Execution, recovered provider.Position) provider.Position {
	if x.Read() != nil {
		if first := x.Read().Segments[0].Watermark; first.Inbox == recovered.Inbox {
			return first
		}
	}
	return provider.Position{}
}

// wakeOf returns the first wake in messages, or nil.
func wakeOf(all []provider.InboxMessage) *provider.InboxMessage {
	if i := slices.IndexFunc(all, messages.IsWake); i >= 0 {
		return &all[i]
	}
	return nil
}
