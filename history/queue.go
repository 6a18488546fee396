package history

import "strings"

// exclusiveSuffix is the suffix of the name of an ExclusiveQueue, and of no other work queue. SQS requires it for the
// names of FIFO queues.
const exclusiveSuffix = ".fifo"

// ExclusiveQueue returns the name of the FIFO queue for activities with an exclusive key that belongs to a work queue.
// The same workers receive from both queues.
func ExclusiveQueue(queue string) string { return queue + exclusiveSuffix }

// BaseQueue returns the work queue to which an exclusive queue belongs. ok is false for other queues.
func BaseQueue(queue string) (beside string, ok bool) {
	return strings.CutSuffix(queue, exclusiveSuffix)
}
