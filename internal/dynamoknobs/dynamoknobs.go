// Package dynamoknobs contains settings of provider/dynamo that are not public options: the times of long timers and
// the length of rollups. Tests shorten them, directly or through the environment of a function.
package dynamoknobs

import (
	"log/slog"
	"time"
)

// Default values of the settings.
const (
	// LongestDelay is SQS's limit for the delay of a message.
	LongestDelay = 15 * time.Minute
	// ScheduleLead allows for a schedule that fires a minute late and a queue that needs another minute.
	ScheduleLead = 2 * time.Minute
	// Rollup is the number of segments that fill an item of a few KB. A read of a hundred segments costs no more with
	// rollups than without.
	Rollup = 64
)

// Settings are the values that a dynamo.Option sets.
type Settings struct {
	Now func() time.Time
	Log *slog.Logger
	// LongestDelay is the longest time for which a queue delays a timer.
	LongestDelay time.Duration
	// ScheduleLead is the time between the firing of a schedule and the due time of its timer.
	ScheduleLead time.Duration
	// Rollup is the smallest number of segments in a rollup. AlwaysRollup writes rollups even if they save little.
	Rollup       int64
	AlwaysRollup bool
}

// WithLongestDelay is a dynamo.Option that sets Settings.LongestDelay: from 1 s to LongestDelay, the default.
func WithLongestDelay(d time.Duration) func(*Settings) {
	return func(s *Settings) { s.LongestDelay = d }
}

// WithScheduleLead is a dynamo.Option that sets Settings.ScheduleLead: from 0 to a second less than the longest delay.
// The default is ScheduleLead.
func WithScheduleLead(d time.Duration) func(*Settings) {
	return func(s *Settings) { s.ScheduleLead = d }
}

// WithRollup is a dynamo.Option that sets Settings.Rollup: 1 or more, or 0 for no rollups. The default is Rollup. A
// smaller number also sets Settings.AlwaysRollup.
func WithRollup(segments int64) func(*Settings) {
	return func(s *Settings) { s.Rollup, s.AlwaysRollup = segments, segments < Rollup }
}
