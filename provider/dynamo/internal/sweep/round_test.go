package sweep

import (
	"testing"
	"time"

	"github.com/perdure/perdure/provider/dynamo/internal/instances"
)

// sweeps simulates runs of the sweeper that find blocked instances. Each run uses the build that has reported last.
type sweeps struct {
	t    *testing.T
	mark blockedRound
	now  time.Time
}

func newSweeps(t *testing.T) *sweeps {
	t.Helper()
	return &sweeps{t: t, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
}

// look simulates a run after some time, and reports whether the run begins a round. The run completes the round unless
// cut is true.
func (l *sweeps) look(after time.Duration, build string, cut bool) (begins bool) {
	l.now = l.now.Add(after)
	before := l.mark
	l.mark = l.mark.round(build, l.now)
	begins = l.mark.At == instances.IndexPosition{}
	if !begins && !l.mark.Next.Equal(before.Next) {
		l.t.Errorf("the end of the current round changed: %+v, %+v", before, l.mark)
	}
	l.mark.Through = l.mark.Through || !cut
	l.mark.At = instances.IndexPosition{Key: "somewhere"}
	return begins
}

func (l *sweeps) want(after time.Duration, build string, begins bool) {
	l.t.Helper()
	if got := l.look(after, build, false); got != begins {
		l.t.Errorf("%v later, latest build %s: begins a round %v, want %v; %+v", after, build, got, begins, l.mark)
	}
}

func TestBlockedRound_newBuild_beginsImmediately(t *testing.T) {
	t.Parallel()
	l := newSweeps(t)
	l.want(0, "a", true)
	l.want(2*time.Minute, "a", false)
	l.look(0, "b", true)
	l.want(2*time.Minute, "c", true) // during a round
	if l.mark.Build != "c" {
		t.Errorf("round for build %s, want c", l.mark.Build)
	}
}

func TestBlockedRound_rolledBackBuild_beginsTenMinutesAfterTheLastRound(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ after, waits time.Duration }{
		"at once":              {2 * time.Minute, 8 * time.Minute},
		"after a while":        {9 * time.Minute, time.Minute},
		"after a round":        {21 * time.Minute, 0},
		"after rounds of both": {45 * time.Minute, 0},
		"an hour after":        {3 * time.Hour, 0},
	} {
		l := newSweeps(t)
		l.look(0, "a", false)
		l.look(time.Hour, "b", false)
		last := l.now
		for end := l.now.Add(c.after); l.now.Add(time.Minute).Before(end); {
			if l.look(time.Minute, "b", false) {
				last = l.now
			}
		}
		from := l.now.Add(time.Minute)
		for !l.look(time.Minute, "a", false) {
		}
		if waited := l.now.Sub(from); waited > c.waits || l.now.Sub(last) < shortestRound || l.mark.Build != "a" {
			t.Errorf("%s: waited %v, want at most %v; %v after the previous round",
				name, waited, c.waits, l.now.Sub(last))
		}
	}
}

func TestBlockedRound_alternatingBuilds_beginsAtMostTwiceAnHour(t *testing.T) {
	t.Parallel()
	l := newSweeps(t)
	builds := []string{"a", "b", "c"}
	rounds := 0
	for n := range 24 * 30 {
		if l.look(2*time.Minute, builds[n%len(builds)], false) {
			rounds++
		}
	}
	if rounds < 24 || rounds > 50 || len(l.mark.Past) > len(builds) {
		t.Errorf("%d rounds in a day; %+v", rounds, l.mark)
	}
	l.want(2*time.Hour, "b", true)
	l.want(shortestRound, "a", true)
	l.want(shortestRound, "new", true)
	if l.mark.Returns != 0 || l.mark.Round != 0 {
		t.Errorf("the round of a new build is delayed: %+v", l.mark)
	}
}

func TestBlockedRound_buildsAlternateDuringARound_isCompletedFirst(t *testing.T) {
	t.Parallel()
	l := newSweeps(t)
	l.look(0, "a", false)
	l.look(2*time.Minute, "b", true)
	for n := range 60 {
		if l.look(2*time.Minute, []string{"a", "b"}[n%2], true) || l.mark.At == (instances.IndexPosition{}) {
			t.Fatalf("a round began before the end of the previous round: %+v", l.mark)
		}
	}
	l.look(2*time.Minute, "b", false)
	l.want(2*time.Minute, "a", true)
	if l.mark.At != (instances.IndexPosition{Key: "somewhere"}) || l.mark.Build != "a" {
		t.Errorf("%+v", l.mark)
	}
}

// The marks are from a clock that was far ahead, and from an earlier release.
func TestBlockedRound_invalidMark_beginsANewRound(t *testing.T) {
	t.Parallel()
	l := newSweeps(t)
	ahead := l.now.Add(24 * time.Hour)
	l.mark = blockedRound{Build: "a", Next: ahead, Through: true}
	l.want(0, "a", true)
	l.mark = blockedRound{
		Build: "a", Next: l.now.Add(time.Minute), Through: true, Past: map[string]time.Time{"b": ahead},
	}
	l.want(0, "b", true)
	// the mark does not record that the round was completed
	l.mark = blockedRound{Build: "a", Next: l.now.Add(-time.Minute), At: instances.IndexPosition{Key: "there"}}
	l.want(0, "a", false)
	l.want(2*time.Minute, "a", true)
}
