package provider

import (
	"encoding/json"
	"time"

	"github.com/perdure/perdure/history"
)

// ActivityRetry is the current attempt of an activity whose earlier attempts have failed. It is stored apart from
// history, which records attempts only with the outcome: one ActivityRetry for each activity, however many attempts
// there were.
type ActivityRetry struct {
	// ActivityID is the id of the event that scheduled the activity.
	ActivityID int64
	// Attempt is the number of the current attempt, from 2 on: it waits until it is due, lies in its queue, runs, or is
	// Pending. 1 is a first attempt that is Pending; nothing has failed before it.
	Attempt int
	// Run names the run of the previous attempt whose failure led to this one (ActivityOutcome.Run).
	Run string
	// At is when the attempt is due; FailedAt is when it became the current one.
	At, FailedAt time.Time
	// Error is the failure of the previous attempt, cut to a few KiB. Never nil.
	Error *history.Failure
	// Ended is how an earlier attempt ended (ActivityOutcome.Ended): the last one that reported it. Mostly empty.
	Ended string
	// Pending is the current attempt where it is completed from outside; nil where it is not, or not yet.
	Pending *PendingAttempt
	// LookAt is when the limits of the pending attempt are looked at next; zero: it has none. LookBy is the message by
	// which that was decided: the record's id. It is a version as well: every change of a pending attempt has another.
	LookAt time.Time
	LookBy string
}

// PendingKeep asks for an attempt to be kept as pending, or for the next look at its limits.
type PendingKeep struct {
	ActivityID int64
	Attempt    int
	// Was is what ReadRetry has returned: nothing is written where something else is stored by now.
	Was     ActivityRetry
	Pending PendingAttempt
	// LookAt and LookBy are as in ActivityRetry.
	LookAt time.Time
	LookBy string
	// Sent reports that this is stored already: only the timer is sent again.
	Sent bool
}

// PendingBeat is a heartbeat by the holder of an attempt's token.
type PendingBeat struct {
	ActivityID int64
	Attempt    int
	At         time.Time
	// Details are as in ActivityRecord; empty: those before stay.
	Details json.RawMessage
	// Cancelled reports that the holder hears with this heartbeat that the activity is cancelled: the first such time is
	// stored as ActivityRecord.SeenAt.
	Cancelled bool
}
