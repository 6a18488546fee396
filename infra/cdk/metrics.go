package cdk

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsdynamodb"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
	"github.com/aws/jsii-runtime-go"
)

const metricMinutes = 5

// hubMetrics are the metrics of a hub, which has them as methods.
type hubMetrics struct{ hub *TaskHub }

// MetricInboxAge is the age in seconds of the oldest message no turn has consumed.
func (m hubMetrics) MetricInboxAge() awscloudwatch.Metric {
	return m.hub.Inbox.MetricApproximateAgeOfOldestMessage(metricOptions("Maximum"))
}

// MetricDeadLetters is the number of messages in one dead-letter queue.
func (m hubMetrics) MetricDeadLetters(queue awssqs.Queue) awscloudwatch.Metric {
	return queue.MetricApproximateNumberOfMessagesVisible(metricOptions("Maximum"))
}

// MetricRecursiveInvocationsDropped counts what Lambda threw away because it took
// a chain of turns for a runaway loop. It must stay at zero.
func (m hubMetrics) MetricRecursiveInvocationsDropped(function awslambda.Function) awscloudwatch.Metric {
	return function.Metric(jsii.String("RecursiveInvocationsDropped"), metricOptions("Sum"))
}

// MetricWorkAge is the age in seconds of the oldest work item that is not done, waiting or at
// work. A message that was received three times and more is left out by SQS.
func (m hubMetrics) MetricWorkAge(queue WorkQueue) awscloudwatch.Metric {
	return queue.Queue.MetricApproximateAgeOfOldestMessage(metricOptions("Maximum"))
}

// MetricTimersAge is the age in seconds of the oldest message of the timers queue, its delay included.
func (m hubMetrics) MetricTimersAge() awscloudwatch.Metric {
	return m.hub.Timers.MetricApproximateAgeOfOldestMessage(metricOptions("Maximum"))
}

// MetricTimersWaiting is how many timers are due or nearly so in a period in which none was
// served: the mapping is disabled, or the renewer is throttled or fails.
func (m hubMetrics) MetricTimersWaiting() awscloudwatch.MathExpression {
	return awscloudwatch.NewMathExpression(&awscloudwatch.MathExpressionProps{
		Label:      jsii.String("timers waiting"),
		Expression: jsii.String("IF(FILL(served, 0) < 1, waiting, 0)"),
		UsingMetrics: &map[string]awscloudwatch.IMetric{
			"served":  m.hub.Timers.MetricNumberOfMessagesDeleted(metricOptions("Sum")),
			"waiting": m.hub.Timers.MetricApproximateNumberOfMessagesVisible(metricOptions("Minimum")),
		},
		Period: metricPeriod(),
	})
}

// MetricTableThrottles counts the requests of the table and its indexes that DynamoDB has throttled.
func (m hubMetrics) MetricTableThrottles() awscloudwatch.IMetric {
	return m.hub.Table.MetricThrottledRequestsForOperations(&awsdynamodb.OperationsMetricOptions{
		Label: jsii.String("throttled requests"), Period: metricPeriod(), Statistic: jsii.String("Sum"),
		Operations: &[]awsdynamodb.Operation{
			awsdynamodb.Operation_GET_ITEM, awsdynamodb.Operation_QUERY, awsdynamodb.Operation_PUT_ITEM,
			awsdynamodb.Operation_UPDATE_ITEM, awsdynamodb.Operation_DELETE_ITEM, awsdynamodb.Operation_TRANSACT_WRITE_ITEMS,
		},
	})
}

// MetricWatchLooks counts how often EventBridge has woken the renewer to keep watch.
func (m hubMetrics) MetricWatchLooks() awscloudwatch.Metric {
	return awscloudwatch.NewMetric(&awscloudwatch.MetricProps{
		Namespace: jsii.String("AWS/Events"), MetricName: jsii.String("Invocations"),
		DimensionsMap: &map[string]*string{"RuleName": m.hub.watch.RuleName()},
		Period:        metricPeriod(), Statistic: jsii.String("Sum"),
	})
}

// MetricActivitiesWithoutWorker is the number of messages in a work queue of which no
// worker has been heard of: its function dies at init, or may not read the queue. The
// renewer's log makes it; there are no data points while all is well.
func (m hubMetrics) MetricActivitiesWithoutWorker(queue string) awscloudwatch.Metric {
	return m.ownMetric("ActivitiesWithoutWorker", "Maximum", queue)
}

// MetricActivitiesUnregistered counts the deliveries of activities that the build of a queue's
// worker does not have. The worker's log makes it; there are no data points while all is well.
func (m hubMetrics) MetricActivitiesUnregistered(queue string) awscloudwatch.Metric {
	return m.ownMetric("ActivitiesUnregistered", "Sum", queue)
}

// MetricInstancesBlocked is the number of blocked instances, up to 1,000. The renewer's log makes
// it at each look of its watch; there are no data points while there are none.
func (m hubMetrics) MetricInstancesBlocked() awscloudwatch.Metric {
	return m.ownMetric("InstancesBlocked", "Maximum", "")
}

// MetricInstancesDeleting is the number of instances whose deletion has made no progress for two
// minutes, up to 1,000; made as MetricInstancesBlocked is.
func (m hubMetrics) MetricInstancesDeleting() awscloudwatch.Metric {
	return m.ownMetric("InstancesDeleting", "Maximum", "")
}

// MetricOldestPending is for how many seconds the oldest instance without a first turn has waited
// for it, once that is two minutes; made as MetricInstancesBlocked is.
func (m hubMetrics) MetricOldestPending() awscloudwatch.Metric {
	return m.ownMetric("OldestPendingSeconds", "Maximum", "")
}

// ownMetric is one that lines of the functions' logs make, of a queue unless that is empty.
func (m hubMetrics) ownMetric(name, statistic, queue string) awscloudwatch.Metric {
	dimensions := map[string]*string{"hub": jsii.String(m.hub.props.HubName)}
	if queue != "" {
		dimensions["queue"] = jsii.String(queue)
	}
	return awscloudwatch.NewMetric(&awscloudwatch.MetricProps{
		Namespace: jsii.String("perdure"), MetricName: jsii.String(name), DimensionsMap: &dimensions,
		Period: metricPeriod(), Statistic: jsii.String(statistic),
	})
}

// metricGatewayErrors counts the answers of the HTTP API with a status of 500 and more.
func (m hubMetrics) metricGatewayErrors() awscloudwatch.Metric {
	return awscloudwatch.NewMetric(&awscloudwatch.MetricProps{
		Namespace: jsii.String("AWS/ApiGateway"), MetricName: jsii.String("5xx"),
		DimensionsMap: &map[string]*string{"ApiId": jsii.String(m.hub.api.id)},
		Period:        metricPeriod(), Statistic: jsii.String("Sum"),
	})
}

// metricURLErrors counts the same of the function URL.
func (m hubMetrics) metricURLErrors() awscloudwatch.Metric {
	return m.hub.API.Metric(jsii.String("Url5xxCount"), metricOptions("Sum"))
}

func metricPeriod() awscdk.Duration { return awscdk.Duration_Minutes(jsii.Number(metricMinutes)) }

func metricOptions(statistic string) *awscloudwatch.MetricOptions {
	return &awscloudwatch.MetricOptions{Period: metricPeriod(), Statistic: jsii.String(statistic)}
}
