package history

import "strings"

// exclusiveSuffix is what the name of an ExclusiveQueue ends with, and of no other work queue: as SQS has the names of FIFO
// queues end.
const exclusiveSuffix = ".fifo"

// ExclusiveQueue returns the name of the FIFO queue for activities with an exclusive key that belongs to a work queue.
// The same workers receive from both queues.
func ExclusiveQueue(queue string) string { return queue + exclusiveSuffix }

// BaseQueue returns the work queue to which an exclusive queue belongs. ok is false for other queues.
func BaseQueue(queue string) (beside string, ok bool) {
	return strings.CutSuffix(queue, exclusiveSuffix)
}
