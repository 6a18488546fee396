package history

import "strings"

// exclusiveSuffix is the suffix of the name of every exclusive queue. Other work queues do not have it. SQS requires
// the suffix for FIFO queues.
const exclusiveSuffix = ".fifo"

// ExclusiveQueue returns the name of a work queue's FIFO queue for activities with an exclusive key. The same workers
// receive from both queues.
func ExclusiveQueue(queue string) string { return queue + exclusiveSuffix }

// BaseQueue returns the work queue to which an exclusive queue belongs. ok is false for other queues.
func BaseQueue(queue string) (beside string, ok bool) {
	return strings.CutSuffix(queue, exclusiveSuffix)
}
