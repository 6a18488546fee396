package cdk

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsdynamodb"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"
)

// WorkQueue is one named work queue with the function that runs its activities.
type WorkQueue struct {
	Name        string
	Queue       awssqs.Queue
	DeadLetters awssqs.Queue
	// Worker is granted nothing but the hub: give its role what the activities
	// of this queue need.
	Worker awslambda.Function
}

// TaskHub is everything a hub consists of: the table, the queues, the functions
// and how a hub is found. Its resources are open to the stack that contains it.
type TaskHub struct {
	constructs.Construct

	Table awsdynamodb.Table
	Inbox awssqs.Queue
	// InboxDeadLetters takes what no turn could consume.
	InboxDeadLetters awssqs.Queue
	Timers           awssqs.Queue
	// TimersDeadLetters is also where EventBridge Scheduler puts what it could not send.
	TimersDeadLetters awssqs.Queue
	WorkQueues        []WorkQueue

	Orchestrator awslambda.Function
	Renewer      awslambda.Function
	API          awslambda.Function
	// APIURL is where the HTTP API answers, without a trailing slash or /v1.
	APIURL string
	// ConfigParameter is the name of the SSM parameter a hub is found by.
	ConfigParameter string

	props    TaskHubProps
	stack    awscdk.Stack
	schedule scheduling
	api      apiResources
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
	}
	hub.addTable()
	hub.addQueues()
	hub.addScheduling()
	hub.addFunctions()
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
	return jsii.String("perdure-" + h.props.HubName + "-" + part)
}
