package dynamo

import (
	"maps"
	"time"
)

// blockedRound is the shortest time of a round through the blocked instances; it doubles with each round for the same build, up to an hour. An
// instance that was woken needs time for its turn, and must not receive a message at each look meanwhile.
const (
	blockedRound   = 10 * time.Minute
	longestRound   = time.Hour
	roundsToDouble = 3
)

// besideOneAnother: builds that take turns as the last to report within this time run beside one another, as while a canary is shifted.
const besideOneAnother = time.Hour

// blockedMark is how far the watch has come with the blocked instances. A round is for one build from its beginning to its end: what another
// build blocks anew meanwhile comes behind the place that the round has reached, and would be woken at each change.
type blockedMark struct {
	Build string    `json:"build"` // the build for which they are woken
	Round int       `json:"round"` // the number of rounds before this one
	Next  time.Time `json:"next"`  // when the next round begins
	// At is the place in the first partition, the only one of earlier releases, and More those in the others.
	At   place   `json:"at"`
	More []place `json:"more,omitempty"`
	// Through: the round has come to the end of the index. What was blocked since comes behind.
	Through bool `json:"through,omitempty"`
	// Returns counts the rounds that began early, since one of the builds beside one another had reported again.
	Returns int `json:"returns,omitempty"`
	// Past is when other builds were the last to report, or the watch looked for them.
	Past map[string]time.Time `json:"past,omitempty"`
	// stored: this is how it is stored.
	stored bool
}

// round returns the mark for a look: this round's, or the first of a new round. A build that comes anew has a round at once. Of builds that
// are beside one another each report may be of another one than the last: then a round comes to its end first, and each change that begins one
// early makes the next wait twice as long.
func (m blockedMark) round(build string, now time.Time) blockedMark {
	switch {
	case m.Next.IsZero() || m.Next.After(now.Add(longestRound+aheadBy)): // the latter: set by a clock that was wrong
		return blockedMark{Build: build, Next: now.Add(blockedRound)}
	case m.isNew(build, now):
		return m.begin(build, 0, 0, now)
	case !m.Through:
		return m.noted(build, now)
	case build != m.Build && !now.Before(m.began().Add(roundTime(m.Returns))):
		return m.begin(build, 0, m.Returns+1, now)
	case !now.Before(m.Next):
		return m.begin(build, m.Round+1, m.Returns, now)
	default:
		return m.noted(build, now)
	}
}

// isNew reports whether a build was not the last to report, at any look of the last hour.
func (m blockedMark) isNew(build string, now time.Time) bool {
	past, was := m.Past[build]
	return build != m.Build && (!was || !isRecent(past, now))
}

// isRecent holds for no time that a wrong clock has set far ahead.
func isRecent(past, now time.Time) bool { return now.Sub(past).Abs() <= besideOneAnother }

// noted is the mark with a build that was the last to report, beside the one that the round is for.
func (m blockedMark) noted(build string, now time.Time) blockedMark {
	if build == m.Build {
		return m
	}
	m.Past, m.stored = m.pastWith(build, now), false
	return m
}

func (m blockedMark) begin(build string, round, returns int, now time.Time) blockedMark {
	next := blockedMark{Build: build, Round: round, Returns: min(returns, roundsToDouble), Next: now.Add(roundTime(round)), Past: m.pastWith(m.Build, now)}
	delete(next.Past, build)
	return next
}

// pastWith is Past with one build more, and without those of long ago.
func (m blockedMark) pastWith(build string, now time.Time) map[string]time.Time {
	past := map[string]time.Time{}
	maps.Copy(past, m.Past)
	past[build] = now
	maps.DeleteFunc(past, func(_ string, at time.Time) bool { return !isRecent(at, now) })
	return past
}

// place returns up to where the round has come in a partition.
func (m blockedMark) place(partition int) place {
	switch {
	case partition == 0:
		return m.At
	case partition <= len(m.More):
		return m.More[partition-1]
	default:
		return place{}
	}
}

// pass is the mark where the round has come up to a place in a partition.
func (m blockedMark) pass(partition int, at place) blockedMark {
	if partition == 0 {
		m.At = at
		return m
	}
	more := make([]place, shards-1)
	copy(more, m.More)
	more[partition-1] = at
	m.More = more
	return m
}

// began is when the round did.
func (m blockedMark) began() time.Time { return m.Next.Add(-roundTime(m.Round)) }

// roundTime is how long the round after n others takes.
func roundTime(n int) time.Duration { return min(blockedRound<<min(n, roundsToDouble), longestRound) }
