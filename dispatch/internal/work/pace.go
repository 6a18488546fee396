package work

import (
	"slices"
	"time"

	"github.com/perdure/perdure/dispatch/internal/intake"
	"github.com/perdure/perdure/provider"
)

const (
	// strongEvery is how often a poll is strongly consistent: what bounds how late a cancel is seen, whatever lags, fails or hangs of the others. It
	// is also how often an execution is polled where those fail, or where polls are too many for their interval.
	strongEvery = time.Second
	// leastLimit is how long an eventually consistent poll may take at the least: it ends when a strongly consistent one is due, and for a short
	// interval that would be sooner than a call may well take.
	leastLimit = 250 * time.Millisecond
	// mostLimit is how long a strongly consistent poll may take where the one before has taken strongEvery: else, of a process that has a hundredth of a
	// processor, none would ever answer.
	mostLimit = 5 * time.Second
	// mostHasty is how many executions a process polls as often as they ask. Of more each is polled less often, down to once in strongEvery, so
	// that a process of a thousand reads no more than it did when that was the interval of all.
	mostHasty = 50
)

// pace is when the cancel record of an execution is read next, and how.
type pace struct {
	every   time.Duration // what the most impatient of its activities asks for; 0: none has
	asked   []asked
	next    time.Time
	strong  time.Time // when a poll must be strongly consistent
	began   time.Time // the last poll
	failing bool      // the last strongly consistent poll has failed
	slow    bool      // it has taken strongEvery or longer
}

// reading is how a poll reads: how consistent, and for how long at the most.
type reading struct {
	consistency provider.Consistency
	limit       time.Duration
}

// begins is for an execution whose cancel record was read, strongly consistent, just before an activity began at now.
func (p *pace) begins(now time.Time) { p.strong = now.Add(strongEvery) }

// asked is how many of the activities that run ask for an interval.
type asked struct {
	every      time.Duration
	activities int
}

// ask has it polled every so often for an activity, from now on.
func (p *pace) ask(every time.Duration, now time.Time) {
	if i := slices.IndexFunc(p.asked, func(a asked) bool { return a.every == every }); i >= 0 {
		p.asked[i].activities++
	} else {
		p.asked = append(p.asked, asked{every, 1})
	}
	if p.every == 0 || every < p.every {
		p.every = every
		p.next = intake.Earlier(p.next, now.Add(every))
	}
}

// leave has what an activity has asked for count no more.
func (p *pace) leave(every time.Duration) {
	p.asked = slices.DeleteFunc(p.asked, func(a asked) bool { return a.every == every && a.activities == 1 })
	p.every = 0
	for i := range p.asked {
		a := &p.asked[i]
		if a.every == every {
			a.activities--
		}
		if p.every == 0 || a.every < p.every {
			p.every = a.every
		}
	}
}

// isDue reports that a poll is due, or so soon that it needs no look of its own.
func (p *pace) isDue(now time.Time) bool { return !p.next.After(now.Add(p.every / 10)) }

// begin has a poll begin at now, one of so many executions. It is strongly consistent if the next would be too late for that.
func (p *pace) begin(now time.Time, executions int) reading {
	p.began = now
	p.next = now.Add(p.interval(executions))
	if !p.strong.Before(p.next.Add(-p.every / 10)) {
		return reading{provider.Eventual, max(p.strong.Sub(now), leastLimit)}
	}
	p.strong = now.Add(strongEvery)
	if p.slow {
		return reading{provider.Strong, mostLimit}
	}
	return reading{provider.Strong, min(max(p.every, strongEvery), mostLimit)}
}

// end takes what became of a poll, and reports that it is the first to fail that nothing makes up for. Behind a failure there is no hurry, more reads
// would be throttled, too: the next is the strongly consistent one, which comes when it would have come.
func (p *pace) end(c provider.Consistency, err error, now time.Time) (firstFailure bool) {
	if c == provider.Eventual {
		if err != nil && p.next.Before(p.strong) {
			p.next = p.strong
		}
		return false
	}
	firstFailure = err != nil && !p.failing
	p.slow = now.Sub(p.began) >= strongEvery
	if p.failing = err != nil; p.failing {
		p.next = p.began.Add(max(p.every, strongEvery))
	}
	return firstFailure
}

// instead has a renewal, which reads strongly consistent, be the poll that is next.
func (p *pace) instead(now time.Time, executions int) { p.next = now.Add(p.interval(executions)) }

// answered takes the answer of a renewal that was asked at a time. Until then it has missed nothing.
func (p *pace) answered(asked time.Time) {
	if at := asked.Add(strongEvery); at.After(p.strong) {
		p.strong = at
	}
}

// soon has a poll begin at once that misses nothing.
func (p *pace) soon(now time.Time) { p.next, p.strong = now, time.Time{} }

// interval is how long the next poll is away, of so many executions that are polled.
func (p *pace) interval(executions int) time.Duration {
	crowded := p.every * time.Duration(executions) / mostHasty
	return max(p.every, min(crowded, strongEvery))
}
