package instances

import (
	"time"

	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

// Due dates are stored as days in UTC. Retention needs no finer resolution, and even months have few enough days to
// search all of them.
const (
	Day       = 24 * time.Hour
	DayFormat = "2006-01-02"
)

// DueKey returns the key in the due index: the first day that does not start before the given time.
func DueKey(instanceID string, at time.Time) string {
	at = at.UTC()
	whole := at.Truncate(Day)
	if whole.Before(at) {
		whole = whole.Add(Day)
	}
	return whole.Format(DayFormat) + "#" + table.ShardOf(instanceID)
}

// IsDue reports whether a key of the index is of today or of an earlier day.
func IsDue(key string, now time.Time) bool {
	return len(key) > len(DayFormat) && key[:len(DayFormat)] <= now.UTC().Format(DayFormat)
}

// PastRetention returns the retention of past executions, for an instance with the given retention. A message that
// their turns consumed can be redelivered, or recovered from a dead-letter queue, and the history then determines the
// outputs to send again (R4, R13). A past execution is therefore not erased while a queue may hold such a message. An
// instance that has ended has sent all outputs (R9), and needs no such time.
func PastRetention(retention time.Duration) time.Duration {
	return max(retention, table.TombstoneLifetime)
}
