// Package dynamoknobs holds the settings of provider/dynamo that are no public options: the times of long timers and the length
// of rollups, which tests make short, directly or through the environment of a function.
package dynamoknobs

import (
	"log/slog"
	"time"
)

// The times of long timers, unless they are set.
const (
	// LongestDelay is SQS's quota.
	LongestDelay = 15 * time.Minute
	// ScheduleLead is enough for a Scheduler that is a minute late and a queue that takes as long.
	ScheduleLead = 2 * time.Minute
	// Rollup makes a rollup a few KB: what one read of a page of a hundred costs is no more than reading it as it is.
	Rollup = 64
)

// Settings are what a dynamo.Option sets.
type Settings struct {
	Now func() time.Time
	Log *slog.Logger
	// LongestDelay is how long a timer is delayed by a queue at most.
	LongestDelay time.Duration
	// ScheduleLead is how long before its timer is due a schedule fires.
	ScheduleLead time.Duration
	// Rollup is how many segments a rollup holds at least, and RollupAnyhow that it is written however little is saved.
	Rollup       int64
	RollupAnyhow bool
}

// WithLongestDelay is a dynamo.Option: from 1 s to LongestDelay, the default.
func WithLongestDelay(d time.Duration) func(*Settings) {
	return func(s *Settings) { s.LongestDelay = d }
}

// WithScheduleLead is a dynamo.Option: from 0 to a second less than the longest delay. The default is ScheduleLead.
func WithScheduleLead(d time.Duration) func(*Settings) {
	return func(s *Settings) { s.ScheduleLead = d }
}

// WithRollup is a dynamo.Option: from 1; 0 is that nothing is rolled up. The default is Rollup, where it is worth its price.
func WithRollup(segments int64) func(*Settings) {
	return func(s *Settings) { s.Rollup, s.RollupAnyhow = segments, segments < Rollup }
}
