package provider

import (
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/oklog/ulid/v2"
)

// NewExecutionID names an execution: a ULID whose entropy derives from the instance and what started the execution, so that
// two tries of one start differ in time alone (R10).
func NewExecutionID(now time.Time, instanceID, startedBy string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d:%s%s", len(instanceID), instanceID, startedBy))
	var id ulid.ULID
	// Neither fails: the year is below 10889, and the entropy has the right length.
	_ = id.SetTime(ulid.Timestamp(now))
	_ = id.SetEntropy(sum[:10])
	return id.String()
}
