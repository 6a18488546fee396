package cdk

import (
	"slices"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatchactions"
	"github.com/aws/jsii-runtime-go"
)

// alarmSpec configures an alarm. The alarm fires if its metric reaches the threshold in as many of the last periods as
// the field of specifies. A period is five minutes.
type alarmSpec struct {
	name        string // the name in docs/operate/alarms.md
	metric      awscloudwatch.IMetric
	threshold   float64
	of, periods float64 // default: 1
	// firesWithoutData inverts the alarm: it fires if the metric has no data or is below the threshold.
	firesWithoutData bool
	condition        awscdk.CfnCondition // of the monitored resource, nil if it always exists
	description      string
}

// Thresholds other than 1.
const (
	inboxAgeSeconds   = 300
	workAgeSeconds    = 1800 // twice the maximum run time of an activity in a function
	timersAgeSeconds  = 1200 // the maximum delay of a timer is 900 s
	oldestPendingSecs = 600
)

// Alarms for conditions that usually clear by themselves fire after two or three of the last three periods.
const (
	lastingOf, lastingPeriods = 2, 3
	stuckOf, stuckPeriods     = 3, 3
)

func (h *TaskHub) addAlarms() {
	if h.props.WithoutAlarms {
		return
	}
	list := alarmList{h}
	for _, spec := range slices.Concat(list.queueAlarms(), list.functionAlarms(), list.instanceAlarms(),
		list.serviceAlarms()) {
		list.add(spec)
	}
}

// alarmList creates the alarms of a hub.
type alarmList struct{ *TaskHub }

func (h alarmList) queueAlarms() []alarmSpec {
	specs := []alarmSpec{
		{
			name: "InboxAge", metric: h.MetricInboxAge(), threshold: inboxAgeSeconds,
			description: "A message has waited in the inbox for 5 minutes. One or all instances make no progress. " +
				"Check the errors and throttles of the orchestrator",
		},
		{
			name: "TimersAge", metric: h.MetricTimersAge(), threshold: timersAgeSeconds,
			description: "A timer has been in its queue for 20 minutes. Timers fire late. " +
				"Check the errors and throttles of the renewer",
		},
		{
			name: "TimersWaiting", metric: h.MetricTimersWaiting(),
			description: "Timers are due and none was processed for 5 minutes. Timers fire late. " +
				"Check that the event source mapping of the timers queue is enabled",
		},
	}
	for _, work := range h.servedQueues() {
		specs = append(specs,
			alarmSpec{
				name: "WorkAge-" + work.Name, metric: h.MetricWorkAge(work),
				threshold: *h.queueProps(work.Name).AgeAlarm.ToSeconds(nil),
				description: "The oldest work item of the queue " + work.Name + " is too old. " +
					"Activities of the queue start late. Check the errors and throttles of the worker",
			},
			alarmSpec{
				name: "WorkerMissing-" + work.Name, metric: h.MetricActivitiesWithoutWorker(work.Name),
				description: "Work items wait in the queue " + work.Name + " and no worker has reported. " +
					"Activities of the queue do not run. Read the log of the worker",
			},
			alarmSpec{
				name: "Unregistered-" + work.Name, metric: h.MetricActivitiesUnregistered(work.Name),
				description: "The worker of the queue " + work.Name +
					" receives activities that are not in its build. " +
					"These activities wait. Deploy a worker that has them",
			})
	}
	for _, q := range h.deadLetters() {
		specs = append(specs, alarmSpec{
			name: "DeadLetters-" + q.name, metric: h.MetricDeadLetters(q.queue),
			description: "A message of the queue " + q.name + " could not be processed. " +
				"An instance may miss a result or an event. Run perdure dead-letters list",
		})
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
			alarmSpec{
				name: "Errors-" + parts[i], metric: function.MetricErrors(metricOptions("Sum")),
				description: "Invocations fail: the function crashes or times out. Messages are redelivered. " +
					"Read the log of the function",
			},
			alarmSpec{
				name: "Throttles-" + parts[i], metric: function.MetricThrottles(metricOptions("Sum")),
				of: stuckOf, periods: stuckPeriods,
				description: "Invocations have been throttled for 15 minutes. Messages wait. " +
					"Compare the concurrency quota of the account with its load",
			},
			alarmSpec{
				name: "Recursion-" + parts[i], metric: h.MetricRecursiveInvocationsDropped(function),
				description: "Lambda drops invocations as recursive. Messages are delayed. " +
					"Set RecursiveLoop of the function to Allow",
			})
	}
	return specs
}

