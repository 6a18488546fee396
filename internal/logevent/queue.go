package logevent

// Queues and dispatch.
const (
	// ReceiveFailed means that a polling process retries with pauses of at most 30 s.
	// Action: read the error: credentials, `sqs:ReceiveMessage`, the queue.
	ReceiveFailed = "receive.failed"

	// RecordLockLost means that a process was frozen or disconnected for longer than the lock. Another process has, or
	// will receive, the record.
	// Action: if it is frequent, set a longer `LockTimeout` or add CPU.
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

	// RecordKindUnknown means that a newer release sent the record. After five redeliveries, the record is a dead
	// letter.
	// Action: after the deployment, see docs/operate/dead-letters.md.
	RecordKindUnknown = "record.kind_unknown"

	// RecordUnreadable means that the record is damaged, or was sent by a later release or another program.
	// Action: see docs/operate/dead-letters.md.
	RecordUnreadable = "record.unreadable"

	// RecordDeadLetterFailed means that SQS failed or was unavailable. The record returns to its queue, and the move is
	// retried.
	// Action: if it lasts, check `sqs:SendMessage` on the dead-letter queue.
	RecordDeadLetterFailed = "record.dead_letter_failed"

	// DeadLetterRecovered means that the sweeper resent a record that SQS had moved to the dead-letter queue. `became`
	// is the result.
	// Action: see docs/operate/dead-letters.md.
	DeadLetterRecovered = "dead_letter.recovered"

	// DeadLetterUnreadable means that the sweeper cannot read a record in the dead-letter queue.
	// Action: see docs/operate/dead-letters.md.
	DeadLetterUnreadable = "dead_letter.unreadable"

	// DeadLetterDropped means that the instance of a client's dead letter was purged. Another instance has the ID and
	// does not receive the message.
	// Action: send the message to the new instance, if appropriate.
	DeadLetterDropped = "dead_letter.dropped"

	// WorkItemResendFailed means that SQS refused the new record of a work item that was delivered often.
	WorkItemResendFailed = "work_item.resend_failed"

	// WorkItemDuplicated means that SQS did not delete the old record of a work item that was sent again. The code may
	// run twice.
	WorkItemDuplicated = "work_item.duplicated"

	// TimerHandlingFailed means that due timers are redelivered and may be late.
	// Action: read the error: the role's permissions to create schedules and to pass its role, or a quota of
	// EventBridge Scheduler.
	TimerHandlingFailed = "timer.handling_failed"

	// TimerLeaseFailed means that SQS throttles, or the role may not change visibility. If the renewer dies, its timers
	// are up to 60 s late instead of 10 s.
	// Action: run `perdure doctor`.
	TimerLeaseFailed = "timer.lease_failed"

	// TimerScheduleDeleteFailed means that a turn had no time, or EventBridge Scheduler refused. At least `left`
	// schedules of cancelled timers will fire without effect.
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

	// RedispatchIncomplete means that the instance continued as new more than 100 times before a dead letter was
	// recovered or redriven. Outputs may be missing.
	// Action: run `perdure reconcile --yes --instance ID`.
	RedispatchIncomplete = "redispatch.incomplete"

	// DeletionNotificationRejected means that SQS rejects a notification of a deleted instance, such as its outcome,
	// because it is too large.
	// Action: terminate the instance that waits for it.
	DeletionNotificationRejected = "deletion.notification_rejected"

	// DeletionCancelRejected means that SQS rejects the message that cancels a sub-orchestration of a deleted instance.
	// Action: cancel the sub-orchestration.
	DeletionCancelRejected = "deletion.cancel_rejected"
)
