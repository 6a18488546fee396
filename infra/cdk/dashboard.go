package cdk

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/interfaces/interfacesawscloudwatch"
	"github.com/aws/jsii-runtime-go"
)

// Widths of widgets. A row has 24 units.
const (
	wholeRow  = 24
	thirdOfIt = 8
)

// dashboard creates the dashboard of a hub.
type dashboard struct{ *TaskHub }

// addDashboard adds the dashboard. It shows alarms, waiting work, failures and durations.
func (h *TaskHub) addDashboard() {
	if h.props.WithoutDashboard {
		return
	}
	made := awscloudwatch.NewDashboard(h.Construct, jsii.String("Dashboard"),
		&awscloudwatch.DashboardProps{DashboardName: jsii.String(h.prefix())})
	d := dashboard{h}
	for _, row := range [][]awscloudwatch.IWidget{
		d.alarmStates(), d.waitingWork(), d.stuckWork(), d.latencies(), d.outcomes(), d.invocations(), d.services(),
	} {
		if len(row) > 0 {
			made.AddWidgets(row...)
		}
	}
}

// alarmStates returns the states of the alarms, or nothing if the hub has no alarms.
func (h dashboard) alarmStates() []awscloudwatch.IWidget {
	if len(h.alarms) == 0 {
		return nil
	}
	alarms := make([]interfacesawscloudwatch.IAlarmRef, 0, len(h.alarms))
	for _, alarm := range h.alarms {
		alarms = append(alarms, alarm)
	}
	return []awscloudwatch.IWidget{awscloudwatch.NewAlarmStatusWidget(&awscloudwatch.AlarmStatusWidgetProps{
		Title: jsii.String("Alarms"), Alarms: &alarms, Width: jsii.Number(wholeRow),
	})}
}

func (h dashboard) waitingWork() []awscloudwatch.IWidget {
	visible := labelled(h.Timers.MetricApproximateNumberOfMessagesVisible(metricOptions("Maximum")), "visible")
	return []awscloudwatch.IWidget{
		graph("Age of oldest message (s)", h.ages()),
		graph("Due timers", []awscloudwatch.IMetric{visible, h.MetricTimersWaiting()}),
		graph("Dead letters", h.deadLetterCounts()),
	}
}

func (h dashboard) stuckWork() []awscloudwatch.IWidget {
	blocked := labelled(h.MetricInstancesBlocked(), "blocked")
	deleting := labelled(h.MetricInstancesDeleting(), "deletion stuck")
	return []awscloudwatch.IWidget{
		graph("Instances", []awscloudwatch.IMetric{blocked, deleting}),
		graph("Oldest pending instance (s)", []awscloudwatch.IMetric{labelled(h.MetricOldestPending(), "pending")}),
		graph("Activities without a worker", h.workerless()),
	}
}

// latencies returns nothing unless TaskHubProps.Metrics is set.
func (h dashboard) latencies() []awscloudwatch.IWidget {
	if h.props.Metrics == "" {
		return nil
	}
	return []awscloudwatch.IWidget{
		graph("Activities p95 (ms)",
			h.done("p95", "ActivityScheduleToStartLatency", "ActivityExecutionLatency", "ActivityEndToEndLatency")),
		graph("Orchestrations p95 (ms)",
			h.done("p95", "OrchestrationScheduleToStartLatency", "OrchestrationExecutionLatency",
				"OrchestrationEndToEndLatency")),
		graph("Turns and replays p95 (ms)", h.done("p95", "TurnLatency", "ReplayLatency")),
	}
}

// outcomes returns nothing unless TaskHubProps.Metrics is set.
func (h dashboard) outcomes() []awscloudwatch.IWidget {
	if h.props.Metrics == "" {
		return nil
	}
	return []awscloudwatch.IWidget{
		graph("Activities",
			h.done("Sum", "ActivitiesFailed", "ActivitiesRetried", "ActivitiesCancelled", "ActivitiesLeaked")),
		graph("Orchestrations",
			h.done("Sum", "OrchestrationsCompleted", "OrchestrationsFailed", "OrchestrationsCancelled",
				"OrchestrationsTerminated")),
		graph("Orchestrator cache, sweeper lag (s)",
			append(h.done("Sum", "CacheHits", "CacheMisses"), h.done("Maximum", "WatchLag")...)),
	}
}

