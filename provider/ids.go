package provider

import (
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/oklog/ulid/v2"
)

// ExecutionStartedAt returns the time in an execution ID, with a resolution of a millisecond, by the clock of the
// process that created the ID. It returns the zero time if the text is not an execution ID.
func ExecutionStartedAt(executionID string) time.Time {
	id, err := ulid.ParseStrict(executionID)
	if err != nil {
		return time.Time{}
	}
	return ulid.Time(id.Time())
}

// NewExecutionID returns the ID of a new execution: a ULID whose entropy derives from the instance and from startedBy,
// so that two tries of one start differ only in the time (R10).
func NewExecutionID(now time.Time, instanceID, startedBy string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d:%s%s", len(instanceID), instanceID, startedBy))
	var id ulid.ULID
	// Neither call fails: the year is below 10889, and the entropy has the right length.
	_ = id.SetTime(ulid.Timestamp(now))
	_ = id.SetEntropy(sum[:10])
	return id.String()
}

// StartID returns the StartID of the start that an event of an execution requests. It is the same for each repetition
// (R10).
func StartID(executionID string, eventID int64) string {
	return fmt.Sprintf("%s:%d", executionID, eventID)
}
