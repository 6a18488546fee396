package perduretest

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/perdure/perdure/history"
)

// A Wait for what goes on and on does not end by itself. For ever and long differ in what comes of it:
//
//   - What is tried again without a result, and what continues as new with the input that it had before, goes round: nothing is known in the end that was
//     not in the beginning. That has the patience of the Env, and a number of rounds, so that a slow machine is no reason.
//   - What goes on recording, a timer each hour or a count that grows, may be long, and nobody can tell. It has a hundred years of virtual time, and half of
//     what go test has left when the wait begins: where the whole binary would end, a test that fails is better, and the next ones run.
//
// docs/decisions/0012-test-kit.md says why.

const (
	// fewestRounds is how often the clock moves at least, without anything new, before a wait gives up.
	fewestRounds = 1000
	// longestVirtual is how much virtual time a wait may take.
	longestVirtual = 100 * 365 * 24 * time.Hour
)

// vigil is a wait that goes on, and is looked at now and then.
type vigil struct {
	env     *Env
	began   time.Time     // in real time
	virtual int64         // when it began in virtual time, in nanoseconds since 1970
	most    time.Duration // how long it may take in real time; 0: there is no end

	from   map[string]course // how far instances were at the first look
	before map[string]course // and at the last
	ran    []attempt         // what activities were running then
	looked time.Time
	since  time.Time // when something new was found last
	moves  int       // of the clock since then
}

// attempt is one run of an activity's code.
type attempt struct {
	instanceID string
	activityID int64
	at         time.Duration
}

func newVigil(e *Env) *vigil {
	now := time.Now()
	return &vigil{env: e, began: now, virtual: e.clock.reached.Load(), most: e.watch.share(), looked: now, since: now}
}

// share is half of what go test has left: how long one call may take. It is 0 where go test has no end.
func (w *watch) share() time.Duration {
	end, some := w.env.t.Deadline()
	if !some {
		return 0
	}
	return max(time.Until(end)/2, time.Millisecond)
}

// forEver returns why a wait will not end, after each move of the clock. It is empty while it may.
func (v *vigil) forEver(ctx context.Context) string {
	v.moves++
	if years := time.Duration(v.env.clock.reached.Load() - v.virtual); years > longestVirtual {
		return "is still active after " + v.passed()
	}
	now := time.Now()
	if v.most > 0 && now.Sub(v.began) > v.most {
		return fmt.Sprintf("is still active after %s, half of the remaining -timeout of go test", v.passed())
	}
	if now.Sub(v.looked) < v.env.watch.patience/looks {
		return ""
	}
	v.looked = now
	if v.isNew(ctx) {
		v.since, v.moves = now, 0
	}
	if now.Sub(v.since) >= v.env.watch.patience && v.moves >= fewestRounds {
		return "is in an endless loop: no progress after " + v.passed()
	}
	return ""
}

// passed is how long it has taken.
func (v *vigil) passed() string {
	virtual := time.Duration(v.env.clock.reached.Load() - v.virtual)
	return fmt.Sprintf("%v and %s of virtual time", time.Since(v.began).Round(time.Second), days(virtual))
}

// days is a time that may be years.
func days(d time.Duration) string {
	const day = 24 * time.Hour
	if d < 3*day {
		return d.Round(time.Second).String()
	}
	return fmt.Sprintf("%d days", d/day)
}

// isNew reports whether anything has come since the last look: a turn of any instance, but where it goes round. What AfterFunc has planned will come, and an attempt of an
// activity that has gone on since then is not going round: whether it will end is hasStalled's to say. The first look finds nothing: it has none to compare with.
func (v *vigil) isNew(ctx context.Context) bool {
	before, ran, first := v.before, v.ran, v.before == nil
	v.before, v.ran = v.env.progress.now(), v.attempts()
	if first {
		v.from = v.before
		return false
	}
	if _, planned := v.env.agenda.next(); planned {
		return true
	}
	if slices.ContainsFunc(v.ran, func(a attempt) bool { return slices.Contains(ran, a) }) {
		return true
	}
	for id, c := range v.before {
		was, known := before[id]
		if !known || c.turns != was.turns && !v.sameInput(ctx, id, was, c) {
			return true
		}
	}
	return false
}

// attempts are the runs of activities that go on now.
func (v *vigil) attempts() (all []attempt) {
	for _, c := range v.env.log.running() {
		all = append(all, attempt{c.InstanceID, c.ActivityID, c.StartedAt})
	}
	return all
}

// sameInput reports whether an instance has continued as new, and has the input again that it had.
func (v *vigil) sameInput(ctx context.Context, instanceID string, was, is course) (same bool) {
	if was.executionID == is.executionID {
		return false
	}
	v.env.do(func() {
		one, ok := v.inputOf(ctx, instanceID, was.executionID)
		other, okToo := v.inputOf(ctx, instanceID, is.executionID)
		same = ok && okToo && bytes.Equal(one, other)
	})
	return same
}

// inputOf is what an execution began with. It is called in the bubble.
func (v *vigil) inputOf(ctx context.Context, instanceID, executionID string) (in history.Payload, ok bool) {
	for ev, err := range v.env.hub.Provider.ReadHistory(context.WithoutCancel(ctx), instanceID, executionID, 0) {
		return ev.Input, err == nil
	}
	return in, false
}
