package provider

import (
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/oklog/ulid/v2"
)

// ExecutionStartedAt returns the creation time in an execution ID, with a resolution of a millisecond. The time is from
// the clock of the process that created the ID. ExecutionStartedAt returns the zero time if executionID is not valid.
func ExecutionStartedAt(executionID string) time.Time {
	id, err := ulid.ParseStrict(executionID)
	if err != nil {
		return time.Time{}
	}
	return ulid.Time(id.Time())
}

// NewExecutionID returns the ID of a new execution. The ID is a ULID whose entropy is derived from instanceID and
// startedBy, so that the IDs of repeated starts differ only in the time (R10).
func NewExecutionID(now time.Time, instanceID, startedBy string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d:%s%s", len(instanceID), instanceID, startedBy))
	var id ulid.ULID
	// These calls cannot fail, because the year is below 10889 and the entropy has the right length.
	_ = id.SetTime(ulid.Timestamp(now))
	_ = id.SetEntropy(sum[:10])
	return id.String()
}

// StartID returns the StartID of a start that an event of an execution requests. It is the same when the start is
// repeated (R10).
func StartID(executionID string, eventID int64) string {
	return fmt.Sprintf("%s:%d", executionID, eventID)
}