// done returns metrics for all activities and orchestrations of the hub.
func (h dashboard) done(statistic string, names ...string) []awscloudwatch.IMetric {
	var all []awscloudwatch.IMetric
	for _, name := range names {
		all = append(all, labelled(h.ownMetric(name, statistic, ""), name))
	}
	return all
}

func (h dashboard) invocations() []awscloudwatch.IWidget {
	invoked := h.each(func(f awslambda.Function) awscloudwatch.Metric {
		return f.MetricInvocations(metricOptions("Sum"))
	})
	failed := h.each(func(f awslambda.Function) awscloudwatch.Metric { return f.MetricErrors(metricOptions("Sum")) })
	throttled := h.each(func(f awslambda.Function) awscloudwatch.Metric {
		return f.MetricThrottles(metricOptions("Sum"))
	})
	took := h.each(func(f awslambda.Function) awscloudwatch.Metric { return f.MetricDuration(metricOptions("p95")) })

	return []awscloudwatch.IWidget{
		graph("Invocations", invoked), graph("Errors and throttles", append(failed, throttled...)),
		graph("Duration p95 (ms)", took),
	}
}

func (h dashboard) services() []awscloudwatch.IWidget {
	read := labelled(h.Table.MetricConsumedReadCapacityUnits(metricOptions("Sum")), "read")
	write := labelled(h.Table.MetricConsumedWriteCapacityUnits(metricOptions("Sum")), "write")
	return []awscloudwatch.IWidget{
		graph("Table: capacity consumed", []awscloudwatch.IMetric{read, write}),
		graph("Table: throttled requests", []awscloudwatch.IMetric{h.MetricTableThrottles()}),
		graph("API: server errors", h.apiErrors()),
	}
}

func (h dashboard) ages() []awscloudwatch.IMetric {
	all := []awscloudwatch.IMetric{
		labelled(h.MetricInboxAge(), inboxName), labelled(h.MetricTimersAge(), timersName),
	}
	for _, work := range h.servedQueues() {
		all = append(all, labelled(h.MetricWorkAge(work), work.Name))
	}
	return all
}

func (h dashboard) deadLetterCounts() []awscloudwatch.IMetric {
	var all []awscloudwatch.IMetric
	for _, q := range h.deadLetters() {
		all = append(all, labelled(h.MetricDeadLetters(q.queue), q.name))
	}
	return all
}

func (h dashboard) workerless() []awscloudwatch.IMetric {
	var all []awscloudwatch.IMetric
	for _, work := range h.servedQueues() {
		all = append(all,
			labelled(h.MetricActivitiesWithoutWorker(work.Name), work.Name+": no worker"),
			labelled(h.MetricActivitiesUnregistered(work.Name), work.Name+": not registered"))
	}
	return all
}

// apiErrors returns the errors of the HTTP API or the function URL. The template must not refer to an API that does not
// exist.
func (h dashboard) apiErrors() []awscloudwatch.IMetric {
	id := awscdk.Token_AsString(awscdk.Fn_ConditionIf(h.api.isHTTP.LogicalId(), h.api.id, "none"), nil)
	return []awscloudwatch.IMetric{
		labelled(
			h.metricGatewayErrors().With(&awscloudwatch.MetricOptions{DimensionsMap: &map[string]*string{"ApiId": id}}),
			"HTTP API",
		),
		labelled(h.metricURLErrors(), "function URL"),
	}
}

func (h dashboard) each(metric func(awslambda.Function) awscloudwatch.Metric) []awscloudwatch.IMetric {
	all := make([]awscloudwatch.IMetric, 0, len(h.functions()))
	for _, function := range h.functions() {
		m := metric(function)
		all = append(all, labelled(m, *function.FunctionName()+" "+*m.MetricName()))
	}
	return all
}

func graph(title string, metrics []awscloudwatch.IMetric) awscloudwatch.GraphWidget {
	return awscloudwatch.NewGraphWidget(&awscloudwatch.GraphWidgetProps{
		Title: jsii.String(title),
		Left:  &metrics,
		Width: jsii.Number(thirdOfIt),
	})
}

func labelled(metric awscloudwatch.Metric, label string) awscloudwatch.Metric {
	return metric.With(&awscloudwatch.MetricOptions{Label: jsii.String(label)})
}
