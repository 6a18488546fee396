package cdk_test

import (
	"strings"
	"testing"
)

const (
	fourteenDays  = 14 * 24 * 60 * 60
	attemptLimit  = 10 // the limit in the functions (R13)
	mostOfABatch  = 10
	queueType     = "AWS::SQS::Queue"
	mappingType   = "AWS::Lambda::EventSourceMapping"
	deadLetterTag = "DeadLetters"
)

func TestQueues_retainMessagesForFourteenDaysEncrypted(t *testing.T) {
	t.Parallel()
	parsed := parse(t)
	for _, queue := range parsed.ofType(queueType) {
		if n := parsed.number(t, queue, "MessageRetentionPeriod"); n != fourteenDays {
			t.Errorf("%s keeps messages for %v s, want 14 days", queue.id, n)
		}
		if queue.get("SqsManagedSseEnabled") != true {
			t.Errorf("%s is not encrypted", queue.id)
		}
	}
}

// Functions send messages of up to 1 MiB, and SQS moves them to the dead-letter queues. Queues created before August
// 2025 have a limit of 256 KiB until it is changed.
func TestQueues_acceptMessagesOf1MiB(t *testing.T) {
	t.Parallel()
	parsed := parse(t)
	for _, queue := range parsed.ofType(queueType) {
		if n := parsed.number(t, queue, "MaximumMessageSize"); n != 1<<20 {
			t.Errorf("%s accepts messages of %v bytes", queue.id, n)
		}
	}
}

func TestQueues_haveDeadLetterQueueOfTheSameType(t *testing.T) {
	t.Parallel()
	parsed := parse(t)
	taken := map[string]bool{}
	for _, queue := range parsed.ofType(queueType) {
		if strings.Contains(queue.id, deadLetterTag) {
			continue
		}
		target := refOf(queue.get("RedrivePolicy", "deadLetterTargetArn"))
		if target == "" || taken[target] {
			t.Fatalf("%s has no dead-letter queue of its own: %q", queue.id, target)
		}
		taken[target] = true
		if fifo := parsed.find(t, queueType, target).get("FifoQueue"); fifo != queue.get("FifoQueue") {
			t.Errorf("%s is FIFO: %v, its dead-letter queue: %v", queue.id, queue.get("FifoQueue"), fifo)
		}
		if n, _ := queue.get("RedrivePolicy", "maxReceiveCount").(float64); n <= attemptLimit {
			t.Errorf("%s moves messages after %v receives, before the functions record them as poison", queue.id, n)
		}
	}
}

func TestFIFOQueues_haveHighThroughput(t *testing.T) {
	t.Parallel()
	fifo := 0
	for _, queue := range parse(t).ofType(queueType) {
		if queue.get("FifoQueue") != true {
			continue
		}
		fifo++
		if limit := queue.text("FifoThroughputLimit"); limit != "perMessageGroupId" {
			t.Errorf("%s: FifoThroughputLimit is %q", queue.id, limit)
		}
		// AWS rejects perMessageGroupId without messageGroup.
		if scope := queue.text("DeduplicationScope"); scope != "messageGroup" {
			t.Errorf("%s: DeduplicationScope is %q", queue.id, scope)
		}
	}
	if fifo != 4 {
		t.Errorf("%d FIFO queues, want the inbox, the queue of exclusive keys, and their dead-letter queues", fifo)
	}
}

func TestEventSourceMappings_matchTheirQueuesAndFunctions(t *testing.T) {
	t.Parallel()
	parsed := parse(t)
	mappings := parsed.ofType(mappingType)
	if len(mappings) != 4 {
		t.Fatalf("%d mappings, want inbox, timers, one work queue and its queue of exclusive keys", len(mappings))
	}
	for _, mapping := range mappings {
		t.Run(mapping.id, func(t *testing.T) {
			t.Parallel()
			checkMapping(t, parsed, mapping)
		})
	}
}

func checkMapping(t *testing.T, parsed template, mapping resource) {
	t.Helper()
	function := parsed.find(t, "AWS::Lambda::Function", refOf(mapping.get("FunctionName")))
	queue := parsed.find(t, queueType, refOf(mapping.get("EventSourceArn")))
	timeout, visibility := parsed.number(t, function, "Timeout"), parsed.number(t, queue, "VisibilityTimeout")
	if visibility < timeout {
		t.Errorf("%s: visibility %v s is below the timeout of %s, %v s", queue.id, visibility, function.id, timeout)
	}
	if n := parsed.number(t, mapping, "BatchSize"); n > mostOfABatch {
		t.Errorf("batch of %v, at most %d without a window", n, mostOfABatch)
	}
	types, _ := mapping.get("FunctionResponseTypes").([]any)
	if len(types) != 1 || types[0] != "ReportBatchItemFailures" {
		t.Errorf("FunctionResponseTypes is %v", types)
	}
	if window := mapping.get("MaximumBatchingWindowInSeconds"); window != nil {
		t.Errorf("a batching window of %v s delays every hop", window)
	}
	if mapping.get("ProvisionedPollerConfig") != nil && mapping.get("ScalingConfig") != nil {
		t.Error("provisioned mode and a maximum concurrency exclude each other")
	}
}
