package logevent

// Queues and dispatch.
const (
	// ReceiveFailed means that a polling process retries with pauses of at most 30 s.
	// Action: read the error: credentials, `sqs:ReceiveMessage`, the queue.
	ReceiveFailed = "receive.failed"

	// RecordLockLost means that a process was frozen or disconnected for longer than the lock. Another process has the
	// record, or will receive it. Action: if it is frequent, `LockTimeout` is too short or the process has too little
	// CPU.
	RecordLockLost = "record.lock_lost"

	// RecordLockRenewalFailed means that SQS throttles or is unavailable.
	RecordLockRenewalFailed = "record.lock_renewal_failed"

	// RecordReleaseFailed means that SQS did not make records visible. They are redelivered when their visibility
	// timeout ends.
	// Action: if it lasts, check `sqs:ChangeMessageVisibility`.
	RecordReleaseFailed = "record.release_failed"

	// RecordDeleteFailed means that SQS failed or was unavailable. The records are redelivered and recognized as
	// finished.
	// Action: if it lasts, check `sqs:DeleteMessage`.
	RecordDeleteFailed = "record.delete_failed"

	// RecordEarlyDeleteFailed means that SQS failed or was unavailable. The records are deleted at the end of the
	// batch, or redelivered and recognized as finished.
	// Action: if it lasts, check `sqs:DeleteMessage`.
	RecordEarlyDeleteFailed = "record.early_delete_failed"

	// RecordKindUnknown means that a newer release sent the record. It is redelivered five times for an environment of
	// that release, then moved to the dead-letter queue.
	// Action: after the deployment, follow the runbook for dead letters.
	RecordKindUnknown = "record.kind_unknown"

	// RecordUnreadable means that the record is damaged, or was sent by another program or a later release.
	// Action: follow the runbook for dead letters.
	RecordUnreadable = "record.unreadable"

	// RecordDeadLetterFailed means that SQS failed or was unavailable. The record returns to its queue, and the move is
	// retried.
	// Action: if it lasts, check `sqs:SendMessage` on the dead-letter queue.
	RecordDeadLetterFailed = "record.dead_letter_failed"

	// DeadLetterRecovered means that the sweeper resent a record that SQS had moved to the dead-letter queue after too
	// many deliveries. `became` is the result.
	// Action: follow the runbook for dead letters.
	DeadLetterRecovered = "dead_letter.recovered"

	// DeadLetterUnreadable means that the sweeper cannot read a record in the dead-letter queue. Each sweep logs it.
	// Action: follow the runbook for dead letters.
	DeadLetterUnreadable = "dead_letter.unreadable"

	// DeadLetterDropped means that a client's message was in the dead-letter queue when its instance was purged.
	// Another instance has the ID now and does not receive the message.
	// Action: if necessary, send the message to the new instance.
	DeadLetterDropped = "dead_letter.dropped"

	// WorkItemResendFailed means that a work item that was delivered often gets a new record, and SQS rejected it.
	WorkItemResendFailed = "work_item.resend_failed"

	// WorkItemDuplicated means that a work item that was delivered often got a new record, and SQS did not delete the
	// old one. The code may run twice.
	WorkItemDuplicated = "work_item.duplicated"

	// TimerHandlingFailed means that due timers were not handled. They are redelivered and may be late.
	// Action: read the error: the role's permission to create schedules or to pass its role, or a quota of EventBridge
	// Scheduler.
	TimerHandlingFailed = "timer.handling_failed"

	// TimerLeaseFailed means that SQS throttles, or the role may not change visibility. If the renewer crashes now, its
	// timers are late by the visibility timeout of the queue, 60 s, instead of 10 s.
	// Action: run `perdure doctor`.
	TimerLeaseFailed = "timer.lease_failed"

	// TimerScheduleDeleteFailed means that at least `left` schedules of cancelled timers were not deleted: a turn had
	// no time, or EventBridge Scheduler failed. They fire without effect and delete themselves.
	// Action: if `deleted` is always 0, the role lacks `scheduler:DeleteSchedule`.
	TimerScheduleDeleteFailed = "timer.schedule_delete_failed"

	// DispatchCursorWriteFailed means that the progress of a dispatch with very many outputs was not stored (rule R9).
	DispatchCursorWriteFailed = "dispatch_cursor.write_failed"

	// DispatchRecordWriteFailed means that the record of a dispatch that failed or was repeated was not stored (rule
	// R9).
	DispatchRecordWriteFailed = "dispatch_record.write_failed"

	// DispatchRecordUnreadable means that the record of a dispatch that failed or was repeated cannot be read (rule
	// R9).
	DispatchRecordUnreadable = "dispatch_record.unreadable"

	// RedispatchIncomplete means that the instance continued as new more than a hundred times before a dead letter was
	// recovered or redriven. The outputs of the message's own turn may be missing.
	// Action: run `perdure reconcile --yes --instance ID`, which sends the missing outputs.
	RedispatchIncomplete = "redispatch.incomplete"

	// DeletionNotificationRejected means that SQS rejects a notification of a deleted instance, such as its outcome for
	// its parent, because it is too large.
	// Action: terminate the instance that waits for it.
	DeletionNotificationRejected = "deletion.notification_rejected"

	// DeletionCancelRejected means that SQS rejects the message that cancels a sub-orchestration of a deleted instance.
	// Action: cancel the sub-orchestration.
	DeletionCancelRejected = "deletion.cancel_rejected"
)
