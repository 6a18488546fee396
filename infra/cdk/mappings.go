package cdk

import (
	"github.com/aws/aws-cdk-go/awscdk/v2/awsevents"
	"github.com/aws/aws-cdk-go/awscdk/v2/awseventstargets"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
	"github.com/aws/jsii-runtime-go"
)

// batchSize is the most a FIFO queue delivers, and the most a standard queue
// delivers without a batching window, which would add to every hop.
const batchSize = 10

func (h *TaskHub) addMappings() {
	h.addMapping("InboxMapping", h.Inbox, h.Orchestrator, h.props.InboxConcurrency)
	h.addMapping("TimersMapping", h.Timers, h.Renewer, 0)
	for _, work := range h.WorkQueues {
		h.addMapping("WorkMapping-"+work.Name, work.Queue, work.Worker, h.props.WorkConcurrency)
	}
}

func (h *TaskHub) addMapping(id string, queue awssqs.Queue, function awslambda.Function, concurrency int) {
	awslambda.NewEventSourceMapping(h.Construct, jsii.String(id), &awslambda.EventSourceMappingProps{
		EventSourceArn:          queue.QueueArn(),
		Target:                  function,
		BatchSize:               jsii.Number(batchSize),
		ReportBatchItemFailures: jsii.Bool(true),
		// Not reserved concurrency: alone, that makes a mapping receive more than
		// it can deliver.
		MaxConcurrency: optionalNumber(concurrency),
	})
}

// addWatch wakes the renewer to look for what is stuck (R11, R13, R17).
func (h *TaskHub) addWatch() {
	awsevents.NewRule(h.Construct, jsii.String("Watch"), &awsevents.RuleProps{
		Description: jsii.String("Wakes the renewer of perdure hub " + h.props.HubName),
		Schedule:    awsevents.Schedule_Expression(jsii.String(h.props.WatchRate)),
		Targets: &[]awsevents.IRuleTarget{
			// The next watch comes anyway: retrying an old one is of no use.
			awseventstargets.NewLambdaFunction(h.Renewer, &awseventstargets.LambdaFunctionProps{
				RetryAttempts: jsii.Number(0),
			}),
		},
	})
}
