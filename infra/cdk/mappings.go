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

// batchSize is the maximum of a FIFO queue, and of a standard queue without a batching window, which would add latency.
const batchSize = 10

// watchAgeMinutes is the maximum age of an invocation of the sweeper that Lambda could not start.
const watchAgeMinutes = 2

// uncappedWarning is the ID of the warning for Annotations.AcknowledgeWarning.
const uncappedWarning = "@perdure/cdk:mappingWithoutMaximumConcurrency"

// warnUncapped adds a warning for mappings that can use all concurrent executions of the account. The default quota is
// 1,000, a new account may have 10 ("Lambda quotas"), and synthesis does not know the quota.
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
		"unlimited concurrency: "+strings.Join(uncapped, ", ")+
			" not set: the functions can use all concurrent executions "+
			"of the account. A new account may have only 10, and the functions then throttle each other. Check the "+
			"quota "+
			"with `aws lambda get-account-settings`. Set a share of the quota, or acknowledge this warning. "+
			"`perdure doctor` checks a deployed hub."))
}

func (h *TaskHub) addMappings() {
	warnUncapped(h)
	h.addMapping("InboxMapping", h.Inbox, aliasOr(h.OrchestratorAlias, h.Orchestrator), h.props.InboxConcurrency,
		batchSize)
	h.addMapping("TimersMapping", h.Timers, h.Renewer, h.props.TimersConcurrency, batchSize)
	for _, work := range h.servedQueues() {
		own := h.queueProps(work.Name)
		h.addMapping("WorkMapping-"+work.Name, work.Queue, aliasOr(work.Alias, work.Worker), own.Concurrency,
			own.BatchSize)
	}
}

// aliasOr returns the target of a mapping: the alias of a function if it has one.
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
		// Reserved concurrency alone would make the mapping receive more messages than it can deliver.
		MaxConcurrency: optionalNumber(concurrency),
	})
}

// addWatch adds the EventBridge rule that starts the sweeper.
func (h *TaskHub) addWatch() {
	h.watch = awsevents.NewRule(h.Construct, jsii.String("Watch"), &awsevents.RuleProps{
		Description: jsii.String("Starts the sweeper of perdure hub " + h.props.HubName),
		Schedule:    awsevents.Schedule_Expression(jsii.String(h.props.SweepRate)),
		Targets: &[]awsevents.IRuleTarget{
			// The next run of the rule replaces a retry. This setting concerns the delivery from EventBridge to Lambda.
			awseventstargets.NewLambdaFunction(h.Renewer, &awseventstargets.LambdaFunctionProps{
				RetryAttempts: jsii.Number(0),
			}),
		},
	})
	// By default, Lambda retries a failed invocation twice, and retries a throttled invocation for six hours.
	awslambda.NewEventInvokeConfig(h.Construct, jsii.String("WatchRetries"), &awslambda.EventInvokeConfigProps{
		Function: h.Renewer, RetryAttempts: jsii.Number(0),
		MaxEventAge: awscdk.Duration_Minutes(jsii.Number(watchAgeMinutes)),
	})
}
