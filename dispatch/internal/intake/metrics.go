package intake

import "time"

// The metrics that lines of the log carry, in MetricNamespace. They have data points only while something is wrong: a
// custom metric costs money for each hour in which it has one.
const (
	MetricNamespace = "perdure"
	// MetricWithoutWorker is how many activities wait in a queue that no worker serves, by hub and queue.
	MetricWithoutWorker = "ActivitiesWithoutWorker"
	// MetricUnregistered counts the deliveries of activities that the worker's build does not have, by hub and queue.
	MetricUnregistered = "ActivitiesUnregistered"
	// MetricBlocked is how many instances are blocked, by hub.
	MetricBlocked = "InstancesBlocked"
	// MetricDeleting is how many instances have a deletion that makes no progress, by hub.
	MetricDeleting = "InstancesDeleting"
	// MetricOldestPending is for how many seconds the oldest instance without a first turn has waited for it, by hub.
	MetricOldestPending = "OldestPendingSeconds"
)

// The metrics of what a function does, in MetricNamespace, where they are switched on (Metrics): a line an invocation.
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

// MetricAttribute is the attribute that makes a metric of a line of the log.
const MetricAttribute = "_aws"

// Metric is CloudWatch's embedded metric format: Lambda's log makes a metric of a line that has it, at no call's cost.
type Metric struct {
	Timestamp         int64             `json:"Timestamp"`
	CloudWatchMetrics []MetricDirective `json:"CloudWatchMetrics"`
}

// MetricDirective says which attributes of a line are dimensions, and which are values.
type MetricDirective struct {
	Namespace  string       `json:"Namespace"`
	Dimensions [][]string   `json:"Dimensions"`
	Metrics    []MetricUnit `json:"Metrics"`
}

// MetricUnit is the name of a value, and its unit.
type MetricUnit struct {
	Name string `json:"Name"`
	Unit string `json:"Unit"`
}

// MetricsOf is the value of MetricAttribute in a line whose other attributes hold the dimensions and the values.
func MetricsOf(now time.Time, dimensions []string, metrics ...MetricUnit) Metric {
	return Metric{Timestamp: now.UnixMilli(), CloudWatchMetrics: []MetricDirective{{
		Namespace: MetricNamespace, Dimensions: [][]string{dimensions}, Metrics: metrics,
	}}}
}
