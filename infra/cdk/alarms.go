package cdk

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatchactions"
	"github.com/aws/jsii-runtime-go"
)

// alarmSpec is one alarm. It is on while its metric is at or over the threshold in so many of the last periods of five minutes.
type alarmSpec struct {
	name        string // that of the runbook, docs/operations.md
	metric      awscloudwatch.IMetric
	threshold   float64
	of, periods float64 // both 1 by default
	// silence makes it an alarm of a metric that has no data, or is below the threshold.
	silence     bool
	condition   awscdk.CfnCondition // of the resource that it watches; nil: it is always there
	description string
}

// The thresholds that are not 1.
const (
	inboxAgeSeconds   = 300
	workAgeSeconds    = 1800 // twice what an activity in a function may take
	timersAgeSeconds  = 1200 // a timer's delay is 900 at most
	oldestPendingSecs = 600
)

// A condition that ends by itself as a rule is an alarm once it lasts: in two or three of the last three periods.
const (
	lastingOf, lastingPeriods = 2, 3
	stuckOf, stuckPeriods     = 3, 3
)

func (h *TaskHub) addAlarms() {
	if h.props.WithoutAlarms {
		return
	}
	list := alarmList{h}
	for _, specs := range [][]alarmSpec{list.queueAlarms(), list.functionAlarms(), list.instanceAlarms(), list.serviceAlarms()} {
		for _, spec := range specs {
			list.add(spec)
		}
	}
}

// alarmList is the alarms that a hub has.
type alarmList struct{ *TaskHub }

func (h alarmList) queueAlarms() []alarmSpec {
	specs := []alarmSpec{
		{name: "InboxAge", metric: h.MetricInboxAge(), threshold: inboxAgeSeconds, description: "The inbox is not keeping up, or one instance holds its group"},
		{name: "TimersAge", metric: h.MetricTimersAge(), threshold: timersAgeSeconds, description: "Timers are late"},
		{name: "TimersWaiting", metric: h.MetricTimersWaiting(), description: "Timers are due, and none is served: is the mapping enabled?"},
	}
	for _, work := range h.servedQueues() {
		specs = append(specs,
			alarmSpec{name: "WorkAge-" + work.Name, metric: h.MetricWorkAge(work), threshold: *h.queueProps(work.Name).AgeAlarm.ToSeconds(nil), description: "Work waits in the queue " + work.Name + " for longer than an activity may take"},
			alarmSpec{name: "WorkerMissing-" + work.Name, metric: h.MetricActivitiesWithoutWorker(work.Name), description: "Work waits in the queue " + work.Name + ", and no worker of it has been heard of"},
			alarmSpec{name: "Unregistered-" + work.Name, metric: h.MetricActivitiesUnregistered(work.Name), description: "The worker of " + work.Name + " receives activities that its build does not have"})
	}
	for _, q := range h.deadLetters() {
		specs = append(specs, alarmSpec{name: "DeadLetters-" + q.name, metric: h.MetricDeadLetters(q.queue), description: "A message lies in the dead letters of " + q.name})
	}
	return specs
}

func (h alarmList) functionAlarms() []alarmSpec {
	parts := []string{"Orchestrator"}
	for _, work := range h.WorkQueues {
		parts = append(parts, "Worker-"+work.Name)
	}
	parts = append(parts, "Renewer", "Api")
	var specs []alarmSpec
	for i, function := range h.functions() {
		specs = append(specs,
			alarmSpec{name: "Errors-" + parts[i], metric: function.MetricErrors(metricOptions("Sum")), description: "Invocations fail: the function dies at init or while it works, or is out of time"},
			alarmSpec{name: "Throttles-" + parts[i], metric: function.MetricThrottles(metricOptions("Sum")), of: stuckOf, periods: stuckPeriods, description: "Invocations have been throttled for a quarter of an hour"},
			alarmSpec{name: "Recursion-" + parts[i], metric: h.MetricRecursiveInvocationsDropped(function), description: "Lambda drops invocations as recursive: RecursiveLoop must be Allow"})
	}
	return specs
}

func (h alarmList) instanceAlarms() []alarmSpec {
	return []alarmSpec{
		{name: "InstancesBlocked", metric: h.MetricInstancesBlocked(), description: "The code of an instance cannot go on with its history"},
		{name: "InstancesDeleting", metric: h.MetricInstancesDeleting(), of: stuckOf, periods: stuckPeriods, description: "The deletion of an instance makes no progress"},
		{name: "OldestPending", metric: h.MetricOldestPending(), threshold: oldestPendingSecs, description: "An instance has waited for its first turn for ten minutes"},
		{name: "WatchSilent", metric: h.MetricWatchLooks(), of: stuckOf, periods: stuckPeriods, silence: true, description: "The renewer has not been woken to keep watch for a quarter of an hour"},
	}
}

func (h alarmList) serviceAlarms() []alarmSpec {
	const serverErrors = "The HTTP API answers with server errors"
	return []alarmSpec{
		{name: "TableThrottles", metric: h.MetricTableThrottles(), of: lastingOf, periods: lastingPeriods, description: "DynamoDB throttles the table or one of its indexes"},
		{name: "ApiErrors", metric: h.metricGatewayErrors(), of: lastingOf, periods: lastingPeriods, condition: h.api.isHTTP, description: serverErrors},
		{name: "ApiUrlErrors", metric: h.metricURLErrors(), of: lastingOf, periods: lastingPeriods, condition: h.api.isURL, description: serverErrors},
	}
}

func (h alarmList) add(spec alarmSpec) {
	props := &awscloudwatch.AlarmProps{
		AlarmName:          h.name(spec.name),
		AlarmDescription:   jsii.String(spec.description + ". Runbook: docs/operations.md, Alarms, " + spec.name),
		Metric:             spec.metric,
		Threshold:          jsii.Number(max(spec.threshold, 1)),
		EvaluationPeriods:  jsii.Number(max(spec.periods, 1)),
		DatapointsToAlarm:  jsii.Number(max(spec.of, 1)),
		ComparisonOperator: awscloudwatch.ComparisonOperator_GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
		TreatMissingData:   awscloudwatch.TreatMissingData_NOT_BREACHING,
	}
	if spec.silence {
		props.ComparisonOperator = awscloudwatch.ComparisonOperator_LESS_THAN_THRESHOLD
		props.TreatMissingData = awscloudwatch.TreatMissingData_BREACHING
	}
	alarm := awscloudwatch.NewAlarm(h.Construct, jsii.String(spec.name+"Alarm"), props)
	if h.props.AlarmTopic != nil {
		action := awscloudwatchactions.NewSnsAction(h.props.AlarmTopic)
		alarm.AddAlarmAction(action)
		alarm.AddOkAction(action)
	}
	if spec.condition != nil {
		resource, _ := alarm.Node().DefaultChild().(awscloudwatch.CfnAlarm)
		resource.CfnOptions().SetCondition(spec.condition)
		return
	}
	h.alarms = append(h.alarms, alarm)
}
