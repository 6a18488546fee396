package cdk

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsdynamodb"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsevents"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awss3"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"
)

// WorkQueue is a work queue with the function that runs its activities.
type WorkQueue struct {
	// Name is the name of the work queue in TaskHubProps.WorkQueues.
	Name        string
	Queue       awssqs.Queue
	DeadLetters awssqs.Queue
	// Exclusive is the additional FIFO queue for activities with an exclusive key, and ExclusiveDeadLetters is its
	// dead-letter queue. Both are nil unless WorkQueueProps.Exclusive is set. Worker also processes Exclusive.
	Exclusive, ExclusiveDeadLetters awssqs.Queue
	// Worker is the worker function. Its role has only the permissions for the hub. Grant it the permissions that the
	// activities of this queue need.
	Worker awslambda.Function
	// Alias is the alias that processes the queue if the hub has a Canary. It is nil otherwise.
	Alias awslambda.Alias
}

// TaskHub is a construct with all resources of a hub: the table, the queues, the functions, the API and the SSM
// parameter with its configuration. Create it with [NewTaskHub].
type TaskHub struct {
	constructs.Construct
	hubGrants
	hubMetrics

	// Table is the table of the hub. A permission to write to Table or to send to Inbox is full control of every
	// instance, because the code is replayed from the history. Use the grants for the API instead.
	Table awsdynamodb.ITable
	// Payloads is the payload store. It is nil if the hub has none. It has the removal policy of the table, and it must
	// be empty to be destroyed.
	Payloads awss3.IBucket
	// Inbox is the FIFO queue of the hub.
	Inbox awssqs.Queue
	// InboxDeadLetters has the messages that no turn could consume.
	InboxDeadLetters awssqs.Queue
	// Timers is the queue of due and delayed timers.
	Timers awssqs.Queue
	// TimersDeadLetters has the timers that could not be processed or that EventBridge Scheduler could not send.
	TimersDeadLetters awssqs.Queue
	// WorkQueues has the work queues in the order of TaskHubProps.WorkQueues.
	WorkQueues []WorkQueue

	// Orchestrator, Renewer and API are the functions of the hub besides the workers.
	Orchestrator awslambda.Function
	Renewer      awslambda.Function
	API          awslambda.Function
	// OrchestratorAlias is the alias that processes the inbox if the hub has a Canary. It is nil otherwise.
	OrchestratorAlias awslambda.Alias
	// APIURL is the URL of the HTTP API, without a trailing slash and without /v1.
	APIURL string
	// StreamURL is the URL of the API with streams, in the same format. It is empty unless TaskHubProps.StreamURL is
	// set. Polling workers renew locks only through APIURL.
	StreamURL string
	// APIDomainTarget is the target for the DNS record of HTTPAPI.Domain. It is empty without a domain.
	APIDomainTarget string
	// ConfigParameter is the name of the SSM parameter with the configuration of the hub.
	ConfigParameter string

	props    TaskHubProps
	stack    awscdk.Stack
	schedule scheduling
	api      apiResources
	watch    awsevents.Rule
	alarms   []awscloudwatch.Alarm // without conditional alarms
	builds   map[string]string     // build IDs by the construct IDs of the functions
}

// NewTaskHub adds a task hub to scope. Like other CDK constructs, it panics if the props are invalid.
func NewTaskHub(scope constructs.Construct, id string, props TaskHubProps) *TaskHub {
	props = props.withDefaults()
	if err := props.validate(); err != nil {
		panic(err)
	}
	hub := &TaskHub{
		Construct: constructs.NewConstruct(scope, jsii.String(id)),
		props:     props,
		stack:     awscdk.Stack_Of(scope),
		builds:    map[string]string{},
	}
	hub.hubGrants, hub.hubMetrics = hubGrants{hub}, hubMetrics{hub}
	hub.admitLogs()
	hub.addTable()
	addPayloads(hub)
	hub.addQueues()
	hub.addScheduling()
	environments{hub}.check()
	hub.addFunctions()
	hub.addCanaries()
	hub.addMappings()
	hub.addWatch()
	endpoints{hub}.add()
	hub.addConfig()
	hub.addAlarms()
	hub.addDashboard()
	return hub
}

// name returns the name perdure-<hub>-<part> for a resource with a fixed name.
func (h *TaskHub) name(part string) *string {
	return jsii.String(h.prefix() + "-" + part)
}

func (h *TaskHub) prefix() string {
	if h.props.NamePrefix != "" {
		return h.props.NamePrefix
	}
	return "perdure-" + h.props.HubName
}
