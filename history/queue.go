package history

import "strings"

// exclusiveSuffix is what the name of an ExclusiveQueue ends with, and of no other work queue: as SQS has the names of FIFO
// queues end.
const exclusiveSuffix = ".fifo"

// ExclusiveQueue returns the work queue beside another that takes the activities with an exclusive key: a FIFO queue, whose
// workers are those of the other.
func ExclusiveQueue(queue string) string { return queue + exclusiveSuffix }

// OfExclusiveQueue returns the work queue that an ExclusiveQueue is beside; ok is false for any other queue.
func OfExclusiveQueue(queue string) (beside string, ok bool) {
	return strings.CutSuffix(queue, exclusiveSuffix)
}
