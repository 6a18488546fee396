// Package attempts retries activities whose attempts failed, and watches the time limits of attempts that are completed
// asynchronously.
//
// A failed attempt of an activity with a retry policy is no input of the code while another attempt follows. It is
// processed before the turn that consumes its message, if the activity is open. The code is not needed for that, so
// attempts continue while an instance is blocked (R14).
package attempts

import (
	"github.com/perdure/perdure/provider"
)

// source identifies an outcome of a message by its index, or a message with a due attempt.
type source struct {
	record string
	index  int
}

// verdict is the result of processing an attempt that failed or is due.
type verdict int

const (
	unprocessed verdict = iota
	isInput             // the attempt is an input of the turn
	isRefused           // the next attempt can never be sent, which the turn records
	isDone              // nothing is left for the turn
)

// Ledger records how a session has processed the attempts of its messages (R14).
type Ledger struct {
	verdicts map[source]verdict
	// timeouts are the outcomes of pending attempts whose time limit has expired, by the messages that led to the
	// check. They are inputs of the turn if their verdict is isInput.
	timeouts map[source]provider.ActivityOutcome
}

// IsProcessed reports whether the attempt of the i-th outcome of a message, or of a timer, is no input of the turn.
func (l *Ledger) IsProcessed(m *provider.InboxMessage, i int) bool {
	return l.verdicts[source{m.Record.ID, i}] > isInput
}

// TimedOut returns the outcome of a pending attempt that the timer of a message has ended.
func (l *Ledger) TimedOut(m *provider.InboxMessage) (o provider.ActivityOutcome, ok bool) {
	from := source{m.Record.ID, 0}
	if l.verdicts[from] != isInput {
		return o, false
	}
	o, ok = l.timeouts[from]
	return o, ok
}

// Done returns the number of messages at the front that need no turn.
func (l *Ledger) Done(all []provider.InboxMessage) (n int) {
	for n < len(all) && l.isDone(&all[n]) {
		n++
	}
	return n
}

func (l *Ledger) isDone(m *provider.InboxMessage) bool {
	for j := range m.Outcomes {
		if l.verdicts[source{m.Record.ID, j}] != isDone {
			return false
		}
	}
	return len(m.Outcomes) > 0 || l.verdicts[source{m.Record.ID, 0}] == isDone
}

// Reset removes the verdicts that depend on the loaded execution. Attempts that were sent stay processed.
func (l *Ledger) Reset() {
	for from, v := range l.verdicts {
		if v != isDone {
			delete(l.verdicts, from)
			delete(l.timeouts, from)
		}
	}
}

func (l *Ledger) hasVerdict(from source) bool { return l.verdicts[from] != unprocessed }

// setDone records that nothing of an attempt is left for the turn.
func (l *Ledger) setDone(from source) { l.set(from, isDone) }

func (l *Ledger) set(from source, v verdict) {
	if l.verdicts == nil {
		l.verdicts = map[source]verdict{}
	}
	l.verdicts[from] = v
}

// setTimeout records the outcome of a pending attempt. Its verdict follows.
func (l *Ledger) setTimeout(from source, o *provider.ActivityOutcome) {
	if l.timeouts == nil {
		l.timeouts = map[source]provider.ActivityOutcome{}
	}
	l.timeouts[from] = *o
}

func (l *Ledger) setResults(c *collection, results provider.RetryResult) {
	refused := map[int64]bool{}
	for i := range results.RejectedOutputs {
		refused[results.RejectedOutputs[i].EventID] = true
	}
	set := func(from source, activityID int64, v provider.RetryVerdict) {
		switch {
		case v == provider.RetryExhausted:
			l.set(from, isInput)
		case refused[activityID]:
			l.set(from, isRefused)
		default:
			l.setDone(from)
		}
	}
	for i, from := range c.failedFrom {
		set(from, c.failed[i].ActivityID, results.Failed[i])
	}
	for i := range c.checks {
		if len(results.Waiting) > 0 && results.Waiting[i].Pending != nil {
			continue // its limits are checked
		}
		set(c.checks[i].from, c.due[i].ActivityID, provider.RetryNext)
	}
}
