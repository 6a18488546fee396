package cdk

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
	"github.com/aws/jsii-runtime-go"

	"github.com/perdure/perdure/infra/cdk/internal/tokens"
)

const (
	// maxCrashes is the default of TaskHubProps.MaxCrashes.
	maxCrashes = 10
	// maxReceiveCount is much larger than maxCrashes, so that a function records a poison message before SQS moves it
	// to the dead-letter queue. A throttled mapping increases receive counts without running code.
	maxReceiveCount = 100
	// retentionDays is the maximum of SQS. It applies to queues and dead-letter queues.
	retentionDays = 14
	// maxMessageBytes is the maximum of SQS, and perdure sends messages of this size. It is the default of new queues.
	// Queues created before August 2025 have 256 KiB
	// (https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SetQueueAttributes.html).
	maxMessageBytes = 1 << 20
	// renewerTimeoutSeconds is also the visibility timeout of the timers queue.
	renewerTimeoutSeconds = 60

	inboxName  = "inbox"
	timersName = "timers"
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
			work.Exclusive, work.ExclusiveDeadLetters = queues.add("Exclusive-"+name, "work-"+name,
				h.queueProps(name).Timeout, true)
		}
		h.WorkQueues = append(h.WorkQueues, work)
	}
}

// exclusiveSuffix is the suffix of the name of the FIFO queue for exclusive keys. It is part of a stable format.
const exclusiveSuffix = ".fifo"

// servedQueues returns the work queues and their queues for exclusive keys, each one as a work queue.
func (h *TaskHub) servedQueues() (all []WorkQueue) {
	for _, work := range h.WorkQueues {
		all = append(all, work)
		if work.Exclusive != nil {
			beside := work
			beside.Name, beside.Queue, beside.DeadLetters = work.Name+exclusiveSuffix, work.Exclusive,
				work.ExclusiveDeadLetters
			all = append(all, beside)
		}
	}
	return all
}

// queueMaker creates the queues of a hub.
type queueMaker struct{ *TaskHub }

// add creates a queue with a dead-letter queue of the same type.
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
		// High throughput requires both settings.
		props.DeduplicationScope = awssqs.DeduplicationScope_MESSAGE_GROUP
		props.FifoThroughputLimit = awssqs.FifoThroughputLimit_PER_MESSAGE_GROUP_ID
		part += ".fifo"
	}
	props.QueueName = h.givenName(part)
	return props
}

// deadLetters returns all dead-letter queues with their names in PERDURE_DEAD_LETTERS, in the order of the props.
func (h *TaskHub) deadLetters() []namedQueue {
	all := []namedQueue{{inboxName, h.InboxDeadLetters}, {timersName, h.TimersDeadLetters}}
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

// queueURLs returns a JSON object with the URLs of queues by name, in the order of the slice, so that synthesis is
// deterministic.
func queueURLs(queues []namedQueue) string {
	fields := make([]tokens.Field, 0, len(queues))
	for _, q := range queues {
		fields = append(fields, tokens.Field{q.name, tokens.Quote(*q.queue.QueueUrl())})
	}
	return tokens.Object(fields)
}
