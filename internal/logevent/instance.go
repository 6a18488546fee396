package logevent

// Instances.
const (
	// InstanceBlocked means that the code of this build cannot process the history, or does not have the orchestration.
	// The instance is blocked, and its inputs are parked. With `Canary`, `newlyBlocked` (no earlier build had blocked
	// it) rolls the deployment back.
	// Action: see docs/operate/instances.md#blocked.
	InstanceBlocked = "instance.blocked"

	// InstanceEndedUnrun means that the code of this build cannot process the history. The instance has failed or was
	// terminated, as `historyEndsWith` shows.
	// Action: fix the code if other instances use it.
	InstanceEndedUnrun = "instance.ended_unrun"

	// InstancePaused means that a client paused the instance.
	InstancePaused = "instance.paused"

	// InstanceResumed means that a client resumed the instance. `parked` inputs are processed now.
	InstanceResumed = "instance.resumed"

	// InstancePausedEnded means that a paused instance was terminated.
	InstancePausedEnded = "instance.paused_ended"

	// InstanceBlockFailed means that DynamoDB or SQS rejected a write that would show the instance as blocked. Its
	// messages are redelivered, and the write is retried.
	InstanceBlockFailed = "instance.block_failed"

	// InstanceTerminatedUnreadable means that a client terminated the instance, which does not need its code.
	InstanceTerminatedUnreadable = "instance.terminated_unreadable"

	// InstanceUnreadable means that the instance's item is damaged, or a later release wrote it. A bulk job that
	// matches the instance counts it as failed.
	// Action: read the error.
	InstanceUnreadable = "instance.unreadable"

	// InstanceStartOverdue means that the client crashed before it could wake the instance, or the orchestrator is
	// behind. The sweeper wakes the instance. `others` is the number of further instances. Action: if `others` stays
	// high, check the orchestrator's event source mapping: enabled, not throttled.
	InstanceStartOverdue = "instance.start_overdue"

	// InstanceBlockedRetried means that the sweeper lets the current build try a blocked instance: when a build
	// reports, after 10, 20 and 40 minutes, then every hour.
	InstanceBlockedRetried = "instance.blocked_retried"

	// InstanceDeletionResumed means that a deletion was interrupted. The sweeper continues it.
	// Action: if every sweep logs it, see the operations guide about instances that stay in Deleting.
	InstanceDeletionResumed = "instance.deletion_resumed"

	// InstanceAttentionNeeded means that instances are blocked, their deletion hangs, or they wait for their start. One
	// line per sweep feeds the alarms InstancesBlocked, InstancesDeleting and OldestPending.
	// Action: follow the runbook of the alarm.
	InstanceAttentionNeeded = "instance.attention_needed"

	// TurnFailed means that the store or a queue returned an error, or the code does not match the history before its
	// third delivery. A turn also fails if it sends more outputs, or reads more large payloads, than one invocation
	// can. Action: if it lasts, read the error. For large payloads, set a longer `InboxTimeout`.
	TurnFailed = "turn.failed"

	// TurnIncompatible means that the code of this build does not match the history, or does not have the
	// orchestration. An environment of another build may process the messages. At the third delivery the instance is
	// blocked. With `Canary`, `newlyBlocked` and `newerBuild` roll the deployment back.
	TurnIncompatible = "turn.incompatible"

	// ReplayNondeterministic means that the code did not match a history, and matched it a moment later. The code
	// depends on randomness, the clock or the order of a map. This turn is correct. Action: fix the code. The next
	// replay may block the instance.
	ReplayNondeterministic = "replay.nondeterministic"

	// ReplayInputsChanged means that a deployment changed the inputs of activities or sub-orchestrations after they
	// were called. The history takes precedence.
	ReplayInputsChanged = "replay.inputs_changed"

	// OrchestrationForeignGoroutine means that the orchestration ended, or waited, while a goroutine that it had
	// started with `go` called its context. The call has no effect. The error has the stack. Action: use `perdure.Go`
	// instead of `go`, and repeat the lost call. `perduretest` fails tests with such calls.
	OrchestrationForeignGoroutine = "orchestration.foreign_goroutine"

	// OrchestrationDeferPanicked means that a deferred call of the orchestration panicked when its instance was
	// unloaded. The instance is not affected.
	// Action: fix the code.
	OrchestrationDeferPanicked = "orchestration.defer_panicked"

	// HistoryUnreadable means that the history is damaged. The instance is blocked as `corrupt`, and its messages move
	// to the dead-letter queue.
	// Action: see `corrupt` in docs/operate/instances.md#blocked.
	HistoryUnreadable = "history.unreadable"

	// SegmentUnreadable means that the history of an instance that is terminated or purged is damaged.
	// Sub-orchestrations that the segment started are not cancelled, and callers of its requests receive no response.
	// Action: cancel the sub-orchestrations, and terminate the instances that wait for its updates.
	SegmentUnreadable = "segment.unreadable"

	// StartRefused means that another instance has the ID. The caller receives the error. A sub-orchestration fails
	// with `already_exists`.
	// Action: use distinct IDs: `WithInstanceID`.
	StartRefused = "start.refused"

	// StartNotRecorded means that the instance ID already stores 256 rejected starts. This start was also rejected, but
	// a frozen function may still create the instance.
	// Action: if several orchestrations start instances with the same ID, use `WithInstanceID`.
	StartNotRecorded = "start.not_recorded"

	// SubOrchestrationCancelRequested means that a turn cancels sub-orchestrations. `children` counts them, and `first`
	// names up to ten.
	SubOrchestrationCancelRequested = "sub_orchestration.cancel_requested"

	// SubOrchestrationCancelled means that a turn consumed the ends of cancelled sub-orchestrations. `children` counts
	// them, and `first` names up to ten.
	SubOrchestrationCancelled = "sub_orchestration.cancelled"

	// SubOrchestrationCancelFailed means that sub-orchestrations cannot be cancelled. `error` is the error of the first
	// one. That one has ended and its outcome is lost, or another start has its ID. Action: use distinct IDs:
	// `WithInstanceID`.
	SubOrchestrationCancelFailed = "sub_orchestration.cancel_failed"

	// SubOrchestrationCancelRejected means that the sub-orchestration has ended, or was not started by this parent. The
	// parent logs `sub_orchestration.cancel_failed`.
	// Action: use distinct IDs: `WithInstanceID`.
	SubOrchestrationCancelRejected = "sub_orchestration.cancel_rejected"

	// SubOrchestrationNeverStarted means that the parent cancelled a sub-orchestration that does not exist. A late
	// start is rejected.
	SubOrchestrationNeverStarted = "sub_orchestration.never_started"

	// MessageRejected means that the instance does not exist, or has ended (`over`). The sender receives a failure.
	// `from` and `name` are those of the first message.
	MessageRejected = "message.rejected"

	// StatusWriteFailed means that DynamoDB throttles or is unavailable. The work continues. `perdure status` is
	// outdated until a refresh succeeds: within half a minute, or a quarter of an hour after a long outage.
	// Action: if it lasts, check `dynamodb:UpdateItem` of the role.
	StatusWriteFailed = "status.write_failed"

	// StatusRefreshFailed means that DynamoDB throttles or is unavailable. `perdure status` is outdated until a refresh
	// succeeds.
	// Action: if it lasts, check `dynamodb:UpdateItem` of the role.
	StatusRefreshFailed = "status.refresh_failed"

	// ScheduleOrderIgnored means that an event was sent to `schedule:<id>` that no `Schedules.Put` or
	// `Schedules.Backfill` of this release sends. The schedule continues unchanged.
	// Action: put the schedule again, and check it with `perdure schedule show`.
	ScheduleOrderIgnored = "schedule.order_ignored"
)
