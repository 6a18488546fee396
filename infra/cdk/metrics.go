package cdk

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatchactions"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
	"github.com/aws/jsii-runtime-go"
)

const metricMinutes = 5

// MetricInboxAge is the age in seconds of the oldest message no turn has consumed.
func (h *TaskHub) MetricInboxAge() awscloudwatch.Metric {
	return h.Inbox.MetricApproximateAgeOfOldestMessage(metricOptions("Maximum"))
}

// MetricDeadLetters is the number of messages in one dead-letter queue.
func (h *TaskHub) MetricDeadLetters(queue awssqs.Queue) awscloudwatch.Metric {
	return queue.MetricApproximateNumberOfMessagesVisible(metricOptions("Maximum"))
}

// MetricRecursiveInvocationsDropped counts what Lambda threw away because it took
// a chain of turns for a runaway loop. It must stay at zero.
func (h *TaskHub) MetricRecursiveInvocationsDropped(function awslambda.Function) awscloudwatch.Metric {
	return function.Metric(jsii.String("RecursiveInvocationsDropped"), metricOptions("Sum"))
}

// MetricActivitiesWithoutWorker is the number of messages in a work queue of which no
// worker has been heard of: its function dies at init, or may not read the queue. The
// renewer's log makes it; there are no data points while all is well.
func (h *TaskHub) MetricActivitiesWithoutWorker(queue string) awscloudwatch.Metric {
	return awscloudwatch.NewMetric(&awscloudwatch.MetricProps{
		Namespace:     jsii.String("perdure"),
		MetricName:    jsii.String("ActivitiesWithoutWorker"),
		DimensionsMap: &map[string]*string{"hub": jsii.String(h.props.HubName), "queue": jsii.String(queue)},
		Period:        awscdk.Duration_Minutes(jsii.Number(metricMinutes)),
		Statistic:     jsii.String("Maximum"),
	})
}

func metricOptions(statistic string) *awscloudwatch.MetricOptions {
	return &awscloudwatch.MetricOptions{
		Period:    awscdk.Duration_Minutes(jsii.Number(metricMinutes)),
		Statistic: jsii.String(statistic),
	}
}

// addAlarms keeps to few metrics, because each one in an alarm has its price.
func (h *TaskHub) addAlarms() {
	if h.props.WithoutAlarms {
		return
	}
	const inboxAgeSeconds = 300
	h.addAlarm("InboxAgeAlarm", h.MetricInboxAge(), inboxAgeSeconds,
		"The inbox is not keeping up, or one instance holds its group")
	for _, q := range h.deadLetters() {
		h.addAlarm("DeadLettersAlarm-"+q.name, h.MetricDeadLetters(q.queue), 1,
			"A message lies in the dead letters of "+q.name)
	}
	for _, work := range h.WorkQueues {
		h.addAlarm("WorkerMissingAlarm-"+work.Name, h.MetricActivitiesWithoutWorker(work.Name), 1,
			"Work waits in the queue "+work.Name+", and no worker of it has been heard of")
	}
	parts := []string{"Orchestrator"}
	for _, work := range h.WorkQueues {
		parts = append(parts, "Worker-"+work.Name)
	}
	parts = append(parts, "Renewer", "Api")
	for i, function := range h.functions() {
		h.addAlarm("RecursionAlarm-"+parts[i], h.MetricRecursiveInvocationsDropped(function), 1,
			"Lambda drops invocations as recursive: RecursiveLoop must be Allow")
	}
}

func (h *TaskHub) addAlarm(id string, metric awscloudwatch.Metric, threshold float64, description string) {
	alarm := awscloudwatch.NewAlarm(h.Construct, jsii.String(id), &awscloudwatch.AlarmProps{
		Metric:             metric,
		Threshold:          jsii.Number(threshold),
		EvaluationPeriods:  jsii.Number(1),
		ComparisonOperator: awscloudwatch.ComparisonOperator_GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
		TreatMissingData:   awscloudwatch.TreatMissingData_NOT_BREACHING,
		AlarmDescription:   jsii.String(description),
	})
	if h.props.AlarmTopic != nil {
		alarm.AddAlarmAction(awscloudwatchactions.NewSnsAction(h.props.AlarmTopic))
	}
}
