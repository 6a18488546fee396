package logevent

// Instances.
const (
	// InstanceBlocked means that the code of this build cannot process the history, or does not have the orchestration.
	// With `Canary`, `newlyBlocked` (no earlier build had blocked it) rolls the deployment back.
	// Action: see docs/operate/instances.md#blocked.
	InstanceBlocked = "instance.blocked"

	// InstanceEndedUnrun means that the code of this build cannot process the history. The instance has failed or was
	// terminated (`historyEndsWith`).
	// Action: fix the code if other instances use it.
	InstanceEndedUnrun = "instance.ended_unrun"

	// InstancePaused means that a client paused the instance.
	InstancePaused = "instance.paused"

	// InstanceResumed means that a client resumed the instance. `parked` inputs are processed now.
	InstanceResumed = "instance.resumed"

	// InstancePausedEnded means that a paused instance was terminated.
	InstancePausedEnded = "instance.paused_ended"

	// InstanceBlockFailed means that DynamoDB or SQS refused the write of the status Blocked. The messages are
	// redelivered, and the write is retried.
	InstanceBlockFailed = "instance.block_failed"

	// InstanceTerminatedUnreadable means that a client terminated the instance, which does not need its code.
	InstanceTerminatedUnreadable = "instance.terminated_unreadable"

	// InstanceUnreadable means that the instance's item is damaged, or a later release wrote it. A bulk job that
	// matches the instance counts it as failed.
	// Action: read the error.
	InstanceUnreadable = "instance.unreadable"

	// InstanceStartOverdue means that the client died before it woke the instance, or the orchestrator is slow. The
	// sweeper wakes the instance and `others` more.
	// Action: if it repeats with many, check the orchestrator's event source mapping.
	InstanceStartOverdue = "instance.start_overdue"

	// InstanceBlockedRetried means that the sweeper wakes blocked instances for the current build.
	InstanceBlockedRetried = "instance.blocked_retried"

	// InstanceDeletionResumed means that the sweeper continues an interrupted deletion.
	// Action: if every sweep logs it, see Deleting in docs/operate/instances.md#statuses.
	InstanceDeletionResumed = "instance.deletion_resumed"

	// InstanceAttentionNeeded means that instances are blocked, are not deleted, or wait for their start. One line per
	// sweep feeds the alarms InstancesBlocked, InstancesDeleting and OldestPending.
	// Action: see docs/operate/alarms.md#instances.
	InstanceAttentionNeeded = "instance.attention_needed"

	// TurnFailed means that the store or a queue returned an error, or the code does not fit the history before its
	// third delivery. Too many outputs or large payloads for one invocation also fail a turn.
	// Action: if it lasts, read the error. For large payloads, set a longer `InboxTimeout`.
	TurnFailed = "turn.failed"

	// TurnIncompatible means that the code of this build does not fit the history, or does not have the orchestration.
	// The third delivery blocks the instance. With `Canary`, `newlyBlocked` and `newerBuild` roll the deployment back.
	TurnIncompatible = "turn.incompatible"

	// ReplayNondeterministic means that the code did not fit a history in one of two replays: it depends on randomness,
	// the clock or the order of a map. This turn is correct.
	// Action: fix the code. The next replay may block the instance.
	ReplayNondeterministic = "replay.nondeterministic"

	// ReplayInputsChanged means that a deployment changed the inputs of activities or sub-orchestrations after they
	// were called. The history takes precedence.
	ReplayInputsChanged = "replay.inputs_changed"

	// OrchestrationForeignGoroutine means that a goroutine that the orchestration had started with `go` called its
	// context. The call has no effect. `error` has the stack.
	// Action: use `perdure.Go` instead of `go`, and repeat the lost call.
	OrchestrationForeignGoroutine = "orchestration.foreign_goroutine"

	// OrchestrationDeferPanicked means that a deferred call of the orchestration panicked when its instance was
	// unloaded. The instance is not affected.
	// Action: fix the code.
	OrchestrationDeferPanicked = "orchestration.defer_panicked"

	// HistoryUnreadable means that the history is damaged. The instance is blocked as `corrupt`, and its messages move
	// to the dead-letter queue.
	// Action: see `corrupt` in docs/operate/instances.md#blocked.
	HistoryUnreadable = "history.unreadable"

	// SegmentUnreadable means that the history of a terminated or purged instance is damaged. Its sub-orchestrations
	// are not cancelled, and callers of its updates receive no response.
	// Action: cancel the sub-orchestrations, and terminate the waiting instances.
	SegmentUnreadable = "segment.unreadable"

	// StartRefused means that another instance has the ID. The caller receives the error. A sub-orchestration fails
	// with `already_exists`.
	// Action: use distinct IDs: `WithInstanceID`.
	StartRefused = "start.refused"

	// StartNotRecorded means that the instance ID already stores 256 refused starts. A frozen function may still create
	// an instance with this refused start.
	// Action: if several orchestrations start instances with the same ID, use `WithInstanceID`.
	StartNotRecorded = "start.not_recorded"

	// SubOrchestrationCancelRequested means that a turn cancels sub-orchestrations. `children` counts them, and `first`
	// names up to ten.
	SubOrchestrationCancelRequested = "sub_orchestration.cancel_requested"

	// SubOrchestrationCancelled means that a turn consumed the ends of cancelled sub-orchestrations. `children` counts
	// them, and `first` names up to ten.
	SubOrchestrationCancelled = "sub_orchestration.cancelled"

	// SubOrchestrationCancelFailed means that sub-orchestrations cannot be cancelled. `error` is the error of the first
	// one: its outcome is lost, or another start has its ID.
	// Action: use distinct IDs: `WithInstanceID`.
	SubOrchestrationCancelFailed = "sub_orchestration.cancel_failed"

	// SubOrchestrationCancelRejected means that the sub-orchestration has ended, or was not started by this parent. The
	// parent logs `sub_orchestration.cancel_failed`.
	// Action: use distinct IDs: `WithInstanceID`.
	SubOrchestrationCancelRejected = "sub_orchestration.cancel_rejected"

	// SubOrchestrationNeverStarted means that the parent cancelled a sub-orchestration that does not exist. A late
	// start is rejected.
	SubOrchestrationNeverStarted = "sub_orchestration.never_started"

	// MessageRejected means that the instance does not exist, or has ended (`over`). The sender receives a failure.
	MessageRejected = "message.rejected"

	// StatusWriteFailed means that DynamoDB throttles or is unavailable. `perdure status` is outdated until a refresh
	// succeeds: within half a minute, or a quarter of an hour after a long outage.
	// Action: if it lasts, check `dynamodb:UpdateItem` of the role.
	StatusWriteFailed = "status.write_failed"

	// StatusRefreshFailed means that DynamoDB throttles or is unavailable. `perdure status` is outdated until a refresh
	// succeeds.
	// Action: if it lasts, check `dynamodb:UpdateItem` of the role.
	StatusRefreshFailed = "status.refresh_failed"

	// ScheduleOrderIgnored means that an event for `schedule:<id>` is invalid in this release. The schedule continues
	// unchanged.
	// Action: put the schedule again, and check it with `perdure schedule show`.
	ScheduleOrderIgnored = "schedule.order_ignored"
)
