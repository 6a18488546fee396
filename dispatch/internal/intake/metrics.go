package intake

import "time"

// The metrics that are logged only while there is a problem, in MetricNamespace. CloudWatch bills a custom metric for
// each hour in which it has a data point.
const (
	MetricNamespace = "perdure"
	// MetricWithoutWorker is the number of activities that wait in a queue without a worker, by hub and queue.
	MetricWithoutWorker = "ActivitiesWithoutWorker"
	// MetricUnregistered counts the deliveries of activities that the worker's build does not have, by hub and queue.
	MetricUnregistered = "ActivitiesUnregistered"
	// MetricBlocked is the number of blocked instances, by hub.
	MetricBlocked = "InstancesBlocked"
	// MetricDeleting is the number of instances whose deletion makes no progress, by hub.
	MetricDeleting = "InstancesDeleting"
	// MetricOldestPending is the time in seconds that the oldest instance without a first turn has waited for it, by
	// hub.
	MetricOldestPending = "OldestPendingSeconds"
)

// The metrics of a function's work, in MetricNamespace. Metrics enables them. An invocation logs one line.
const (
	MetricActivityScheduleToStart      = "ActivityScheduleToStartLatency"
	MetricActivityExecution            = "ActivityExecutionLatency"
	MetricActivityEndToEnd             = "ActivityEndToEndLatency"
	MetricActivitiesFailed             = "ActivitiesFailed"
	MetricActivitiesRetried            = "ActivitiesRetried"
	MetricActivitiesCancelled          = "ActivitiesCancelled"
	MetricActivitiesLeaked             = "ActivitiesLeaked"
	MetricOrchestrationScheduleToStart = "OrchestrationScheduleToStartLatency"
	MetricOrchestrationExecution       = "OrchestrationExecutionLatency"
	MetricOrchestrationEndToEnd        = "OrchestrationEndToEndLatency"
	MetricOrchestrationsCompleted      = "OrchestrationsCompleted"
	MetricOrchestrationsFailed         = "OrchestrationsFailed"
	MetricOrchestrationsCancelled      = "OrchestrationsCancelled"
	MetricOrchestrationsTerminated     = "OrchestrationsTerminated"
	MetricTurn                         = "TurnLatency"
	MetricReplay                       = "ReplayLatency"
	MetricCacheHits                    = "CacheHits"
	MetricCacheMisses                  = "CacheMisses"
	MetricWatchLag                     = "WatchLag"
)

// The dimensions of metrics.
const (
	DimensionHub           = "hub"
	DimensionQueue         = "queue"
	DimensionActivity      = "activity"
	DimensionOrchestration = "orchestration"
)

// The units of metrics.
const (
	UnitCount        = "Count"
	UnitSeconds      = "Seconds"
	UnitMilliseconds = "Milliseconds"
)

// MetricAttribute is the log attribute from which CloudWatch extracts metrics.
const MetricAttribute = "_aws"

// Metric is a log attribute in CloudWatch's embedded metric format. CloudWatch extracts metrics from log lines with it,
// without an API call.
type Metric struct {
	Timestamp         int64             `json:"Timestamp"`
	CloudWatchMetrics []MetricDirective `json:"CloudWatchMetrics"`
}

// MetricDirective names the attributes of a line that are dimensions or values.
type MetricDirective struct {
	Namespace  string       `json:"Namespace"`
	Dimensions [][]string   `json:"Dimensions"`
	Metrics    []MetricUnit `json:"Metrics"`
}

// MetricUnit is the name of a value and its unit.
type MetricUnit struct {
	Name string `json:"Name"`
	Unit string `json:"Unit"`
}

// MetricsOf returns the value of MetricAttribute for a line whose other attributes contain the dimensions and the
// values.
func MetricsOf(now time.Time, dimensions []string, metrics ...MetricUnit) Metric {
	return Metric{Timestamp: now.UnixMilli(), CloudWatchMetrics: []MetricDirective{{
		Namespace: MetricNamespace, Dimensions: [][]string{dimensions}, Metrics: metrics,
	}}}
}
