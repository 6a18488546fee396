package provider

import (
	"encoding/json"
	"time"
)

// ActivityRecord stores facts about an activity in addition to its outcome in the history. These are the end of a
// cancelled activity, heartbeat details, and builds that do not register the activity. A zero field was not written.
type ActivityRecord struct {
	// ActivityID is the ID of the event that scheduled the activity.
	ActivityID int64
	// SeenAt is the time at which the worker observed the cancellation.
	SeenAt time.Time
	// EndedAt is the time at which the cancelled activity ended or its worker abandoned it.
	EndedAt time.Time
	// CancelOutcome is the outcome of the cancelled activity, or empty if it is not known.
	CancelOutcome CancelOutcome
	// Details are the details of the last stored heartbeat, or nil.
	Details json.RawMessage
	// LastHeartbeatAt is the time of the last stored heartbeat.
	LastHeartbeatAt time.Time
	// UnknownAt is the last time at which a worker released the activity because its build does not register it.
	// UnknownBuild is that build.
	UnknownAt    time.Time
	UnknownBuild string
	// BegunAt is the time at which a worker started the activity after UnknownAt was written.
	BegunAt time.Time
	// InvocationTimeoutAttempt is the last attempt that was still running when its invocation ended, or 0.
	// InvocationTimeouts is the number of consecutive deliveries that ended this way without a new heartbeat. Both
	// fields are written together.
	InvocationTimeoutAttempt, InvocationTimeouts int
	// Pending is the pending attempt that a worker reports after the code returned perdure.ErrPending. PendingAttempt
	// is the number of that attempt. Both fields are written together before the report is sent. A copy of the work
	// item then sends the same report and does not run the code again.
	Pending        *PendingAttempt
	PendingAttempt int
	// HeartbeatAttempt is the attempt of the last heartbeat that was sent with a completion token, or 0.
	// EndedAttempt is the last pending attempt that EndPending ended. Heartbeats of that attempt are rejected
	// (Completions.HeartbeatPending).
	HeartbeatAttempt, EndedAttempt int
}

// Unknown reports whether UnknownAt is later than all other recorded times of the activity. failedAt is the time of the
// last failed attempt, or zero.
func (r *ActivityRecord) Unknown(failedAt time.Time) bool {
	return r.UnknownAt.After(r.BegunAt) && r.UnknownAt.After(r.LastHeartbeatAt) && r.UnknownAt.After(failedAt)
}

// CancelOutcome is the outcome of a cancelled activity. The strings are part of the stored format.
type CancelOutcome string

// The outcomes of cancelled activities.
const (
	// OutcomeNeverStarted means that the code did not run in the delivery whose worker found the activity cancelled.
	OutcomeNeverStarted CancelOutcome = "never_started"
	// OutcomeStopped means that the code returned an error after its context ended.
	OutcomeStopped CancelOutcome = "stopped"
	// OutcomeCompleted means that the code returned a result despite the cancellation.
	OutcomeCompleted CancelOutcome = "finished"
	// OutcomeAbandoned means that the activity was abandoned because it did not return within its grace period.
	OutcomeAbandoned CancelOutcome = "leaked"
)
