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

// hubMetrics has the metrics of a hub as methods.
type hubMetrics struct{ hub *TaskHub }

// MetricInboxAge returns the age of the oldest message in the inbox, in seconds.
func (m hubMetrics) MetricInboxAge() awscloudwatch.Metric {
	return m.hub.Inbox.MetricApproximateAgeOfOldestMessage(metricOptions("Maximum"))
}

// MetricDeadLetters returns the number of visible messages in a dead-letter queue.
func (m hubMetrics) MetricDeadLetters(queue awssqs.Queue) awscloudwatch.Metric {
	return queue.MetricApproximateNumberOfMessagesVisible(metricOptions("Maximum"))
}

// MetricRecursiveInvocationsDropped returns the number of invocations that Lambda dropped as a recursive loop. It must
// be zero.
func (m hubMetrics) MetricRecursiveInvocationsDropped(function awslambda.Function) awscloudwatch.Metric {
	return function.Metric(jsii.String("RecursiveInvocationsDropped"), metricOptions("Sum"))
}

// MetricWorkAge returns the age of the oldest work item that waits or runs, in seconds. SQS excludes messages that were
// received three or more times.
func (m hubMetrics) MetricWorkAge(queue WorkQueue) awscloudwatch.Metric {
	return queue.Queue.MetricApproximateAgeOfOldestMessage(metricOptions("Maximum"))
}

// MetricTimersAge returns the age of the oldest message in the timers queue in seconds, including its delay.
func (m hubMetrics) MetricTimersAge() awscloudwatch.Metric {
	return m.hub.Timers.MetricApproximateAgeOfOldestMessage(metricOptions("Maximum"))
}

// MetricTimersWaiting returns the number of timers that are due, or almost due, in a period in which none was
// processed. It is positive if the mapping is disabled, or if the renewer is throttled or fails.
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

// MetricTableThrottles returns the number of throttled requests of the table and its indexes.
func (m hubMetrics) MetricTableThrottles() awscloudwatch.IMetric {
	return m.hub.Table.MetricThrottledRequestsForOperations(&awsdynamodb.OperationsMetricOptions{
		Label: jsii.String("throttled requests"), Period: metricPeriod(), Statistic: jsii.String("Sum"),
		Operations: &[]awsdynamodb.Operation{
			awsdynamodb.Operation_GET_ITEM, awsdynamodb.Operation_QUERY, awsdynamodb.Operation_PUT_ITEM,
			awsdynamodb.Operation_UPDATE_ITEM, awsdynamodb.Operation_DELETE_ITEM,
			awsdynamodb.Operation_TRANSACT_WRITE_ITEMS,
		},
	})
}

// MetricSweeps returns the number of invocations of the sweeper by EventBridge.
func (m hubMetrics) MetricSweeps() awscloudwatch.Metric {
	return newMetric("AWS/Events", "Invocations", "Sum", map[string]*string{"RuleName": m.hub.watch.RuleName()})
}

// MetricActivitiesWithoutWorker returns the number of messages in a work queue for which no worker has reported. For
// example, the function crashes at init or has no permission to read the queue. The log of the renewer creates the
// metric. It has no data points while workers report.
func (m hubMetrics) MetricActivitiesWithoutWorker(queue string) awscloudwatch.Metric {
	return m.ownMetric("ActivitiesWithoutWorker", "Maximum", queue)
}

// MetricActivitiesUnregistered returns the number of deliveries of activities that the build of the queue's worker does
// not have. The log of the worker creates the metric. It has no data points while all activities are registered.
func (m hubMetrics) MetricActivitiesUnregistered(queue string) awscloudwatch.Metric {
	return m.ownMetric("ActivitiesUnregistered", "Sum", queue)
}

// MetricInstancesBlocked returns the number of blocked instances, up to 1,000. The log of the sweeper creates the
// metric. It has no data points while no instance is blocked.
func (m hubMetrics) MetricInstancesBlocked() awscloudwatch.Metric {
	return m.ownMetric("InstancesBlocked", "Maximum", "")
}

// MetricInstancesDeleting returns the number of instances whose deletion has made no progress for two minutes, up to
// 1,000. The log of the sweeper creates the metric. It has no data points while there is no such instance.
func (m hubMetrics) MetricInstancesDeleting() awscloudwatch.Metric {
	return m.ownMetric("InstancesDeleting", "Maximum", "")
}

// MetricOldestPending returns the time that the oldest pending instance has waited for its first turn, in seconds, if
// it is at least two minutes. The log of the sweeper creates the metric. It has no data points while there is no such
// instance.
func (m hubMetrics) MetricOldestPending() awscloudwatch.Metric {
	return m.ownMetric("OldestPendingSeconds", "Maximum", "")
}

// ownMetric returns a metric from the logs of the functions. An empty queue selects the metric of the hub.
func (m hubMetrics) ownMetric(name, statistic, queue string) awscloudwatch.Metric {
	dimensions := map[string]*string{"hub": jsii.String(m.hub.props.HubName)}
	if queue != "" {
		dimensions["queue"] = jsii.String(queue)
	}
	return newMetric("perdure", name, statistic, dimensions)
}

// metricGatewayErrors returns the number of responses of the HTTP API with a status of at least 500.
func (m hubMetrics) metricGatewayErrors() awscloudwatch.Metric {
	return newMetric("AWS/ApiGateway", "5xx", "Sum", map[string]*string{"ApiId": jsii.String(m.hub.api.id)})
}

// metricURLErrors returns the number of responses of the function URL with a status of at least 500.
func (m hubMetrics) metricURLErrors() awscloudwatch.Metric {
	return m.hub.API.Metric(jsii.String("Url5xxCount"), metricOptions("Sum"))
}

func newMetric(namespace, name, statistic string, dimensions map[string]*string) awscloudwatch.Metric {
	return awscloudwatch.NewMetric(&awscloudwatch.MetricProps{
		Namespace: jsii.String(namespace), MetricName: jsii.String(name), DimensionsMap: &dimensions,
		Period: metricPeriod(), Statistic: jsii.String(statistic),
	})
}

func metricPeriod() awscdk.Duration { return awscdk.Duration_Minutes(jsii.Number(metricMinutes)) }

func metricOptions(statistic string) *awscloudwatch.MetricOptions {
	return &awscloudwatch.MetricOptions{Period: metricPeriod(), Statistic: jsii.String(statistic)}
}
