package cdk

import (
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsevents"
	"github.com/aws/aws-cdk-go/awscdk/v2/awseventstargets"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
	"github.com/aws/jsii-runtime-go"
)

// batchSize is the most a FIFO queue delivers, and the most a standard queue
// delivers without a batching window, which would add to every hop.
const batchSize = 10

// watchAgeMinutes is how old a look may be that Lambda could not begin.
const watchAgeMinutes = 2

// uncappedWarning is the id of the warning, for Annotations.AcknowledgeWarning.
const uncappedWarning = "@perdure/cdk:mappingWithoutMaximumConcurrency"

// warnUncapped warns of mappings that may use all concurrent executions of the account. An account has 1,000 by default,
// but a new one may have 10 ("Lambda quotas"), and synthesis does not know how many.
func warnUncapped(h *TaskHub) {
	var uncapped []string
	if h.props.InboxConcurrency == 0 {
		uncapped = append(uncapped, "InboxConcurrency")
	}
	if h.props.TimersConcurrency == 0 {
		uncapped = append(uncapped, "TimersConcurrency")
	}
	for _, name := range h.props.WorkQueues {
		if h.queueProps(name).Concurrency == 0 {
			uncapped = append(uncapped, "WorkConcurrency")
			break
		}
	}
	if len(uncapped) == 0 {
		return
	}
	awscdk.Annotations_Of(h.Construct).AddWarningV2(jsii.String(uncappedWarning), jsii.String(
		"field "+strings.Join(uncapped, ", ")+": not set, so the functions may use all concurrent executions of the account. "+
			"A new account may have only 10, and then the functions throttle each other: compare with `aws lambda get-account-settings`. "+
			"Set a share of the account's quota, or acknowledge this warning. `perdure doctor` checks a deployed hub."))
}

func (h *TaskHub) addMappings() {
	warnUncapped(h)
	h.addMapping("InboxMapping", h.Inbox, aliasOr(h.OrchestratorAlias, h.Orchestrator), h.props.InboxConcurrency, batchSize)
	h.addMapping("TimersMapping", h.Timers, h.Renewer, h.props.TimersConcurrency, batchSize)
	for _, work := range h.servedQueues() {
		own := h.queueProps(work.Name)
		h.addMapping("WorkMapping-"+work.Name, work.Queue, aliasOr(work.Alias, work.Worker), own.Concurrency, own.BatchSize)
	}
}

// aliasOr is what a queue is mapped to: the alias of a function, where it has one.
func aliasOr(alias awslambda.Alias, function awslambda.Function) awslambda.IFunction {
	if alias != nil {
		return alias
	}
	return function
}

func (h *TaskHub) addMapping(id string, queue awssqs.Queue, function awslambda.IFunction, concurrency, batch int) {
	awslambda.NewEventSourceMapping(h.Construct, jsii.String(id), &awslambda.EventSourceMappingProps{
		EventSourceArn:          queue.QueueArn(),
		Target:                  function,
		BatchSize:               jsii.Number(batch),
		ReportBatchItemFailures: jsii.Bool(true),
		// Not reserved concurrency: alone, that makes a mapping receive more than
		// it can deliver.
		MaxConcurrency: optionalNumber(concurrency),
	})
}

// addWatch wakes the renewer to look for what is stuck (R11, R13, R17).
func (h *TaskHub) addWatch() {
	h.watch = awsevents.NewRule(h.Construct, jsii.String("Watch"), &awsevents.RuleProps{
		Description: jsii.String("Wakes the renewer of perdure hub " + h.props.HubName),
		Schedule:    awsevents.Schedule_Expression(jsii.String(h.props.WatchRate)),
		Targets: &[]awsevents.IRuleTarget{
			// The next watch comes anyway: retrying an old one is of no use. This is
			// about handing it to Lambda; what Lambda does then is below.
			awseventstargets.NewLambdaFunction(h.Renewer, &awseventstargets.LambdaFunctionProps{
				RetryAttempts: jsii.Number(0),
			}),
		},
	})
	// Lambda would invoke the renewer twice more for a look that failed, and keep one that is
	// throttled for six hours.
	awslambda.NewEventInvokeConfig(h.Construct, jsii.String("WatchRetries"), &awslambda.EventInvokeConfigProps{
		Function: h.Renewer, RetryAttempts: jsii.Number(0), MaxEventAge: awscdk.Duration_Minutes(jsii.Number(watchAgeMinutes)),
	})
}
