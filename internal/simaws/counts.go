package simaws

import "sync/atomic"

// operation numbers the calls that are counted.
type operation int

const (
	opGetItem operation = iota
	opPutItem
	opUpdateItem
	opDeleteItem
	opQuery
	opTransactWriteItems
	opSendMessage
	opSendMessageBatch
	opReceiveMessage
	opDeleteMessage
	opDeleteMessageBatch
	opChangeMessageVisibility
	opChangeMessageVisibilityBatch
	opGetQueueAttributes
	opPurgeQueue
	opCreateSchedule
	opUpdateSchedule
	opGetSchedule
	opListSchedules
	opDeleteSchedule
	opPutObject
	opGetObject
	opCopyObject
	opDeleteObjects
	opListObjects
	opInvoke
	opMappingDelete
	operations
)

// String returns the name under which the operation is counted.
func (o operation) String() string {
	return [operations]string{
		"DynamoDB.GetItem", "DynamoDB.PutItem", "DynamoDB.UpdateItem", "DynamoDB.DeleteItem", "DynamoDB.Query",
		"DynamoDB.TransactWriteItems",
		"SQS.SendMessage", "SQS.SendMessageBatch", "SQS.ReceiveMessage", "SQS.DeleteMessage", "SQS.DeleteMessageBatch",
		"SQS.ChangeMessageVisibility", "SQS.ChangeMessageVisibilityBatch", "SQS.GetQueueAttributes", "SQS.PurgeQueue",
		"Scheduler.CreateSchedule", "Scheduler.UpdateSchedule", "Scheduler.GetSchedule", "Scheduler.ListSchedules",
		"Scheduler.DeleteSchedule",
		"S3.PutObject", "S3.GetObject", "S3.CopyObject", "S3.DeleteObjects", "S3.ListObjectsV2",
		"Lambda.Invoke", "Lambda.DeleteMessageBatch",
	}[o]
}

// usage is the total usage of the calls of a Cloud. Read capacity is counted in half units, for eventually consistent
// reads.
type usage struct {
	calls     [operations]atomic.Int64
	failures  atomic.Int64
	writes    atomic.Int64
	halfReads atomic.Int64
}

// count counts a call and returns its number.
func (c *Cloud) count(op operation) int64 {
	c.usage.calls[op].Add(1)

	return c.calls.Add(1)
}

// Counts returns the number of calls of each operation, by names such as "DynamoDB.PutItem". It omits operations that
// were not called. A batch is one call. "Lambda.Invoke" counts the batches that functions received, "Lambda.Errors" the
// batches that failed as a whole, and "Lambda.DeleteMessageBatch" the deletes of mappings.
func (c *Cloud) Counts() map[string]int64 {
	counts := map[string]int64{}

	for op := range operations {
		if n := c.usage.calls[op].Load(); n > 0 {
			counts[op.String()] = n
		}
	}

	if n := c.usage.failures.Load(); n > 0 {
		counts["Lambda.Errors"] = n
	}

	return counts
}

// Capacity is the consumed DynamoDB capacity in units. As on AWS, a write unit is 1 KB and a read unit 4 KB, rounded up
// for each item, or for each page of a Query. Transactional writes cost twice as much, even if they are cancelled.
// Eventually consistent reads cost half. Writes to secondary indexes are included.
type Capacity struct {
	Read, Write float64
}

// Capacity returns the capacity consumed since New or the last ResetCounts.
func (c *Cloud) Capacity() Capacity {
	return Capacity{Read: float64(c.usage.halfReads.Load()) / 2, Write: float64(c.usage.writes.Load())}
}

// ResetCounts sets the counts and the consumed capacity to zero. It does not reset Call.Number.
func (c *Cloud) ResetCounts() {
	for op := range operations {
		c.usage.calls[op].Store(0)
	}

	c.usage.failures.Store(0)
	c.usage.writes.Store(0)
	c.usage.halfReads.Store(0)
}
