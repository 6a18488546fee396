package dispatch

import (
	"context"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// A failed attempt of an activity with a retry policy is no input of the code while another follows. It is dealt with before the turn
// that takes its message, as far as the activity is open in the session's view; what the code has given up, or what has ended, goes
// to it as ever. No code is needed for that: attempts go on while an instance is blocked (R14).

// told is what a message tells: an outcome of its by the index, or that an attempt is due.
type told struct {
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

// retry drives the activities on that the messages of the next turn tell failed attempts of, or that attempts are due of.
func (s *session) retry(ctx context.Context) error {
	var failed, due []told
	var outcomes []provider.ActivityOutcome
	var attempts []provider.DueAttempt
	taken := s.taken()
	for i := range taken {
		m := &taken[i]
		if !s.isOfHead(m) {
			continue
		}
		for j := range m.Outcomes {
			o, of := &m.Outcomes[j], told{m.Record.ID, j}
			if retries, again, err := s.retries(of, o.ActivityID, o.Run != "" && o.Error != nil); err != nil {
				return err
			} else if retries {
				outcomes, failed = append(outcomes, ofAttempt(o, again)), append(failed, of)
			}
		}
		of := told{m.Record.ID, 0}
		if retries, _, err := s.retries(of, m.TimerID, m.Kind == provider.MessageTimerFired && !m.Activity); err != nil {
			return err
		} else if retries {
			attempts, due = append(attempts, provider.DueAttempt{ActivityID: m.TimerID, Attempt: m.Attempt, Segment: m.Segment}), append(due, of)
		}
	}
	if len(failed)+len(due) == 0 {
		return nil
	}
	r := &provider.Retries{InstanceID: s.item.InstanceID, Head: s.x.head, Failed: outcomes, Due: attempts}
	done, err := s.o.provider.RetryActivities(ctx, r)
	if err != nil {
		return err
	}
	s.x.verified = s.x.verified || done.Verified
	s.judged(r, done, failed, due)
	return nil
}

// ofAttempt is the failure of an attempt: of the last, unless there may be another.
func ofAttempt(o *provider.ActivityOutcome, again bool) provider.ActivityOutcome {
	failed := *o
	if !again {
		failed.RetryAt = nil
	}
	return failed
}

// retries reports whether what is told of an activity is to be judged by its attempts: so it is while the activity is open, when it may
// lead to the next attempt (again), or is cancelled and waited for. Then none follows, and a failure is its end, if it is of the current attempt;
// an attempt that is due is sent, for its worker to tell.
func (s *session) retries(of told, activityID int64, may bool) (judged, again bool, err error) {
	if !may || s.verdicts[of] != unjudged {
		return false, false, nil
	}
	open, ending, err := s.open(activityID)
	return open || ending, open, err
}

// judged takes the verdicts.
func (s *session) judged(r *provider.Retries, done provider.Retried, failed, due []told) {
	if s.verdicts == nil {
		s.verdicts = map[told]verdict{}
	}
	refused := map[int64]bool{}
	for i := range done.Refused {
		refused[done.Refused[i].EventID] = true
	}
	s.refused = append(s.refused, done.Refused...)
	judge := func(of told, activityID int64, v provider.RetryVerdict) {
		switch {
		case v == provider.RetryOver:
			s.verdicts[of] = isInput
		case refused[activityID]:
			s.verdicts[of] = isRefused
		default:
			s.verdicts[of] = isDealt
		}
	}
	for i, of := range failed {
		judge(of, r.Failed[i].ActivityID, done.Failed[i])
	}
	for i, of := range due {
		judge(of, r.Due[i].ActivityID, provider.RetryNext)
	}
}

// rejudge forgets the verdicts that hold for the view alone: what was sent was sent.
func (s *session) rejudge() {
	for of, v := range s.verdicts {
		if v != isDealt {
			delete(s.verdicts, of)
		}
	}
}

// isDone reports whether nothing of what a message tells is left for the turn.
func (s *session) isDone(m *provider.InboxMessage, index int) bool {
	return s.verdicts[told{m.Record.ID, index}] > isInput
}

// open reports whether an activity has neither ended nor been cancelled, in the session's view; ending, that it was cancelled, has not
// ended, and is waited for.
func (s *session) open(activityID int64) (open, ending bool, err error) {
	x := s.x
	if x.instance != nil {
		open, ending = x.instance.OpenActivity(activityID)
		return open, ending, nil
	}
	if x.activities == nil {
		if x.read == nil {
			return false, false, errUnverified // its code is not there to say, and history was not asked
		}
		x.activities = openActivities{}
		for i := range x.read.Segments {
			x.activities.apply(x.read.Segments[i].Events)
		}
	}
	a := x.activities[activityID]
	return a.open, a.waits && !a.open, nil
}

// openActivities are those that a history has scheduled and not settled; what is parked settles, too. One that is waited for when it is
// cancelled stays among them, no longer open, until it has ended.
type openActivities map[int64]openActivity

type openActivity struct{ open, waits bool }

// apply takes over what events say; nil takes nothing.
func (a openActivities) apply(events []history.Event) {
	if a == nil {
		return
	}
	for i := range events {
		e := &events[i]
		if e.Kind == history.ActivityScheduled {
			a[e.ID] = openActivity{open: true, waits: e.Waits()}
		}
		a.settle(e)
		for k := range e.Inputs {
			a.settle(&e.Inputs[k])
		}
	}
}

func (a openActivities) settle(e *history.Event) {
	for _, id := range e.Settles() {
		if e.Kind == history.ActivityCancelRequested && a[id].waits {
			a[id] = openActivity{waits: true}
		} else {
			delete(a, id)
		}
	}
}

// skip passes the first messages that are done with, where no code can take a turn: nothing of them is to be parked.
func (s *session) skip() (skipped bool, err error) {
	n := 0
	for n < len(s.taken()) && s.isWhollyDone(&s.rest[n]) {
		n++
	}
	if n == 0 {
		return false, nil
	}
	if !s.x.verified {
		return false, errUnverified
	}
	s.rest = s.rest[n:]
	s.settle()
	return true, nil
}

// isWhollyDone reports whether a message brought retries, and nothing else.
func (s *session) isWhollyDone(m *provider.InboxMessage) bool {
	for j := range m.Outcomes {
		if s.verdicts[told{m.Record.ID, j}] != isDealt {
			return false
		}
	}
	return len(m.Outcomes) > 0 || s.verdicts[told{m.Record.ID, 0}] == isDealt
}
