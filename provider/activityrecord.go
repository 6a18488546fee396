package provider

import (
	"encoding/json"
	"time"
)

// ActivityRecord stores facts about an activity apart from its outcome: the end of a cancelled activity, the details of
// its heartbeats, and builds that do not register it. A zero field was not written.
type ActivityRecord struct {
	// ActivityID is the ID of the event that scheduled the activity.
	ActivityID int64
	// SeenAt is the time when the worker noticed the cancellation.
	SeenAt time.Time
	// EndedAt is the time when the cancelled activity ended or, if it was abandoned, when its worker stopped waiting
	// for it.
	EndedAt time.Time
	// CancelOutcome is the outcome of the cancelled activity, or empty if it is not known.
	CancelOutcome CancelOutcome
	// Details are the details of the last stored heartbeat, or nil.
	Details json.RawMessage
	// LastHeartbeatAt is the time of that heartbeat.
	LastHeartbeatAt time.Time
	// UnknownAt is the time when a worker last released the activity because its build does not register it.
	// UnknownBuild is that build.
	UnknownAt    time.Time
	UnknownBuild string
	// BegunAt is the time when a worker started the activity after UnknownAt was written.
	BegunAt time.Time
	// InvocationTimeoutAttempt is the last attempt that was still running when its invocation ended, or 0.
	// InvocationTimeouts is the number of consecutive deliveries in which that happened without a new heartbeat. Both
	// are written together.
	InvocationTimeoutAttempt, InvocationTimeouts int
	// Pending is the pending attempt that the worker of attempt PendingAttempt reports after its code returned
	// perdure.ErrPending. Both are written together before the report is sent, so that a copy of the work item sends
	// the same report and does not run the code again.
	Pending        *PendingAttempt
	PendingAttempt int
	// HeartbeatAttempt is the attempt of the last heartbeat that was sent with a completion token, or 0.
	// TimedOutAttempt is the last pending attempt that TimeOutPending ended. Its heartbeats are rejected
	// (Completions.HeartbeatPending).
	HeartbeatAttempt, TimedOutAttempt int
}

// Unknown reports whether the latest known fact is that a worker's build does not register the activity. failedAt is
// the time of the last failed attempt, or zero.
func (r *ActivityRecord) Unknown(failedAt time.Time) bool {
	return r.UnknownAt.After(r.BegunAt) && r.UnknownAt.After(r.LastHeartbeatAt) && r.UnknownAt.After(failedAt)
}

// CancelOutcome is the outcome of a cancelled activity. The strings are part of the stored format.
type CancelOutcome string

// The outcomes of cancelled activities.
const (
	// OutcomeNeverStarted means that the code did not run in the delivery that found the activity cancelled.
	OutcomeNeverStarted CancelOutcome = "never_started"
	// OutcomeStopped means that the code returned an error after its context ended.
	OutcomeStopped CancelOutcome = "stopped"
	// OutcomeCompleted means that the code returned a result in spite of the cancellation.
	OutcomeCompleted CancelOutcome = "finished"
	// OutcomeAbandoned means that the activity was abandoned: it did not return within its grace period.
	OutcomeAbandoned CancelOutcome = "leaked"
)
