package logevent

// Processes and the sweeper.
const (
	// SweepFailed means that sweeper tasks failed in a polling process. In Lambda, the renewer's invocation fails
	// instead. `error` names the task and its first ten failures.
	// Action: read the error: usually a missing permission, throttling or a hanging service.
	SweepFailed = "sweep.failed"

	// SweepProgressed means that a `duty` of the sweeper did work. `retention` deletes instances and past executions.
	// With `cutShort`, the next sweep continues.
	// Action: if `retention` is cut short for days, see docs/operate/maintenance.md#retention.
	SweepProgressed = "sweep.progressed"

	// SweepPositionUnreadable means that the item `hub`, `watch#<duty>` was written by another release. The duty starts
	// from the beginning.
	SweepPositionUnreadable = "sweep.position_unreadable"

	// SweepPositionAhead means that a process with a wrong clock ran the sweeper. The sweeper reads the instances since
	// then again.
	// Action: find the process: its retention uses the same clock.
	SweepPositionAhead = "sweep.position_ahead"

	// BulkJobEnded means that a bulk job ended with the counts in the line.
	// Action: if `failed` is not 0, `perdure jobs` shows the errors.
	BulkJobEnded = "bulk_job.ended"

	// BulkJobUnreadable means that a later release created the job, or its item is damaged. The job makes no progress.
	// Action: deploy that release again, or delete the item `hub`, `job#…`.
	BulkJobUnreadable = "bulk_job.unreadable"

	// WorkerMissing means that `ActivitiesWithoutWorker` activities wait in a queue whose worker has not reported since
	// `heardOf`, with the build `build`.
	// Action: see the alarm WorkerMissing in docs/operate/alarms.md#queues.
	WorkerMissing = "worker.missing"

	// WorkerReportFailed means that DynamoDB failed or was unavailable. The queue may seem to have no worker for some
	// minutes.
	WorkerReportFailed = "worker.report_failed"

	// WorkerActivitiesAbandoned means that a polling process stopped, and `leaked` of its activities did not return
	// after their contexts ended.
	// Action: see `activity.abandoned`.
	WorkerActivitiesAbandoned = "worker.activities_abandoned"

	// BuildReportFailed means that DynamoDB refused or was unavailable. Until the next report, new orchestrations of
	// the build cannot start, and blocked instances are not woken.
	BuildReportFailed = "build.report_failed"

	// BuildReportRequestFailed means that SQS refused or was unavailable. The next start of an unknown orchestration
	// requests the report again.
	BuildReportRequestFailed = "build.report_request_failed"

	// SigningKeyReadFailed means that the function's role may lack `dynamodb:Query` or `dynamodb:PutItem` on the table.
	// Turns that send work items fail.
	// Action: if it lasts, check the role.
	SigningKeyReadFailed = "signing_key.read_failed"

	// SigningKeyInvalid means that a `key#…` item has no 32 bytes of base64 in `secret`, or no number.
	// Action: correct or delete the item. See docs/operate/security.md#signing-keys.
	SigningKeyInvalid = "signing_key.invalid"

	// RollupWriteFailed means that a rollup, which makes cold turns cheaper, was not written.
	// Action: if it is frequent, check the permissions of the role, and the throttling of the table.
	RollupWriteFailed = "rollup.write_failed"

	// RollupUnreadable means that a rollup is damaged. The history is read segment by segment.
	RollupUnreadable = "rollup.unreadable"

	// ExecutionMissing means that past executions are missing, because a renewer stopped for 30 days during a deletion.
	ExecutionMissing = "execution.missing"

	// ServingQueue means that a polling process started to receive records of a queue.
	ServingQueue = "queue.serving"

	// ServingTimers means that a polling process started to handle timers and to run the sweeper.
	ServingTimers = "renewer.serving"

	// ProcessStopping means that a polling process received a request to stop.
	ProcessStopping = "process.stopping"

	// ProcessStopped means that a process that polls or serves HTTP ended.
	ProcessStopped = "process.stopped"

	// ProcessStoppedUnfinished means that a process that polls or serves HTTP ended with an `error`. Unfinished records
	// are redelivered.
	ProcessStoppedUnfinished = "process.stopped_unfinished"

	// SpanExportFailed means that the OTLP endpoint did not accept spans of `perdureotel`. The work continued.
	// Action: check that a collector runs at the endpoint.
	SpanExportFailed = "span.export_failed"

	// InterceptorPanicked means that a `perdure.Interceptor` around turns, activities or client calls panicked. No work
	// is lost. The line has the stack.
	// Action: fix the interceptor.
	InterceptorPanicked = "interceptor.panicked"

	// InterceptorTimedOut means that the function `interceptor` of a `perdure.Interceptor` waits without a timeout.
	// Around a turn, the wait delays all turns of the invocation.
	// Action: set a timeout for its call, usually an exporter's.
	InterceptorTimedOut = "interceptor.timed_out"
)
