package cdk

import (
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/jsii-runtime-go"
)

// addDashboard shows a hub on one page: is work waiting, is it failing, where
// does time go.
func (h *TaskHub) addDashboard() {
	if h.props.WithoutDashboard {
		return
	}
	dashboard := awscloudwatch.NewDashboard(h.Construct, jsii.String("Dashboard"), &awscloudwatch.DashboardProps{
		DashboardName: jsii.String("perdure-" + h.props.HubName),
	})
	dashboard.AddWidgets(
		graph("Waiting, oldest message (s)", h.ages()),
		graph("Dead letters", h.deadLetterCounts()),
	)
	dashboard.AddWidgets(
		graph("Invocations", h.each(func(f awslambda.Function) awscloudwatch.Metric {
			return f.MetricInvocations(metricOptions("Sum"))
		})),
		graph("Errors", h.each(func(f awslambda.Function) awscloudwatch.Metric {
			return f.MetricErrors(metricOptions("Sum"))
		})),
		graph("Duration p95 (ms)", h.each(func(f awslambda.Function) awscloudwatch.Metric {
			return f.MetricDuration(metricOptions("p95"))
		})),
	)
}

func (h *TaskHub) ages() []awscloudwatch.IMetric {
	all := []awscloudwatch.IMetric{labelled(h.MetricInboxAge(), deadLettersInbox)}
	for _, work := range h.WorkQueues {
		age := work.Queue.MetricApproximateAgeOfOldestMessage(metricOptions("Maximum"))
		all = append(all, labelled(age, work.Name))
	}
	return all
}

func (h *TaskHub) deadLetterCounts() []awscloudwatch.IMetric {
	var all []awscloudwatch.IMetric
	for _, q := range h.deadLetters() {
		all = append(all, labelled(h.MetricDeadLetters(q.queue), q.name))
	}
	return all
}

func (h *TaskHub) each(metric func(awslambda.Function) awscloudwatch.Metric) []awscloudwatch.IMetric {
	var all []awscloudwatch.IMetric
	for _, function := range h.functions() {
		all = append(all, labelled(metric(function), *function.FunctionName()))
	}
	return all
}

func graph(title string, metrics []awscloudwatch.IMetric) awscloudwatch.GraphWidget {
	return awscloudwatch.NewGraphWidget(&awscloudwatch.GraphWidgetProps{
		Title: jsii.String(title),
		Left:  &metrics,
		Width: jsii.Number(8),
	})
}

func labelled(metric awscloudwatch.Metric, label string) awscloudwatch.Metric {
	return metric.With(&awscloudwatch.MetricOptions{Label: jsii.String(label)})
}
