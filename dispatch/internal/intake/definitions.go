package intake

// Definition says what a metric is.
type Definition struct {
	Name, Unit string
	// By is the dimension that MetricsByName adds to the hub, or that there always is; empty where there is none.
	By string
	// From is the function that logs it.
	From string
	// Always: it is logged whatever Metrics says, while there is something to say.
	Always bool
	What   string
}

// Definitions lists every metric.
func Definitions() []Definition {
	const orchestrator, worker, renewer = "orchestrator", "worker", "renewer"
	const worksInline = "worker; orchestrator, of inline activities"
	return []Definition{
		{MetricActivityScheduleToStart, UnitMilliseconds, DimensionActivity, worker, false, "from when an attempt is sent, or due, until its code begins"},
		{MetricActivityExecution, UnitMilliseconds, DimensionActivity, worksInline, false, "how long the code of an attempt runs"},
		{MetricActivityEndToEnd, UnitMilliseconds, DimensionOrchestration, orchestrator, false, "from the turn that schedules an activity to the turn that takes its outcome, all attempts and waits included"},
		{MetricActivitiesFailed, UnitCount, DimensionActivity, worksInline, false, "attempts that failed, and that nothing follows"},
		{MetricActivitiesRetried, UnitCount, DimensionActivity, worksInline, false, "attempts that failed, and that another follows"},
		{MetricActivitiesCancelled, UnitCount, DimensionActivity, worksInline, false, "activities that ended after they were cancelled, and those that did not begin for that reason"},
		{MetricActivitiesLeaked, UnitCount, DimensionActivity, worksInline, false, "activities that ignored the end of their context, and were given up"},
		{MetricOrchestrationScheduleToStart, UnitMilliseconds, DimensionOrchestration, orchestrator, false, "from the start of an instance, or the time that it was delayed to, to its first turn"},
		{MetricOrchestrationExecution, UnitMilliseconds, DimensionOrchestration, orchestrator, false, "from the first turn of an execution to its end; not of one that continues as new"},
		{MetricOrchestrationEndToEnd, UnitMilliseconds, DimensionOrchestration, orchestrator, false, "from the start of an execution, or the time that it was delayed to, to its end; not of one that continues as new"},
		{MetricOrchestrationsCompleted, UnitCount, DimensionOrchestration, orchestrator, false, "instances that completed"},
		{MetricOrchestrationsFailed, UnitCount, DimensionOrchestration, orchestrator, false, "instances that failed"},
		{MetricOrchestrationsCancelled, UnitCount, DimensionOrchestration, orchestrator, false, "instances that ended cancelled"},
		{MetricOrchestrationsTerminated, UnitCount, DimensionOrchestration, orchestrator, false, "instances that were terminated"},
		{MetricTurn, UnitMilliseconds, DimensionOrchestration, orchestrator, false, "a turn that is committed: its code, the commit and what it sends"},
		{MetricReplay, UnitMilliseconds, DimensionOrchestration, orchestrator, false, "rebuilding an orchestration from its history, without the read; it counts the replays as well"},
		{MetricCacheHits, UnitCount, DimensionOrchestration, orchestrator, false, "instances that were found warm in the process"},
		{MetricCacheMisses, UnitCount, DimensionOrchestration, orchestrator, false, "instances with a turn before that were not"},
		{MetricWatchLag, UnitSeconds, "", renewer, false, "from the start of the look of the watch before to the end of this one; with looks every two minutes it is a little over 120"},
		{MetricBlocked, UnitCount, "", renewer, true, "instances that are blocked, up to 1,000; while there are any"},
		{MetricDeleting, UnitCount, "", renewer, true, "instances whose deletion makes no progress; while there are any"},
		{MetricOldestPending, UnitSeconds, "", renewer, true, "for how long the oldest instance without a first turn has waited; while there is one that the watch has found"},
		{MetricWithoutWorker, UnitCount, DimensionQueue, renewer, true, "work that waits in a queue of which no worker has been heard; while there is any"},
		{MetricUnregistered, UnitCount, DimensionQueue, worker, true, "deliveries of activities that the worker's build does not have"},
	}
}
