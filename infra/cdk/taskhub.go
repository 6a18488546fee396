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

// WorkQueue is one named work queue with the function that runs its activities.
type WorkQueue struct {
	Name        string
	Queue       awssqs.Queue
	DeadLetters awssqs.Queue
	// Exclusive is the FIFO queue beside Queue that WorkQueueProps.Exclusive asks for, and ExclusiveDeadLetters are its
	// dead letters; nil without. Worker serves it too.
	Exclusive, ExclusiveDeadLetters awssqs.Queue
	// Worker is granted nothing but the hub: give its role what the activities
	// of this queue need.
	Worker awslambda.Function
	// Alias is what the queue is mapped to where the hub has a Canary; nil without.
	Alias awslambda.Alias
}

// TaskHub is everything a hub consists of: the table, the queues, the functions
// and how a hub is found. Its resources are open to the stack that contains it.
type TaskHub struct {
	constructs.Construct
	hubGrants
	hubMetrics

	// Table is the hub's. A right to write to it, or to send to Inbox, is full control of
	// every instance: history is what the code is replayed from. Grants go through the API.
	Table awsdynamodb.ITable
	// Payloads holds what is too large for the table; nil where the hub has no bucket. It goes as the
	// table does when the stack is deleted, and must be empty to be destroyed.
	Payloads awss3.IBucket
	Inbox    awssqs.Queue
	// InboxDeadLetters takes what no turn could consume.
	InboxDeadLetters awssqs.Queue
	Timers           awssqs.Queue
	// TimersDeadLetters is also where EventBridge Scheduler puts what it could not send.
	TimersDeadLetters awssqs.Queue
	WorkQueues        []WorkQueue

	Orchestrator awslambda.Function
	Renewer      awslambda.Function
	API          awslambda.Function
	// OrchestratorAlias is what the inbox is mapped to where the hub has a Canary; nil without.
	OrchestratorAlias awslambda.Alias
	// APIURL is where the HTTP API answers, without a trailing slash or /v1.
	APIURL string
	// APIDomainTarget is what the record of HTTPAPI.Domain points at; empty without one.
	APIDomainTarget string
	// ConfigParameter is the name of the SSM parameter a hub is found by.
	ConfigParameter string

	props    TaskHubProps
	stack    awscdk.Stack
	schedule scheduling
	api      apiResources
	watch    awsevents.Rule
	alarms   []awscloudwatch.Alarm // without those on a condition
	builds   map[string]string     // of functions, by the ids of their constructs
}

// NewTaskHub adds a task hub to scope. It panics on props that can never be
// deployed, as CDK constructs do.
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
	hub.addAPI()
	hub.addConfig()
	hub.addAlarms()
	hub.addDashboard()
	return hub
}

// name returns perdure-<hub>-<part>, for the resources people look up by name.
func (h *TaskHub) name(part string) *string {
	return jsii.String(h.prefix() + "-" + part)
}

func (h *TaskHub) prefix() string {
	if h.props.NamePrefix != "" {
		return h.props.NamePrefix
	}
	return "perdure-" + h.props.HubName
}
