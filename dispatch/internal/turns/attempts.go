package turns

import (
	"context"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// A failed attempt of an activity with a retry policy is no input of the code while another follows. It is dealt with before the turn
// that takes its message, as far as the activity is open in the session's view; what the code has given up, or what has ended, goes
// to it as ever. No code is needed for that: attempts go on while an instance is blocked (R14).

// source is what an attempt is known from: an outcome of a message, by its index, or a message that the attempt is due.
type source struct {
	record string
	index  int
}

// verdict is what the session knows of a failed attempt, or of one that is due.
type verdict int

const (
	unjudged  verdict = iota
	isInput           // it is for the turn
	isRefused         // the next attempt can never be sent: that is for the turn
	isDealt           // nothing is left of it for the turn
)

// attemptLedger is what a session knows of the attempts that its messages are about (R14). Only its own methods change it.
type attemptLedger struct {
	verdicts map[source]verdict
	// ends are the ends of pending attempts that were out of time, by what has shown it: they are for the turn.
	ends map[source]provider.ActivityOutcome
}

// isJudged reports whether something is known of an attempt.
func (l *attemptLedger) isJudged(of source) bool { return l.verdicts[of] != unjudged }

// deal notes that nothing of an attempt is left for the turn.
func (l *attemptLedger) deal(of source) { l.set(of, isDealt) }

func (l *attemptLedger) set(of source, v verdict) {
	if l.verdicts == nil {
		l.verdicts = map[source]verdict{}
	}
	l.verdicts[of] = v
}

// end notes the end of a pending attempt, on which a verdict is to come.
func (l *attemptLedger) end(of source, o *provider.ActivityOutcome) {
	if l.ends == nil {
		l.ends = map[source]provider.ActivityOutcome{}
	}
	l.ends[of] = *o
}

// endOf is the end of a pending attempt that a timer brings to the turn.
func (l *attemptLedger) endOf(m *provider.InboxMessage) (o provider.ActivityOutcome, ok bool) {
	of := source{m.Record.ID, 0}
	if l.verdicts[of] != isInput {
		return o, false
	}
	o, ok = l.ends[of]
	return o, ok
}

// isDone reports whether nothing of a message is left for the turn.
func (l *attemptLedger) isDone(m *provider.InboxMessage, index int) bool {
	return l.verdicts[source{m.Record.ID, index}] > isInput
}

// whollyDealt counts the first messages that brought attempts, and nothing else: nothing of them is left for a turn.
func (l *attemptLedger) whollyDealt(messages []provider.InboxMessage) (n int) {
	for n < len(messages) && l.isWhollyDealt(&messages[n]) {
		n++
	}
	return n
}

func (l *attemptLedger) isWhollyDealt(m *provider.InboxMessage) bool {
	for j := range m.Outcomes {
		if l.verdicts[source{m.Record.ID, j}] != isDealt {
			return false
		}
	}
	return len(m.Outcomes) > 0 || l.verdicts[source{m.Record.ID, 0}] == isDealt
}

// forgetView forgets the verdicts that hold for the view alone: what was sent was sent.
func (l *attemptLedger) forgetView() {
	for of, v := range l.verdicts {
		if v != isDealt {
			delete(l.verdicts, of)
			delete(l.ends, of)
		}
	}
}

// judge takes over what the provider has made of attempts.
func (l *attemptLedger) judge(a *attempts, done provider.RetryResult) {
	refused := map[int64]bool{}
	for i := range done.RejectedOutputs {
		refused[done.RejectedOutputs[i].EventID] = true
	}
	judge := func(of source, activityID int64, v provider.RetryVerdict) {
		switch {
		case v == provider.RetryExhausted:
			l.set(of, isInput)
		case refused[activityID]:
			l.set(of, isRefused)
		default:
			l.deal(of)
		}
	}
	for i, of := range a.failedBy {
		judge(of, a.failed[i].ActivityID, done.Failed[i])
	}
	for i, of := range a.dueBy {
		if len(done.Waiting) > 0 && done.Waiting[i].Pending != nil {
			continue // its limits are looked at
		}
		judge(of, a.due[i].ActivityID, provider.RetryNext)
	}
}

// attempts are the attempts to judge that messages are about: those that failed, those that are due, and from what each is known; and
// those that are pending, or whose limits are to be looked at.
type attempts struct {
	failed          []provider.ActivityOutcome
	due             []provider.DueAttempt
	failedBy, dueBy []source
	looks           []look // one for each that is due
	pending         []handover
	// settled are the activities that messages before the last have settled, though no turn has taken them yet.
	settled map[int64]bool
}

// settle notes the outcomes of a message that settle their activities, whatever their attempts.
func (a *attempts) settle(m *provider.InboxMessage) {
	if m.Kind != provider.MessageActivityOutcomes {
		return
	}
	if a.settled == nil {
		a.settled = map[int64]bool{}
	}
	for i := range m.Outcomes {
		a.settled[m.Outcomes[i].ActivityID] = true
	}
}

// retry moves on the activities of which, by the messages of the next turn, an attempt has failed or is due.
func (s *session) retry(ctx context.Context) (next, error) {
	if err := ownFailures(ctx, s); err != nil {
		return goOn, err
	}
	var a attempts
	taken := s.taken()
	for i := range taken {
		m := &taken[i]
		if !s.x.isFor(m) {
			continue
		}
		if !s.x.collect(&a, m, &s.attempts) {
			return verify, nil // the code, which knows what is open, is not there, and history was not read
		}
		if i+1 < len(taken) {
			a.settle(m)
		}
	}
	a.timeRetries(s.o.options.Clock())
	if len(a.failed)+len(a.due) == 0 {
		return goOn, keepTime(ctx, s, &a, nil)
	}

	r := &provider.RetryRequest{InstanceID: s.item.InstanceID, Head: s.x.head, Failed: a.failed, Due: a.due}
	done, err := s.o.provider.RetryActivities(ctx, r)
	if err != nil {
		return goOn, err
	}
	if done.Verified {
		s.x.markVerified()
	}
	s.backlog.refuse(done.RejectedOutputs...)
	s.attempts.judge(&a, done)
	return goOn, keepTime(ctx, s, &a, done.Waiting)
}

// collect adds the attempts to judge that a message is about. An attempt is judged while its activity is open, when a failure may lead to the
// next one, and while the activity is cancelled and waited for. Then none follows, and a failure is the activity's end, if it is of the
// current attempt; an attempt that is due is sent, and its worker reports the end. known is false where it is not known what is open.
func (x *execution) collect(a *attempts, m *provider.InboxMessage, judged *attemptLedger) (known bool) {
	for j := range m.Outcomes {
		o, of := &m.Outcomes[j], source{m.Record.ID, j}
		if !ofAnAttempt(o) || judged.isJudged(of) || a.settled[o.ActivityID] {
			continue
		}
		open, ending, known := x.openActivity(o.ActivityID)
		if !known {
			return false
		}
		switch {
		case !open && !ending:
		case o.Pending != nil:
			a.pending = append(a.pending, handover{look{m, of, ending}, o})
		default:
			a.failed, a.failedBy = append(a.failed, ofAttempt(o, open)), append(a.failedBy, of)
		}
	}

	if m.Kind != provider.MessageTimerFired || m.Activity {
		return true
	}
	return collectDue(x, a, m, judged)
}

// ofAnAttempt reports whether an outcome is of an attempt alone: one that is pending, or a failure that another may follow.
func ofAnAttempt(o *provider.ActivityOutcome) bool {
	return o.Pending != nil || o.Run != "" && o.Error != nil
}

// collectDue adds the attempt that is due by a timer, as collect does.
func collectDue(x *execution, a *attempts, m *provider.InboxMessage, judged *attemptLedger) (known bool) {
	of := source{m.Record.ID, 0}
	if judged.isJudged(of) || a.settled[m.TimerID] {
		return true
	}
	open, ending, known := x.openActivity(m.TimerID)
	if open || ending {
		by := look{m, of, ending}
		a.due = append(a.due, provider.DueAttempt{ActivityID: m.TimerID, Attempt: m.Attempt, MessageID: by.by(), Segment: m.Segment})
		a.dueBy = append(a.dueBy, of)
		a.looks = append(a.looks, by)
	}
	return known
}

// ofAttempt is the failure of an attempt: of the last, unless there may be another.
func ofAttempt(o *provider.ActivityOutcome, again bool) provider.ActivityOutcome {
	failed := *o
	if !again {
		failed.RetryAt = nil
	}
	return failed
}

// timeRetries has the next attempts of those whose failure came from outside be due by this process's clock. Of a failure that is delivered again, the
// time counts that was stored the first time.
func (a *attempts) timeRetries(now time.Time) {
	for i := range a.failed {
		if o := &a.failed[i]; o.RetryAt != nil && o.RetryInMs > 0 {
			at := now.Add(time.Duration(o.RetryInMs) * time.Millisecond).UTC().Truncate(time.Millisecond)
			o.RetryAt = &at
		}
	}
}

// openActivity reports whether an activity has neither ended nor been cancelled, in this view; ending, that it was cancelled, has not
// ended, and is waited for. known is false where the code, which knows, is not there, and history was not read.
func (x *execution) openActivity(id int64) (open, ending, known bool) {
	if x.instance != nil {
		open, ending = x.instance.OpenActivity(id)
		return open, ending, true
	}
	if !x.state.Tracks(history.TrackOpen) {
		if x.read == nil {
			return false, false, false
		}
		x.state = x.read.State(history.TrackOpen)
	}
	a, there := x.state.Open(id)
	if !there || a.Kind != history.ActivityScheduled || a.OutcomeParked {
		return false, false, true
	}
	cancelled := a.Cancelled || a.CancelRequestParked
	return !cancelled, cancelled && a.WaitsForCancellation, true
}
