package logevent

// Activities.
const (
	// ActivitySkipped means that an activity was cancelled before its code started. The worker reports the cancellation
	// without running the activity.
	ActivitySkipped = "activity.skipped"

	// ActivityCancelled means that the worker cancelled the context of a running activity. `decidedFor` is the time
	// since the cancellation was decided. `ranFor` is the time that the activity ran.
	// Action: if `decidedFor` is more than some seconds, the cancel record could not be read or the process had too
	// little CPU.
	ActivityCancelled = "activity.cancelled"

	// ActivityCancelledEnded means that the code of a cancelled activity returned in time. `end` is `finished` or
	// `stopped`. `endedAfter` is the time since the activity observed its cancellation.
	ActivityCancelledEnded = "activity.cancelled_ended"

	// ActivityAbandoned means that an activity was still running when its grace period ended, after it was cancelled,
	// lost its lock or was stopped. Its result is ignored, and its goroutine may still run. With `inline`, the
	// orchestrator starts no inline activities while three abandoned ones run. Action: make the code observe `ctx`.
	// `perdure why` shows the activity as LEAKED.
	ActivityAbandoned = "activity.abandoned"

	// ActivityAbandonedReturned means that the code of an abandoned activity returned later.
	ActivityAbandonedReturned = "activity.abandoned_returned"

	// ActivityCleanupPanicked means that the cleanup code of an activity panicked. The failure may have no effect on
	// the orchestration. Action: fix the code. The error has the stack.
	ActivityCleanupPanicked = "activity.cleanup_panicked"

	// ActivityStopped means that the invocation or the process was about to end. The activity runs again and can
	// continue from its last heartbeat.
	// Action: if `reason` is `deadline` each time, the activity takes longer than `WorkTimeout`: split it, or run it in
	// a polling process.
	ActivityStopped = "activity.stopped"

	// ActivityTimedOut means that a start-to-close, heartbeat or schedule-to-close timeout expired and the code did not
	// return. The attempt fails with `timeout`.
	// Action: make the code observe `ctx`, or set a longer timeout.
	ActivityTimedOut = "activity.timed_out"

	// ActivityExpired means that the schedule-to-close timeout expired before the attempt started. The activity fails
	// with `timeout`.
	// Action: set a longer timeout, or add concurrency.
	ActivityExpired = "activity.expired"

	// ActivityRetryScheduled means that an attempt failed and its retry policy allows another one, after `delay`.
	ActivityRetryScheduled = "activity.retry_scheduled"

	// ActivityStalled means that an attempt reached the end of its invocation three times in a row without a new
	// heartbeat. It fails with `timeout` and is retried if its policy allows it.
	// Action: set a longer `WorkTimeout`, use smaller steps, send heartbeats to continue from, or use a polling
	// process.
	ActivityStalled = "activity.stalled"

	// ActivityPoisoned means that running the activity crashed the process 13 times, the last ten times alone
	// (rule R13). The activity fails with type `poison`, and the orchestration continues with that failure.
	// Action: read the worker's log for the cause: out of memory, os.Exit, a fatal error.
	ActivityPoisoned = "activity.poisoned"

	// ActivityInterrupted means that an earlier worker crashed or had to stop while it ran an at-most-once activity.
	// The attempt fails with `interrupted` and is retried if its policy allows it. Action: read the end of the worker's
	// log. The orchestration decides what follows the failure.
	ActivityInterrupted = "activity.interrupted"

	// ActivityUnregistered means that the worker of this queue does not have the activity. It is redelivered without
	// limit, and `perdure status` shows that no worker has it. The alarm Unregistered counts these lines.
	// Action: deploy the worker, or use the right queue.
	ActivityUnregistered = "activity.unregistered"

	// ActivityDuplicateReleased means that another delivery runs the same attempt, or has just stopped.
	ActivityDuplicateReleased = "activity.duplicate_released"

	// ActivityRedeliverySkipped means that a work item was redelivered after its activity had ended or moved to another
	// attempt.
	ActivityRedeliverySkipped = "activity.redelivery_skipped"

	// ActivityPending means that the activity returned `ErrPending`. The holder of its completion token completes it.
	ActivityPending = "activity.pending"

	// ActivityPendingRedelivered means that a work item was redelivered after its attempt had returned `ErrPending`.
	ActivityPendingRedelivered = "activity.pending_redelivered"

	// ActivityPendingTimedOut means that a timeout of a pending attempt expired before its holder completed it. `again`
	// reports whether it is retried.
	ActivityPendingTimedOut = "activity.pending_timed_out"

	// ActivityPendingStoreFailed means that DynamoDB throttles or is unavailable. The attempt is pending nevertheless.
	// If its work item is redelivered, its function runs again, with the same token.
	ActivityPendingStoreFailed = "activity.pending_store_failed"

	// ActivityLeaseFailed means that DynamoDB or SQS throttles or is unavailable.
	ActivityLeaseFailed = "activity.lease_failed"

	// ActivityLeaseRenewalFailed means that DynamoDB or SQS throttles or is unavailable.
	ActivityLeaseRenewalFailed = "activity.lease_renewal_failed"

	// ActivityLeaseLost means that a process was frozen or disconnected for longer than the lease. Another worker has
	// the activity, or will receive it.
	// Action: if it is frequent, `LockTimeout` is too short or the process has too little CPU.
	ActivityLeaseLost = "activity.lease_lost"

	// ActivityClaimFailed means that DynamoDB throttles or is unavailable, for an at-most-once activity or one with an
	// awaited end. The work item is redelivered.
	ActivityClaimFailed = "activity.claim_failed"

	// ActivityClaimRenewalFailed means that DynamoDB throttles or is unavailable, for an at-most-once activity or one
	// with an awaited end.
	ActivityClaimRenewalFailed = "activity.claim_renewal_failed"

	// ActivityClaimExpired means that DynamoDB was unavailable for 15 s. The context of the activity ended with
	// `lock_lost`, and its outcome is not sent. The code has the grace period of 10 s to return, or less with a short
	// `PERDURE_LOCK_TIMEOUT`. The work item is redelivered and starts when DynamoDB accepts claims.
	// Action: if the activity is not idempotent, check its effects. Find the cause of the outage.
	ActivityClaimExpired = "activity.claim_expired"

	// ActivityClaimReleaseFailed means that DynamoDB throttles or is unavailable.
	ActivityClaimReleaseFailed = "activity.claim_release_failed"

	// ActivityCancelCheckFailed means that DynamoDB or SQS throttles or is unavailable. The work item is redelivered
	// before its code runs.
	ActivityCancelCheckFailed = "activity.cancel_check_failed"

	// ActivityAttemptReadFailed means that DynamoDB throttles or is unavailable, for an at-most-once activity or one
	// with an awaited end. The work item is redelivered.
	ActivityAttemptReadFailed = "activity.attempt_read_failed"

	// ActivityRedeliveryCheckFailed means that a work item was redelivered or is a later attempt, and the history or
	// the attempt record could not be read.
	ActivityRedeliveryCheckFailed = "activity.redelivery_check_failed"

	// ActivityRedeliveryUnchecked means that the history of the instance is damaged, so that the worker cannot
	// determine whether the activity has ended.
	// Action: see docs/operate/instances.md#blocked.
	ActivityRedeliveryUnchecked = "activity.redelivery_unchecked"

	// ActivityEarlyResendFailed means that DynamoDB or SQS throttles or is unavailable. The work item is redelivered
	// before its code runs.
	ActivityEarlyResendFailed = "activity.early_resend_failed"

	// ActivityInputUnreadable means that the object in the payload store is missing or altered, or the codec reports
	// that the input can never be decoded. The activity fails with `payload_unreadable`.
	// Action: see the operations guide about `payload_unreadable`.
	ActivityInputUnreadable = "activity.input_unreadable"

	// ActivityInputReadFailed means that S3 or the codec's keys are unavailable, or this build lacks the codec or
	// payload store.
	// Action: except during an outage, deploy the missing part.
	ActivityInputReadFailed = "activity.input_read_failed"

	// ActivityResultEncodeFailed means that S3 or the keys of the codec are unavailable. With `inline`, the activity
	// runs again in a worker.
	ActivityResultEncodeFailed = "activity.result_encode_failed"

	// ActivityResultEncodeRetried means that S3 or the keys of the codec are unavailable. If the outage lasts until the
	// worker stops, the attempt fails with `interrupted`.
	ActivityResultEncodeRetried = "activity.result_encode_retried"

	// ActivityOutcomeSendFailed means that DynamoDB or SQS throttles or is unavailable.
	ActivityOutcomeSendFailed = "activity.outcome_send_failed"

	// ActivityOutcomeNotStored means that DynamoDB throttles or is unavailable, for an activity with an awaited end.
	// The work item is redelivered.
	ActivityOutcomeNotStored = "activity.outcome_not_stored"

	// ActivityOutcomeSentUnstored means that DynamoDB throttles or is unavailable. If the worker crashes before it
	// deletes the work item, a failure with `interrupted` follows the outcome and is ignored.
	ActivityOutcomeSentUnstored = "activity.outcome_sent_unstored"

	// ActivityRecordReadFailed means that DynamoDB or SQS throttles or is unavailable. The work item is redelivered
	// before its code runs.
	ActivityRecordReadFailed = "activity_record.read_failed"

	// ActivityRecordWriteFailed means that DynamoDB throttles or is unavailable. `entry` names the missing entry.
	// `perdure why` and `perdure status` may show less: how or when the activity observed its cancellation, or whether
	// a worker has it. With `invocation_ended`, the attempt does not count as an attempt without progress.
	ActivityRecordWriteFailed = "activity_record.write_failed"

	// HeartbeatDetailsDropped means that the details cannot be encoded, or are too large. The heartbeat still counts.
	// Action: read the error and fix the value that the code passes to `Heartbeat`.
	HeartbeatDetailsDropped = "heartbeat.details_dropped"

	// HeartbeatWriteFailed means that DynamoDB or SQS throttles or is unavailable.
	HeartbeatWriteFailed = "heartbeat.write_failed"

	// HeartbeatReadFailed means that S3 or the codec's keys are unavailable, or this build lacks the codec or payload
	// store.
	// Action: except during an outage, deploy the missing part.
	HeartbeatReadFailed = "heartbeat.read_failed"

	// HeartbeatUnreadable means that the codec or the stored object of an earlier attempt's details no longer exists.
	// The attempt starts from the beginning.
	HeartbeatUnreadable = "heartbeat.unreadable"

	// CompletionTokenFailed means that the hub's signing key cannot be read, or the worker may not read the table.
	// Action: if it lasts, check the role of the worker.
	CompletionTokenFailed = "completion_token.failed"

	// CancelRecordReadFailed means that DynamoDB throttles or is unavailable. Running activities observe cancellations
	// later, with the first read that succeeds.
	CancelRecordReadFailed = "cancel_record.read_failed"

	// CrashMarkerWriteFailed means that DynamoDB throttles or is unavailable.
	CrashMarkerWriteFailed = "crash_marker.write_failed"

	// CrashMarkerDeleteFailed means that DynamoDB failed when the marker should be deleted. The marker counts as one of
	// eleven consecutive crashes that make a record poison.
	CrashMarkerDeleteFailed = "crash_marker.delete_failed"
)
