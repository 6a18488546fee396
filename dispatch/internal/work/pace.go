package work

import (
	"slices"
	"time"

	"github.com/perdure/perdure/dispatch/internal/intake"
	"github.com/perdure/perdure/provider"
)

const (
	// strongEvery is how often a poll is strongly consistent: what bounds how late a cancel is seen, whatever lags. It is also how often an
	// execution is polled where polls fail, or are too many for their interval.
	strongEvery = time.Second
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
	failing bool
}

// newPace is that of an execution whose cancel record was read, strongly consistent, just before an activity began at now.
func newPace(now time.Time) pace { return pace{strong: now.Add(strongEvery)} }

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

// begin has a poll begin at now, one of so many executions.
func (p *pace) begin(now time.Time, executions int) provider.Consistency {
	p.began = now
	p.next = now.Add(p.interval(executions))
	if p.strong.After(now.Add(p.every / 10)) {
		return provider.Eventual
	}
	p.strong = now.Add(strongEvery)
	return provider.Strong
}

// end takes what became of a poll, and reports that it is the first to fail. Behind a failure there is no hurry: more reads would be throttled, too.
func (p *pace) end(err error) (firstFailure bool) {
	firstFailure = err != nil && !p.failing
	if p.failing = err != nil; p.failing {
		p.next = p.began.Add(max(p.every, strongEvery))
	}
	return firstFailure
}

// instead has a renewal, which reads strongly consistent, be the poll that is next.
func (p *pace) instead(now time.Time, executions int) {
	p.next = now.Add(p.interval(executions))
	p.strong = now.Add(strongEvery)
}

// soon has a poll begin at once that misses nothing.
func (p *pace) soon(now time.Time) { p.next, p.strong = now, time.Time{} }

// interval is how long the next poll is away, of so many executions that are polled.
func (p *pace) interval(executions int) time.Duration {
	crowded := p.every * time.Duration(executions) / mostHasty
	return max(p.every, min(crowded, strongEvery))
}
