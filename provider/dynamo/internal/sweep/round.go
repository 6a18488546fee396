package sweep

import (
	"maps"
	"time"

	"github.com/perdure/perdure/provider/dynamo/internal/instances"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

// shortestRound is the shortest time of a round through the blocked instances. It doubles with each round for the same
// build, up to an hour. An instance that was woken needs time for its turn, and must not receive a message at each
// sweep in the meantime.
const (
	shortestRound  = 10 * time.Minute
	longestRound   = time.Hour
	roundsToDouble = 3
)

// parallelBuildsWithin is the time within which two builds that report alternately count as running in parallel, as
// during a canary deployment.
const parallelBuildsWithin = time.Hour

// blockedRound is the stored position of the sweeper in the blocked instances. A round wakes all instances for one
// build. Instances that another build blocks again in the meantime are added behind the position of the round. Without
// rounds, each change of the build would wake them.
type blockedRound struct {
	Build string    `json:"build"` // the build for which the round wakes them
	Round int       `json:"round"` // the number of earlier rounds
	Next  time.Time `json:"next"`  // the start of the next round
	// At is the position in the first partition, which is the only partition of earlier releases. More holds the
	// positions in the other partitions.
	At   instances.IndexPosition   `json:"at"`
	More []instances.IndexPosition `json:"more,omitempty"`
	// Through is true if the round has reached the end of the index. Instances that were blocked later are added behind
	// it.
	Through bool `json:"through,omitempty"`
	// Returns is the number of rounds that started early because one of the parallel builds had reported again.
	Returns int `json:"returns,omitempty"`
	// Past holds the other builds of the last hour, with the times at which a sweep last found that they had reported
	// last.
	Past map[string]time.Time `json:"past,omitempty"`
	// stored is true if the mark equals the stored one.
	stored bool
}

// round returns the mark of the current or a new round. A build that reports for the first time gets a round
// immediately. If builds run in parallel, consecutive reports can be from different builds. The current round is then
// completed first, and each change that starts a round early doubles the time until the next one.
func (m blockedRound) round(build string, now time.Time) blockedRound {
	switch {
	case m.Next.IsZero() || m.Next.After(now.Add(longestRound+maxClockSkew)): // a wrong clock has set Next
		return blockedRound{Build: build, Next: now.Add(shortestRound)}
	case m.isNew(build, now):
		return m.start(build, 0, 0, now)
	case !m.Through:
		return m.noted(build, now)
	case build != m.Build && !now.Before(m.startedAt().Add(roundTime(m.Returns))):
		return m.start(build, 0, m.Returns+1, now)
	case !now.Before(m.Next):
		return m.start(build, m.Round+1, m.Returns, now)
	default:
		return m.noted(build, now)
	}
}

// isNew reports whether the build was not the latest build in any sweep of the last hour.
func (m blockedRound) isNew(build string, now time.Time) bool {
	past, was := m.Past[build]
	return build != m.Build && (!was || !isRecent(past, now))
}

// isRecent returns false for a time that a wrong clock has set far ahead.
func isRecent(past, now time.Time) bool { return now.Sub(past).Abs() <= parallelBuildsWithin }

// noted adds a build, other than the build of the round, that reported last to the mark.
func (m blockedRound) noted(build string, now time.Time) blockedRound {
	if build == m.Build {
		return m
	}
	m.Past, m.stored = m.pastWith(build, now), false
	return m
}

func (m blockedRound) start(build string, round, returns int, now time.Time) blockedRound {
	next := blockedRound{
		Build:   build,
		Round:   round,
		Returns: min(returns, roundsToDouble),
		Next:    now.Add(roundTime(round)),
		Past:    m.pastWith(m.Build, now),
	}
	delete(next.Past, build)
	return next
}

// pastWith returns Past with another build, and without old entries.
func (m blockedRound) pastWith(build string, now time.Time) map[string]time.Time {
	past := map[string]time.Time{}
	maps.Copy(past, m.Past)
	past[build] = now
	maps.DeleteFunc(past, func(_ string, at time.Time) bool { return !isRecent(at, now) })
	return past
}

func (m blockedRound) position(partition int) instances.IndexPosition {
	return positionIn(m.At, m.More, partition)
}

// passed returns the mark after the round has reached a position in a partition.
func (m blockedRound) passed(partition int, at instances.IndexPosition) blockedRound {
	m.At, m.More = withPosition(m.At, m.More, partition, at)
	return m
}

// positionIn returns the position in a partition. first is the position in the first partition, and more are those in
// the others.
func positionIn(first instances.IndexPosition, more []instances.IndexPosition, partition int) instances.IndexPosition {
	switch {
	case partition == 0:
		return first
	case partition <= len(more):
		return more[partition-1]
	default:
		return instances.IndexPosition{}
	}
}

// withPosition returns first and more with another position in a partition. It does not change the slice more.
func withPosition(
	first instances.IndexPosition, more []instances.IndexPosition, partition int, at instances.IndexPosition,
) (newFirst instances.IndexPosition, newMore []instances.IndexPosition) {
	if partition == 0 {
		return at, more
	}
	changed := make([]instances.IndexPosition, table.Shards-1)
	copy(changed, more)
	changed[partition-1] = at
	return first, changed
}

func (m blockedRound) startedAt() time.Time { return m.Next.Add(-roundTime(m.Round)) }

// roundTime returns the length of the round after n others.
func roundTime(n int) time.Duration { return min(shortestRound<<min(n, roundsToDouble), longestRound) }
