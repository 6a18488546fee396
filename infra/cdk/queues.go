package cdk

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
	"github.com/aws/jsii-runtime-go"
)

const (
	// maxAttempts is the functions' own limit (R13).
	maxAttempts = 10
	// maxReceiveCount is far above the functions' own attempt limit: they
	// record a poison message before SQS moves it away unseen (R13), and a
	// throttled mapping raises receive counts without any code having run.
	maxReceiveCount = 100
	// retentionDays is SQS's limit, for queues and dead-letter queues alike (R19).
	retentionDays = 14
	// maxMessageBytes is what SQS permits at most, and perdure sends. New queues have it by default; those that were made
	// before August 2025 have 256 KiB (https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SetQueueAttributes.html).
	maxMessageBytes = 1 << 20
	// renewerTimeoutSeconds is also the timers queue's visibility.
	renewerTimeoutSeconds = 60

	deadLettersInbox  = "inbox"
	deadLettersTimers = "timers"
)

func (h *TaskHub) addQueues() {
	queues := queueMaker{h}
	h.Inbox, h.InboxDeadLetters = queues.add("Inbox", "inbox", h.props.InboxVisibility, true)
	renewerTimeout := awscdk.Duration_Seconds(jsii.Number(renewerTimeoutSeconds))
	h.Timers, h.TimersDeadLetters = queues.add("Timers", "timers", renewerTimeout, false)
	for _, name := range h.props.WorkQueues {
		queue, deadLetters := queues.add("Work-"+name, "work-"+name, h.queueProps(name).Timeout, false)
		work := WorkQueue{Name: name, Queue: queue, DeadLetters: deadLetters}
		if h.queueProps(name).Exclusive {
			work.Exclusive, work.ExclusiveDeadLetters = queues.add("Exclusive-"+name, "work-"+name, h.queueProps(name).Timeout, true)
		}
		h.WorkQueues = append(h.WorkQueues, work)
	}
}

// exclusiveSuffix is what perdure calls the queue for exclusive keys beside a work queue: a format that outlives a release.
const exclusiveSuffix = ".fifo"

// servedQueues are the work queues, each with the one for exclusive keys beside it, where it has that, as a work queue of its own.
func (h *TaskHub) servedQueues() (all []WorkQueue) {
	for _, work := range h.WorkQueues {
		all = append(all, work)
		if work.Exclusive != nil {
			beside := work
			beside.Name, beside.Queue, beside.DeadLetters = work.Name+exclusiveSuffix, work.Exclusive, work.ExclusiveDeadLetters
			all = append(all, beside)
		}
	}
	return all
}

// queueMaker makes the queues of a hub.
type queueMaker struct{ *TaskHub }

// add makes a queue with a dead-letter queue of its own and of its kind.
func (h queueMaker) add(id, part string, visibility awscdk.Duration, fifo bool) (queue, deadLetters awssqs.Queue) {
	deadLetters = awssqs.NewQueue(h.Construct, jsii.String(id+"DeadLetters"), h.propsOf(part+"-dead-letters", fifo))
	props := h.propsOf(part, fifo)
	props.VisibilityTimeout = visibility
	props.DeadLetterQueue = &awssqs.DeadLetterQueue{Queue: deadLetters, MaxReceiveCount: jsii.Number(maxReceiveCount)}
	return awssqs.NewQueue(h.Construct, jsii.String(id), props), deadLetters
}

func (h queueMaker) propsOf(part string, fifo bool) *awssqs.QueueProps {
	props := &awssqs.QueueProps{
		RetentionPeriod:     awscdk.Duration_Days(jsii.Number(retentionDays)),
		MaxMessageSizeBytes: jsii.Number(maxMessageBytes),
		Encryption:          awssqs.QueueEncryption_SQS_MANAGED,
		EnforceSSL:          jsii.Bool(true),
		RemovalPolicy:       h.props.QueueRemovalPolicy,
	}
	if h.props.EncryptionKey != nil {
		props.Encryption, props.EncryptionMasterKey = awssqs.QueueEncryption_KMS, h.props.EncryptionKey
	}
	if fifo {
		props.Fifo = jsii.Bool(true)
		// High throughput needs both; a limit by message group without a
		// deduplication scope of the same is refused.
		props.DeduplicationScope = awssqs.DeduplicationScope_MESSAGE_GROUP
		props.FifoThroughputLimit = awssqs.FifoThroughputLimit_PER_MESSAGE_GROUP_ID
		part += ".fifo"
	}
	props.QueueName = h.givenName(part)
	return props
}

// deadLetters lists every dead-letter queue under the name that
// PERDURE_DEAD_LETTERS gives it, in the order of the props.
func (h *TaskHub) deadLetters() []namedQueue {
	all := []namedQueue{{deadLettersInbox, h.InboxDeadLetters}, {deadLettersTimers, h.TimersDeadLetters}}
	for _, work := range h.servedQueues() {
		all = append(all, namedQueue{work.Name, work.DeadLetters})
	}
	return all
}

func (h *TaskHub) workQueues() []namedQueue {
	var all []namedQueue
	for _, work := range h.servedQueues() {
		all = append(all, namedQueue{work.Name, work.Queue})
	}
	return all
}

type namedQueue struct {
	name  string
	queue awssqs.Queue
}

// queueURLs is the JSON object of names to URLs. The order is the slice's, so
// that a template is the same each time it is synthesised.
func queueURLs(queues []namedQueue) string {
	fields := make([]jsonField, 0, len(queues))
	for _, q := range queues {
		fields = append(fields, jsonField{q.name, quoted(*q.queue.QueueUrl())})
	}
	return jsonObject(fields)
}
