package logevent

// Processes and the sweeper.
const (
	// SweepFailed means that sweeper tasks failed in a polling process. In a Lambda function the renewer's
	// invocation fails instead. The error names the task and the first ten failures. A task that used up its time
	// without any progress means that a called service hangs.
	// Action: read the error. Usual causes are a missing permission and throttling.
	SweepFailed = "sweep.failed"

	// SweepProgressed means that a `duty` of the sweeper, such as `retention`, made progress. `retention` deletes
	// instances and past executions. With `cutShort`, its time expired, and the next sweep continues. Action: if
	// `retention` is cut short for days, more instances end than the renewer deletes: see the operations guide.
	SweepProgressed = "sweep.progressed"

	// SweepPositionUnreadable means that the item `hub`, `watch#<duty>` was written by another release. The duty starts
	// from the beginning.
	SweepPositionUnreadable = "sweep.position_unreadable"

	// SweepPositionAhead means that a process with a wrong clock ran the sweeper. Instances that were started since are
	// read again.
	// Action: find the process, because its retention uses the same clock.
	SweepPositionAhead = "sweep.position_ahead"

	// BulkJobEnded means that a bulk job ended with the counts in the line.
	// Action: if `failed` is not 0, `perdure jobs` shows the errors.
	BulkJobEnded = "bulk_job.ended"

	// BulkJobUnreadable means that a later release created the job, or its item is damaged. The job makes no progress.
	// Other jobs continue.
	// Action: deploy that release again, or delete the item `hub`, `job#…`.
	BulkJobUnreadable = "bulk_job.unreadable"

	// WorkerMissing means that activities wait in a queue whose worker does not report. `ActivitiesWithoutWorker`
	// counts them, `heardOf` is the time of the last report, and `build` is its build. It feeds the alarm
	// WorkerMissing.
	// Action: follow the runbook of the alarm.
	WorkerMissing = "worker.missing"

	// WorkerReportFailed means that DynamoDB failed or was unavailable. The queue may seem to have no worker for some
	// minutes.
	WorkerReportFailed = "worker.report_failed"

	// WorkerActivitiesAbandoned means that a polling process stopped, and `leaked` of its activities did not return
	// after their contexts ended.
	// Action: see `activity.abandoned`.
	WorkerActivitiesAbandoned = "worker.activities_abandoned"

	// BuildReportFailed means that DynamoDB failed or was unavailable. Until the next report, orchestrations that are
	// new in the build cannot start, and blocked instances are not woken for it.
	BuildReportFailed = "build.report_failed"

	// BuildReportRequestFailed means that SQS failed or was unavailable when an unknown orchestration was started. The
	// next such start requests the report again.
	BuildReportRequestFailed = "build.report_request_failed"

	// SigningKeyReadFailed means that the function's role may lack `dynamodb:Query` or `dynamodb:PutItem` on the table.
	// Turns that send work items fail and are repeated.
	// Action: if it lasts, check the role.
	SigningKeyReadFailed = "signing_key.read_failed"

	// SigningKeyInvalid means that a `key#…` item has no 32 bytes of base64 in `secret`, or no number.
	// Action: correct or delete the item. See the operations guide about the key of work items.
	SigningKeyInvalid = "signing_key.invalid"

	// RollupWriteFailed means that a rollup, which reduces the reads of a cold turn, was not written.
	// Action: if it is frequent, check the role's right to write, and the throttling of the table.
	RollupWriteFailed = "rollup.write_failed"

	// RollupUnreadable means that a rollup is damaged. The history is read segment by segment.
	RollupUnreadable = "rollup.unreadable"

	// ExecutionMissing means that the chain of past executions is shorter than the instance records. A renewer stopped
	// for 30 days during a deletion.
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

	// InterceptorPanicked means that an interceptor around turns, activities or client calls (`perdure.Interceptor`)
	// panicked. The line has the stack. No work is lost.
	// Action: fix the interceptor.
	InterceptorPanicked = "interceptor.panicked"

	// InterceptorTimedOut means that the function `interceptor` of a `perdure.Interceptor` waits for something without
	// a timeout. Around a turn it delays all turns of the invocation.
	// Action: set a timeout for the call that it waits for, usually an exporter, and deploy.
	InterceptorTimedOut = "interceptor.timed_out"
)
