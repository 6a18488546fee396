package provider

import (
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/oklog/ulid/v2"
)

// BegunAt returns when an execution began, as its id says: to the millisecond, by the clock of the process that named
// it. It returns the zero time for a text that is not an execution id.
func BegunAt(executionID string) time.Time {
	id, err := ulid.ParseStrict(executionID)
	if err != nil {
		return time.Time{}
	}
	return ulid.Time(id.Time())
}

// NewExecutionID names an execution: a ULID whose entropy derives from the instance and from what started the
// execution, so that two tries of one start differ in time alone (R10).
func NewExecutionID(now time.Time, instanceID, startedBy string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d:%s%s", len(instanceID), instanceID, startedBy))
	var id ulid.ULID
	// Neither fails: the year is below 10889, and the entropy has the right length.
	_ = id.SetTime(ulid.Timestamp(now))
	_ = id.SetEntropy(sum[:10])
	return id.String()
}