func (h alarmList) instanceAlarms() []alarmSpec {
	return []alarmSpec{
		{
			name: "InstancesBlocked", metric: h.MetricInstancesBlocked(),
			description: "The code of an instance cannot process its history. The instance does not run. " +
				"Run perdure list --status Blocked",
		},
		{
			name: "InstancesDeleting", metric: h.MetricInstancesDeleting(), of: stuckOf, periods: stuckPeriods,
			description: "The deletion of an instance makes no progress. Its ID and data remain in use. " +
				"Read the log of the renewer",
		},
		{
			name: "OldestPending", metric: h.MetricOldestPending(), threshold: oldestPendingSecs,
			description: "An instance has waited 10 minutes for its first turn. Starts are delayed. " +
				"Check the errors and throttles of the orchestrator",
		},
		{
			name: "WatchSilent", metric: h.MetricSweeps(), of: stuckOf, periods: stuckPeriods, firesWithoutData: true,
			description: "EventBridge has not started the sweeper for 15 minutes. Stuck instances are neither " +
				"recovered nor reported. Check that the rule of the sweeper is enabled",
		},
	}
}

func (h alarmList) serviceAlarms() []alarmSpec {
	const serverErrors = "The HTTP API returns server errors. Requests of clients fail. " +
		"Read the log of the API function"
	return []alarmSpec{
		{
			name: "TableThrottles", metric: h.MetricTableThrottles(), of: lastingOf, periods: lastingPeriods,
			description: "DynamoDB throttles the table or one of its indexes. Calls are retried and take longer. " +
				"Check the limits of the table",
		},
		{
			name: "ApiErrors", metric: h.metricGatewayErrors(), of: lastingOf, periods: lastingPeriods,
			condition: h.api.isHTTP, description: serverErrors,
		},
		{
			name: "ApiUrlErrors", metric: h.metricURLErrors(), of: lastingOf, periods: lastingPeriods,
			condition: h.api.isURL, description: serverErrors,
		},
	}
}

func (h alarmList) add(spec alarmSpec) {
	props := &awscloudwatch.AlarmProps{
		AlarmName:          h.name(spec.name),
		AlarmDescription:   jsii.String(spec.description + ". Runbook: docs/operate/alarms.md, " + spec.name),
		Metric:             spec.metric,
		Threshold:          jsii.Number(max(spec.threshold, 1)),
		EvaluationPeriods:  jsii.Number(max(spec.periods, 1)),
		DatapointsToAlarm:  jsii.Number(max(spec.of, 1)),
		ComparisonOperator: awscloudwatch.ComparisonOperator_GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
		TreatMissingData:   awscloudwatch.TreatMissingData_NOT_BREACHING,
	}
	if spec.firesWithoutData {
		props.ComparisonOperator = awscloudwatch.ComparisonOperator_LESS_THAN_THRESHOLD
		props.TreatMissingData = awscloudwatch.TreatMissingData_BREACHING
	}
	alarm := awscloudwatch.NewAlarm(h.Construct, jsii.String(spec.name+"Alarm"), props)
	h.notify(alarm)
	if spec.condition != nil {
		resource, _ := alarm.Node().DefaultChild().(awscloudwatch.CfnAlarm)
		resource.CfnOptions().SetCondition(spec.condition)
		return
	}
	h.alarms = append(h.alarms, alarm)
}

// notify makes an alarm send its changes to the topic of the hub, if there is one.
func (h *TaskHub) notify(alarm awscloudwatch.Alarm) {
	if h.props.AlarmTopic == nil {
		return
	}
	action := awscloudwatchactions.NewSnsAction(h.props.AlarmTopic)
	alarm.AddAlarmAction(action)
	alarm.AddOkAction(action)
}
