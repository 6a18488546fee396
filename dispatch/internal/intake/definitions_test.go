package intake

// Definition describes a metric.
type Definition struct {
	Name, Unit string
	// By is the dimension next to the hub. Unless Always is set, only MetricsByName adds it. Empty means none.
	By string
	// From is the function that logs the metric.
	From string
	// Always is true if the metric is logged independently of Metrics, as long as its value is not zero.
	Always bool
	What   string
}

// Definitions lists every metric.
func Definitions() []Definition {
	const orchestrator, worker, renewer = "orchestrator", "worker", "renewer"
	const worksInline = "worker, orchestrator"
	return []Definition{
		{
			MetricActivityScheduleToStart, UnitMilliseconds, DimensionActivity, worker, false,
			"from the time an attempt is sent, or due, to the start of its code",
		},
		{
			MetricActivityExecution, UnitMilliseconds, DimensionActivity, worksInline, false,
			"duration of an attempt's code",
		},
		{
			MetricActivityEndToEnd, UnitMilliseconds, DimensionOrchestration, orchestrator, false,
			"from the turn that schedules an activity to the turn that consumes its outcome, including all " +
				"attempts and waits",
		},
		{MetricActivitiesFailed, UnitCount, DimensionActivity, worksInline, false, "failed attempts without a retry"},
		{MetricActivitiesRetried, UnitCount, DimensionActivity, worksInline, false, "failed attempts with a retry"},
		{
			MetricActivitiesCancelled, UnitCount, DimensionActivity, worksInline, false,
			"activities that ended after a cancel, or did not start because of one",
		},
		{
			MetricActivitiesLeaked, UnitCount, DimensionActivity, worksInline, false,
			"abandoned activities: they did not return within their grace period",
		},
		{
			MetricOrchestrationScheduleToStart, UnitMilliseconds, DimensionOrchestration, orchestrator, false,
			"from the start of an instance, or the end of its start delay, to its first turn",
		},
		{
			MetricOrchestrationExecution, UnitMilliseconds, DimensionOrchestration, orchestrator, false,
			"from the first turn of an execution to its end, unless it continues as new",
		},
		{
			MetricOrchestrationEndToEnd, UnitMilliseconds, DimensionOrchestration, orchestrator, false,
			"from the start of an execution, or the end of its start delay, to its end, unless it continues as new",
		},
		{MetricOrchestrationsCompleted, UnitCount, DimensionOrchestration, orchestrator, false, "completed instances"},
		{MetricOrchestrationsFailed, UnitCount, DimensionOrchestration, orchestrator, false, "failed instances"},
		{MetricOrchestrationsCancelled, UnitCount, DimensionOrchestration, orchestrator, false, "cancelled instances"},
		{
			MetricOrchestrationsTerminated, UnitCount, DimensionOrchestration, orchestrator, false,
			"terminated instances",
		},
		{
			MetricTurn, UnitMilliseconds, DimensionOrchestration, orchestrator, false,
			"duration of a committed turn: code, commit and dispatch",
		},
		{
			MetricReplay, UnitMilliseconds, DimensionOrchestration, orchestrator, false,
			"duration of a replay, without reading the history; its sample count is the number of replays",
		},
		{
			MetricCacheHits, UnitCount, DimensionOrchestration, orchestrator, false,
			"instances that a session found warm",
		},
		{
			MetricCacheMisses, UnitCount, DimensionOrchestration, orchestrator, false,
			"instances with an earlier turn that a session had to replay",
		},
		{
			MetricWatchLag, UnitSeconds, "", renewer, false,
			"from the start of the previous sweep to the end of this one: a little over 120 by default",
		},
		{MetricBlocked, UnitCount, "", renewer, true, "blocked instances, up to 1,000"},
		{MetricDeleting, UnitCount, "", renewer, true, "instances whose deletion makes no progress"},
		{
			MetricOldestPending, UnitSeconds, "", renewer, true,
			"age of the oldest instance without a first turn",
		},
		{
			MetricWithoutWorker, UnitCount, DimensionQueue, renewer, true,
			"work items in a queue whose workers have not reported",
		},
		{
			MetricUnregistered, UnitCount, DimensionQueue, worker, true,
			"deliveries of activities that the worker's build does not have",
		},
	}
}
